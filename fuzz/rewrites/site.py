"""Define the site of a rewrite: an instruction of the entry, and the instructions inserted
there."""

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
    """Hold a value of the entry and the instructions that a rewrite inserts after it, with a source
    of random numbers. ``instead`` replaces the value's own instruction. ``is_shared``: some users
    keep the original value."""

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
        """Return the value's shape, which must be an array's."""
        return self.array(self.value.name)

    def array(self, name: str) -> ArrayShape:
        """Return an array's shape by its name."""
        shape = self.defined[name].shape
        assert isinstance(shape, ArrayShape)
        return shape

    def add(self, opcode: str, shape: Shape, *operands: str, **attributes: Attribute) -> str:
        """Insert an instruction and return its name."""
        return self.put(Instruction("", shape, opcode, operands, attributes))

    def put(self, instruction: Instruction) -> str:
        """Insert an instruction under a fresh name and return that name."""
        name = self.names.fresh(instruction.name or instruction.opcode)
        self.instructions.append(instruction._replace(name=name))
        return name

    def constant(self, value: object, element_type: ElementType) -> str:
        """Insert a scalar constant."""
        return self.add("constant", ArrayShape(element_type), literal=literal(value, element_type))

    def filled(self, value: object, shape: ArrayShape) -> str:
        """Insert an array filled with one number."""
        scalar = self.constant(value, shape.element_type)
        return self.add("broadcast", shape, scalar, dimensions=())

    def define(self, *computations: Computation) -> None:
        """Insert computations before the entry."""
        self.computations.extend(computations)

    def exchange(self, instruction: Instruction) -> None:
        """Replace the value's own instruction."""
        self.instead = instruction

    def share(self) -> None:
        """Leave the original value to some users, drawn at random."""
        self.is_shared = True

    def around(self, stem: str, *parameters: Shape, root: int = 0) -> str:
        """Make a computation that returns one of its parameters, and return its name."""
        given = tuple(parameter(n, shape, f"p{n}") for n, shape in enumerate(parameters))
        name = self.names.fresh(stem)
        self.define(Computation(name, given, given[root].name))
        return name


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Hold a rewrite's functions: ``fits`` tests a place; ``rewritten`` inserts instructions and
    returns the name of the value that replaces the original."""

    fits: Callable[[Place], bool]
    rewritten: Callable[[Place], str]


def literal(value: object, element_type: ElementType) -> Literal:
    """Make a scalar literal."""
    array = np.asarray(value, element_type.numpy)
    array.flags.writeable = False
    return Literal(ArrayShape(element_type), array)


def parameter(number: int, shape: Shape, name: str) -> Instruction:
    """Make a parameter of a computation."""
    return Instruction(name, shape, "parameter", (), {"parameter_number": number})


def is_array(place: Place) -> bool:
    """Return whether the value is a static array."""
    shape = place.value.shape
    return isinstance(shape, ArrayShape) and is_static(shape) and can_be_shown(place.value)


def is_static(shape: Shape) -> bool:
    """Return whether a shape consists of static arrays only."""
    return all(leaf.element_type.is_array and not leaf.is_dynamic for leaf in leaves(shape))


def is_computed(place: Place) -> bool:
    """Return whether an instruction may be duplicated or moved: it has no effects, depends on its
    operands alone, and all are static."""
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
