"""Where a rewrite is done: at one instruction of the entry computation."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from fuzz.reducer.cutting import can_be_shown
from hlo.attributes import Attribute
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import DONE, PENDING, having
from hlo.passes.effects import effects
from hlo.passes.rewriting import Names
from hlo.types import ArrayShape, ElementType, Shape, leaves
from hlo.walk import called

_CHAINED = having(PENDING) | having(DONE)


@dataclass(slots=True)
class Place:
    """``value`` and what is put after it, with numbers by chance. ``instead``: what replaces the
    value itself. ``is_shared``: some users stay with the value."""

    module: Module
    defined: Mapping[str, Instruction]  # in the entry computation, by name
    value: Instruction
    rng: random.Random
    names: Names
    instructions: list[Instruction] = field(default_factory=list)
    computations: list[Computation] = field(default_factory=list)
    instead: Instruction | None = None
    is_shared: bool = False

    @property
    def shape(self) -> ArrayShape:
        """That of the value, if it is an array."""
        return self.array(self.value.name)

    def array(self, name: str) -> ArrayShape:
        """The shape of an array by its name."""
        shape = self.defined[name].shape
        assert isinstance(shape, ArrayShape)
        return shape

    def add(self, opcode: str, shape: Shape, *operands: str, **attributes: Attribute) -> str:
        """Put an instruction there; its name."""
        return self.put(Instruction("", shape, opcode, operands, attributes))

    def put(self, instruction: Instruction) -> str:
        """Put an instruction there under a new name; that name."""
        name = self.names.fresh(instruction.name or instruction.opcode)
        self.instructions.append(instruction._replace(name=name))
        return name

    def constant(self, value: object, element_type: ElementType) -> str:
        """A scalar."""
        return self.add("constant", ArrayShape(element_type), literal=literal(value, element_type))

    def filled(self, value: object, shape: ArrayShape) -> str:
        """An array of one number."""
        scalar = self.constant(value, shape.element_type)
        return self.add("broadcast", shape, scalar, dimensions=())

    def define(self, *computations: Computation) -> None:
        """Put computations in front of the entry."""
        self.computations.extend(computations)

    def exchange(self, instruction: Instruction) -> None:
        """Put an instruction in the place of the value itself."""
        self.instead = instruction

    def share(self) -> None:
        """Let some users, by chance, stay with the value."""
        self.is_shared = True

    def around(self, stem: str, *parameters: Shape, root: int = 0) -> str:
        """The name of a computation that returns one of its parameters."""
        given = tuple(parameter(n, shape, f"p{n}") for n, shape in enumerate(parameters))
        name = self.names.fresh(stem)
        self.define(Computation(name, given, given[root].name))
        return name


@dataclass(frozen=True, slots=True)
class Rewrite:
    """``rewritten`` adds instructions after a place's value that ``fits``; it returns the name of
    the one that has the value from then on."""

    fits: Callable[[Place], bool]
    rewritten: Callable[[Place], str]


def literal(value: object, element_type: ElementType) -> Literal:
    """A scalar."""
    array = np.asarray(value, element_type.numpy)
    array.flags.writeable = False
    return Literal(ArrayShape(element_type), array)


def parameter(number: int, shape: Shape, name: str) -> Instruction:
    """A parameter of a computation."""
    return Instruction(name, shape, "parameter", (), {"parameter_number": number})


def is_array(place: Place) -> bool:
    """Whether the value is an array whose sizes are certain."""
    shape = place.value.shape
    return isinstance(shape, ArrayShape) and is_static(shape) and can_be_shown(place.value)


def is_static(shape: Shape) -> bool:
    """Whether all is data, and the sizes of all arrays are certain."""
    return all(leaf.element_type.is_array and not leaf.is_dynamic for leaf in leaves(shape))


def is_computed(place: Place) -> bool:
    """Whether the instruction may be done again, or elsewhere: it has no effects, and computes its
    value from that of its operands alone, whose sizes are certain."""
    operands = (place.defined[name].shape for name in place.value.operands)
    shapes = all(map(is_static, (place.value.shape, *operands)))
    return shapes and place.value.opcode != "parameter" and _is_pure(place.module, place.value)


def _is_pure(module: Module, instruction: Instruction) -> bool:
    if effects(module)(instruction):
        return False
    if instruction.opcode in _CHAINED or "channel_id" in instruction.attributes:
        return False
    inner = (i for name in called(instruction) for i in module.computation(name).instructions)
    return all(_is_pure(module, i) for i in inner)
