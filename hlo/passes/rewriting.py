"""What passes are written with: fresh names, computations being rebuilt, typed attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import cast

from hlo.module import Computation, Instruction, Module
from hlo.types import ArrayShape
from hlo.walk import called

Slices = tuple[tuple[int, int, int], ...]


class Names:
    """Gives names that are not taken: the stem itself, else the stem and the next number."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        name, number = stem, self._next.get(stem, 1)
        while name in self._taken:
            name, number = f"{stem}.{number}", number + 1
        self._next[stem] = number
        self._taken.add(name)
        return name


class Rebuilt:
    """A computation being rebuilt, in order: instructions are added, or replaced by a name."""

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.names = Names(i.name for i in computation.instructions)
        self.definitions: dict[str, Instruction] = {}
        self._replaced: dict[str, str] = {}

    def resolved(self, instruction: Instruction) -> Instruction:
        """The instruction with the operands that now stand for those it had."""
        operands = tuple(map(self.now, instruction.operands))
        if operands == instruction.operands:
            return instruction
        return instruction._replace(operands=operands)

    def now(self, name: str) -> str:
        return self._replaced.get(name, name)

    def add(self, instruction: Instruction) -> str:
        self.definitions[instruction.name] = instruction
        return instruction.name

    def forward(self, name: str, target: str) -> None:
        """Let ``target``, which is already there, stand for ``name`` from here on."""
        self._replaced[name] = self.now(target)

    def done(self) -> Computation:
        instructions, root = tuple(self.definitions.values()), self.now(self.computation.root)
        return replace(self.computation, instructions=instructions, root=root)


def each(module: Module, change: Callable[[Computation], Computation]) -> Module:
    """The module with every computation changed."""
    return replace(module, computations=tuple(map(change, module.computations)))


def array(shape: object) -> ArrayShape:
    """A shape that the language says is an array's."""
    assert isinstance(shape, ArrayShape), shape
    return shape


def integer(instruction: Instruction, attribute: str) -> int:
    return cast(int, instruction.attributes[attribute])


def integers(instruction: Instruction, attribute: str) -> tuple[int, ...]:
    """The numbers of ``dimensions`` and the like; absent means none."""
    return cast("tuple[int, ...]", instruction.attributes.get(attribute, ()))


def slices(instruction: Instruction, attribute: str) -> Slices:
    """The triples of ``slice`` or ``padding``."""
    return cast(Slices, instruction.attributes.get(attribute, ()))


def reachable(module: Module, follow: Callable[[Instruction], bool]) -> Iterator[Computation]:
    """The computations, in their order, that the entry reaches through instructions to follow."""
    by_name = {computation.name: computation for computation in module.computations}
    found, todo = {module.entry_name}, [module.entry_name]
    while todo:
        for instruction in by_name[todo.pop()].instructions:
            for name in called(instruction) if instruction.attributes else ():
                if name not in found and follow(instruction):
                    found.add(name)
                    todo.append(name)
    return (computation for computation in module.computations if computation.name in found)
