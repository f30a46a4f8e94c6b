"""Represent a program as data: Module, Computation, Instruction.

Names are the identity of things: operands and called computations are names, the order is the
text's. ``attributes`` change the result and hold values; ``annotations`` hold text, and do not, but
for the ``backend_config`` of a custom call and the pairs of ranks of sends (docs/text.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hlo.attributes import Attribute, HeaderAttribute
from hlo.summary import html, line
from hlo.types import Shape


class Instruction(NamedTuple):
    """One instruction. ``offset`` is where its text starts (-1: not from text); never compared."""

    name: str
    shape: Shape
    opcode: str
    operands: tuple[str, ...] = ()
    attributes: Mapping[str, Attribute] = {}
    annotations: Mapping[str, str] = {}
    offset: int = -1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instruction) and self[:-1] == other[:-1]

    # tuple defines __ne__ itself, which would compare offsets.
    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:4])  # attributes are a mapping

    def __repr__(self) -> str:
        operands = ", ".join(f"%{name}" for name in self.operands)
        return f"%{self.name} = {self.shape} {self.opcode}({operands})"


def _number(parameter: Instruction) -> int:
    number = parameter.attributes["parameter_number"]
    assert isinstance(number, int)
    return number


@dataclass(frozen=True, slots=True, repr=False)
class Computation:
    """Instructions in topological order, operands before users; one of them is ``root``."""

    name: str
    instructions: tuple[Instruction, ...]
    root: str
    annotations: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Computation({self.name}: {len(self.instructions)} instructions, root {self.root})"

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """Return the parameters in the order of their numbers."""
        found = [i for i in self.instructions if i.opcode == "parameter"]
        return tuple(sorted(found, key=_number))

    @property
    def root_instruction(self) -> Instruction:
        return next(i for i in self.instructions if i.name == self.root)


@dataclass(frozen=True, slots=True, repr=False)
class Module:
    """Computations, callees before callers, one of them the entry.

    ``attributes`` are those of the header line; ``preamble`` holds the file and frame tables
    between the header and the first computation, as text. ``text`` is where the module came from
    (for positions in errors); it is not compared.
    """

    name: str
    computations: tuple[Computation, ...]
    entry_name: str
    attributes: Mapping[str, HeaderAttribute] = field(default_factory=dict)
    preamble: str = ""
    text: str = field(default="", compare=False)
    _by_name: Mapping[str, Computation] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        by_name = {computation.name: computation for computation in self.computations}
        object.__setattr__(self, "_by_name", by_name)

    def __repr__(self) -> str:
        return line(self)

    def _repr_html_(self) -> str:
        """Return an HTML summary for notebooks: parameters, result and opcodes."""
        return html(self)

    @property
    def entry(self) -> Computation:
        return self.computation(self.entry_name)

    def computation(self, name: str) -> Computation:
        """Return the computation of a name; raise KeyError if there is none."""
        return self._by_name[name]

    @property
    def instruction_count(self) -> int:
        return sum(len(c.instructions) for c in self.computations)
