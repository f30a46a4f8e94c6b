"""Divide a graph into stages that are compiled and stages that PyTorch runs, in turns.

Stage 0 of PyTorch runs first, then stage 0 of C, then stage 1 of PyTorch, and so on. Each node is
in the first stage that its inputs allow, so there are as few stages as any order gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

Node = TypeVar("Node")


class Place(NamedTuple):
    """The stage of a node: its number, and whether it is one of C, after PyTorch's."""

    number: int
    is_compiled: bool


def placed(
    nodes: Sequence[Node],
    inputs_of: Callable[[Node], Iterable[Node]],
    is_compiled: Callable[[Node], bool],
    is_ordered: Callable[[Node], bool],
) -> dict[Node, Place]:
    """Return the stage of each node; ``nodes`` come in an order of computing.

    Inputs that are not among the nodes are there before all stages. Nodes that ``is_ordered`` picks
    stay in the order given (they read the same generator of random numbers, say), and are not to be
    compiled.
    """
    places: dict[Node, Place] = {}
    last_ordered = 0
    for node in nodes:
        before = [places[x] for x in inputs_of(node) if x in places]
        if is_compiled(node):
            number = max((place.number for place in before), default=0)
        else:
            number = max((p.number + p.is_compiled for p in before), default=0)
            if is_ordered(node):
                number = last_ordered = max(number, last_ordered)
        places[node] = Place(number, is_compiled(node))
    return places


def in_order(places: Mapping[Node, Place]) -> list[tuple[bool, list[Node]]]:
    """Return the stages in the order in which they run: whether C runs it, and its nodes."""
    stages: dict[Place, list[Node]] = {}
    for node, place in places.items():
        stages.setdefault(place, []).append(node)
    return [(place.is_compiled, stages[place]) for place in sorted(stages)]
