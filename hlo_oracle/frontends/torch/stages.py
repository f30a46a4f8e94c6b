"""Divide a graph into alternating stages of PyTorch and of C.

Stage 0 of PyTorch runs first, then stage 0 of C, then stage 1 of PyTorch, and so on. Each node is
in the first stage that its inputs allow, so there are as few stages as any order gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

Node = TypeVar("Node")


class Place(NamedTuple):
    """The stage of a node: its number, and whether C runs it, after PyTorch's stage of that
    number."""

    number: int
    is_compiled: bool


def placed(
    nodes: Sequence[Node],
    inputs_of: Callable[[Node], Iterable[Node]],
    is_compiled: Callable[[Node], bool],
    is_ordered: Callable[[Node], bool],
) -> dict[Node, Place]:
    """Assign a stage to each node; ``nodes`` are in topological order.

    Inputs that are not among the nodes are available before all stages. Nodes for which
    ``is_ordered`` is true keep their order (they draw from one random generator, say), and must not
    be compiled.
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
    """List the stages in execution order, each as (whether C runs it, its nodes)."""
    stages: dict[Place, list[Node]] = {}
    for node, place in places.items():
        stages.setdefault(place, []).append(node)
    return [(place.is_compiled, stages[place]) for place in sorted(stages)]
