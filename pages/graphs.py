"""Make graphs of a program: one for each computation, and of a compiled one for each kernel.

A graph's nodes are instructions. A node that stands for other graphs, as a loop does for its
condition and body, names them: a page opens them in its place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hlo.module import Computation, Instruction, Module
from hlo.walk import called
from pages import layered_layout
from pages.layered_layout import Layout

_CHARACTER = 6.8  # pixels of a character of a label
_PADDING = 26.0
_MOST_CHARACTERS = 30


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a graph: an instruction, by its number in the program, and its kernel's number, -1
    for none.

    ``inner`` are the numbers of the graphs that it opens to: of its callees, or of the kernel's
    members.
    """

    instruction: int
    kernel: int = -1
    inner: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph of a computation or a kernel: nodes in topological order, and their layout."""

    title: str
    nodes: tuple[Node, ...]
    layout: Layout


@dataclass(frozen=True, slots=True)
class Kernels:
    """The fusion of a program: ``groups`` maps, for each computation, each stored instruction to
    the members of its kernel, itself last; ``numbers`` the instruction to the step that computes
    it."""

    groups: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    numbers: Mapping[tuple[str, str], int] = field(default_factory=dict)


def numbered(module: Module) -> dict[tuple[str, str], int]:
    """Number the instructions of a module, by (computation, instruction)."""
    names = [(c.name, i.name) for c in module.computations for i in c.instructions]
    return {name: number for number, name in enumerate(names)}


def graphs(module: Module, kernels: Kernels | None = None) -> tuple[list[Graph], int]:
    """Make the graphs of a module, callees first; return them and the number of the entry's."""
    maker = _Maker(module, kernels or Kernels())
    for computation in module.computations:
        maker.add(computation)
    return maker.found, maker.by_computation[module.entry_name]


def label(instruction: Instruction) -> tuple[str, str]:
    """Format the two lines of a node: the name; the opcode, with the shape if they fit."""
    shape = str(instruction.shape)
    shape = shape if len(shape) < _MOST_CHARACTERS else f"({shape.count('[')} arrays)"
    shape = shape.partition("{")[0]
    second = (
        shape
        if instruction.name.startswith(instruction.opcode)
        else f"{instruction.opcode} {shape}"
    )
    return _cut(instruction.name), _cut(second)


def _cut(text: str) -> str:
    """Shorten a text to the width of a node."""
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


def node_width(instruction: Instruction) -> float:
    """Compute the width of a node in pixels."""
    return max(map(len, label(instruction))) * _CHARACTER + _PADDING


class _Maker:
    """Makes the graphs of a module, in order."""

    def __init__(self, module: Module, kernels: Kernels) -> None:
        self._kernels, self._numbers = kernels, numbered(module)
        self.found: list[Graph] = []
        self.by_computation: dict[str, int] = {}

    def add(self, computation: Computation) -> None:
        """Append the graph of a computation, after those of its kernels."""
        groups = self._kernels.groups.get(computation.name, {})
        inside = {name for members in groups.values() for name in members if name not in groups}
        shown = [i for i in computation.instructions if i.name in groups or i.name not in inside]
        operands = {i.name: i.operands for i in shown}
        nodes: dict[str, Node] = {}
        for instruction in shown:
            members = groups.get(instruction.name, ())
            kernel = self._kernels.numbers.get((computation.name, instruction.name), -1)
            number = self._numbers[computation.name, instruction.name]
            if len(members) > 1:
                inner = self._kernel(computation, instruction.name, members)
                nodes[instruction.name] = Node(number, kernel, (inner,))
                operands[instruction.name] = _outside(computation, members)
            else:
                nodes[instruction.name] = Node(number, kernel, self._callees(instruction))
        self.by_computation[computation.name] = len(self.found)
        self.found.append(_graph(computation.name, shown, nodes, operands))

    def _kernel(self, computation: Computation, name: str, members: Sequence[str]) -> int:
        """Append the graph of a kernel of several instructions; return its number."""
        own = set(members)
        shown = [i for i in computation.instructions if i.name in own]
        nodes = {
            i.name: Node(self._numbers[computation.name, i.name], -1, self._callees(i))
            for i in shown
        }
        graph = _graph(name, shown, nodes, {i.name: i.operands for i in shown})
        self.found.append(graph)
        return len(self.found) - 1

    def _callees(self, instruction: Instruction) -> tuple[int, ...]:
        """Return the numbers of the graphs of an instruction's callees."""
        names = dict.fromkeys(called(instruction))
        return tuple(self.by_computation[name] for name in names if name in self.by_computation)


def _outside(computation: Computation, members: Sequence[str]) -> tuple[str, ...]:
    """List the values that the members of a kernel read from outside of it, in order."""
    own = set(members)
    inside = (i for i in computation.instructions if i.name in own)
    return tuple(dict.fromkeys(o for i in inside for o in i.operands if o not in own))


def _graph(
    title: str,
    shown: Sequence[Instruction],
    nodes: Mapping[str, Node],
    operands: Mapping[str, Iterable[str]],
) -> Graph:
    """Make a graph: sort its nodes topologically and lay them out."""
    order = {name: number for number, name in enumerate(_sorted([i.name for i in shown], operands))}
    by_number: dict[int, Instruction] = {order[i.name]: i for i in shown}
    in_order = [by_number[number] for number in range(len(shown))]
    edges = [[order[name] for name in operands[i.name] if name in order] for i in in_order]
    placed = layered_layout.layout([node_width(i) for i in in_order], edges)
    return Graph(title, tuple(nodes[i.name] for i in in_order), placed)


def _sorted(names: Sequence[str], operands: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield names in topological order, else in the given one. A kernel's operands may stand after
    the first of its members, but never depend on it."""
    waiting: dict[str, int] = {}
    users: dict[str, list[str]] = defaultdict(list)
    known = set(names)
    for name in names:
        needed = {o for o in operands[name] if o in known}
        waiting[name] = len(needed)
        for operand in needed:
            users[operand].append(name)
    ready = [name for name in reversed(names) if not waiting[name]]
    while ready:
        name = ready.pop()
        yield name
        for user in reversed(users[name]):
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
