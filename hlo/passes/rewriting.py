"""Provide rewriting passes with fresh names, computations under construction, typed attributes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import cast

import numpy as np

from hlo.attributes import Attribute
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.types import ArrayShape
from hlo.values import Array
from hlo.walk import called

Answer = Instruction | str | None  # in place of an instruction: another, or an earlier value
Slices = tuple[tuple[int, int, int], ...]

# What a header says about the entry computation's parameters and results.
_SIGNATURE = frozenset(
    (
        *("entry_computation_layout", "input_output_alias", "buffer_donor"),
        *("allow_spmd_sharding_propagation_to_output", "frontend_attributes"),
        "allow_spmd_sharding_propagation_to_parameters",
    )
)


class Names:
    """Generate fresh names: the stem itself if it is free, else the stem and the next number."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        # Where to go on counting each stem, so that n names of one stem take linear time.
        self._next: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        """Return a name that was not taken, and take it."""
        name, number = stem, self._next.get(stem, 1)
        while name in self._taken:
            name, number = f"{stem}.{number}", number + 1
        self._next[stem] = number
        self._taken.add(name)
        return name


class Rebuilt:
    """Hold a computation while a pass rebuilds it from first instruction to last.

    Each instruction is added, perhaps changed, or its uses are forwarded to an earlier value.
    ``definitions`` are the instructions so far, by name.
    """

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.names = Names(i.name for i in computation.instructions)
        self.definitions: dict[str, Instruction] = {}
        self._replaced: dict[str, str] = {}

    def resolved(self, instruction: Instruction) -> Instruction:
        """Return the instruction with forwarded operands replaced by their targets."""
        operands = tuple(map(self.now, instruction.operands))
        if operands == instruction.operands:
            return instruction
        return instruction._replace(operands=operands)

    def now(self, name: str) -> str:
        """Return the value that uses of ``name`` were forwarded to, or ``name`` itself."""
        return self._replaced.get(name, name)

    def add(self, instruction: Instruction) -> str:
        """Append an instruction; return its name."""
        self.definitions[instruction.name] = instruction
        return instruction.name

    def add_part(
        self,
        whole: Instruction,
        part: str,
        shape: ArrayShape,
        opcode: str,
        operands: tuple[str, ...],
        **attributes: Attribute,
    ) -> str:
        """Append a part of what stands for an instruction, with its annotations and a name that
        begins with its; return that."""
        name = self.names.fresh(f"{whole.name}.{part}")
        return self.add(Instruction(name, shape, opcode, operands, attributes, whole.annotations))

    def forward(self, name: str, target: str) -> None:
        """Replace later uses of ``name`` by ``target``, which must be defined already."""
        self._replaced[name] = self.now(target)

    def done(self) -> Computation:
        """Return the rebuilt computation; its root is what the old root was forwarded to."""
        instructions, root = tuple(self.definitions.values()), self.now(self.computation.root)
        return replace(self.computation, instructions=instructions, root=root)


def each(module: Module, change: Callable[[Computation], Computation]) -> Module:
    """Apply a change to every computation of a module."""
    return replace(module, computations=tuple(map(change, module.computations)))


def each_of(
    module: Module,
    opcodes: Collection[str],
    change: Callable[[Rebuilt, Instruction], Answer],
) -> Module:
    """Replace the instructions of some opcodes in a module: each by the instruction that ``change``
    returns, after what it has added to the computation, or by the earlier value that it names; they
    stay where that is None."""

    def changed(computation: Computation) -> Computation:
        if all(i.opcode not in opcodes for i in computation.instructions):
            return computation
        rebuilt = Rebuilt(computation)
        for instruction in computation.instructions:
            resolved = rebuilt.resolved(instruction)
            answer = change(rebuilt, resolved) if resolved.opcode in opcodes else None
            if isinstance(answer, str):
                rebuilt.forward(instruction.name, answer)
            else:
                rebuilt.add(answer or resolved)
        return rebuilt.done()

    return each(module, changed)


def with_computation(module: Module, changed: Computation) -> Module:
    """Replace the computation of the same name in a module."""
    computations = (changed if c.name == changed.name else c for c in module.computations)
    return replace(module, computations=tuple(computations))


def with_entry(module: Module, entry: Computation) -> Module:
    """Replace a module's entry computation by one with another signature.

    Attributes of the header that describe the old signature are dropped.
    """
    whole = with_computation(module, entry)
    attributes = {k: v for k, v in module.attributes.items() if k not in _SIGNATURE}
    return replace(whole, attributes=attributes, text="", preamble="")


def array(shape: object) -> ArrayShape:
    """Narrow a shape to an array's, where HLO allows no other."""
    assert isinstance(shape, ArrayShape), shape
    return shape


def constant_value(instruction: Instruction) -> Array | None:
    """Return the elements of an array constant; None for other instructions, and if the text elided
    them."""
    literal = instruction.attributes.get("literal")
    value = literal.value if isinstance(literal, Literal) else None
    return value if isinstance(value, np.ndarray) else None


def integer(instruction: Instruction, attribute: str) -> int:
    """Return an attribute that is an integer."""
    return cast(int, instruction.attributes[attribute])


def integers(instruction: Instruction, attribute: str) -> tuple[int, ...]:
    """Return an attribute that is a list of integers (``dimensions``), empty if absent."""
    return cast("tuple[int, ...]", instruction.attributes.get(attribute, ()))


def slices(instruction: Instruction, attribute: str) -> Slices:
    """Return an attribute that is a list of triples (``slice``, ``padding``), empty if absent."""
    return cast(Slices, instruction.attributes.get(attribute, ()))


def reachable(module: Module, follow: Callable[[Instruction], bool]) -> Iterator[Computation]:
    """Yield the computations that the entry reaches, in module order, through the calls of
    instructions for which ``follow`` is true."""
    by_name = {computation.name: computation for computation in module.computations}
    found, todo = {module.entry_name}, [module.entry_name]
    while todo:
        for instruction in by_name[todo.pop()].instructions:
            for name in called(instruction) if instruction.attributes else ():
                if name not in found and follow(instruction):
                    found.add(name)
                    todo.append(name)
    return (computation for computation in module.computations if computation.name in found)
