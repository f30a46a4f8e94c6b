"""Change one thing of a program: a use, an opcode, a number, an attribute, a type or a size.

A change draws a module from a module, or returns None where it has no place. What it returns may
be invalid: the verifier decides (:mod:`fuzz.near_misses.programs`). The meaning is another; what is
wanted are programs that differ in one respect from those that compilers recognise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import NamedTuple

import numpy as np

from fuzz.draw import values
from fuzz.draw.choices import Choices
from fuzz.draw.generators.elementwise import ALIKE, DIRECTIONS
from fuzz.draw.shapes import TYPES
from fuzz.near_misses.attribute_numbers import numbers, with_number
from fuzz.reducer.resizing import resizing, retyping, transformed_module
from hlo.attributes import Attribute
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import GIVEN, having
from hlo.passes.rewriting import constant_value, with_computation, with_entry
from hlo.types import ArrayShape, ElementType, Shape, TupleShape, leaves
from hlo.walk import called

Change = Callable[[Choices, Module], Module | None]

_GIVEN = having(GIVEN)
# Attributes whose other numbers make a program undefined, or say nothing of its value.
_KEPT = frozenset({"parameter_number", "indices_are_sorted", "unique_indices", "channel_id"})
# Sizes at which generated code changes: of one element, of vectors, of blocks.
_SIZES = (1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 128, 256, 257)
_MOST_ELEMENTS = 1 << 14  # of an array that has become larger


class _Place(NamedTuple):
    """An instruction of a module that a change is made at."""

    module: Module
    computation: Computation
    instruction: Instruction

    def shape(self, name: str) -> Shape:
        """Return the shape of a value of the computation."""
        return next(i.shape for i in self.computation.instructions if i.name == name)

    def earlier(self, shape: Shape) -> Sequence[str]:
        """List the values before the instruction that have a shape."""
        instructions = self.computation.instructions
        before = instructions[: instructions.index(self.instruction)]
        return [one.name for one in before if one.shape == shape]

    def replaced(self, *new: Instruction) -> Module:
        """Put instructions in the place of this one."""
        instructions = tuple(
            one
            for i in self.computation.instructions
            for one in (new if i is self.instruction else (i,))
        )
        return self.within(replace(self.computation, instructions=instructions))

    def within(self, changed: Computation) -> Module:
        """Put a computation in the place of this one."""
        is_entry = changed.name == self.module.entry_name
        return (with_entry if is_entry else with_computation)(self.module, changed)

    def giving(self, **attributes: Attribute) -> Module:
        """Give the instruction other attributes."""
        given = {**self.instruction.attributes, **attributes}
        return self.replaced(self.instruction._replace(attributes=given))

    def reading(self, number: int, name: str) -> Instruction:
        """Return the instruction with another value as one of its operands."""
        operands = list(self.instruction.operands)
        operands[number] = name
        return self.instruction._replace(operands=tuple(operands))


def _at(
    suits: Callable[[Instruction], bool],
) -> Callable[[Callable[[Choices, _Place], Module | None]], Change]:
    """Decorate a change of an instruction: of any one that ``suits``."""

    def decorated(change: Callable[[Choices, _Place], Module | None]) -> Change:
        @wraps(change)
        def of(choices: Choices, module: Module) -> Module | None:
            places = [
                _Place(module, c, i)
                for c in module.computations
                for i in c.instructions
                if suits(i)
            ]
            return change(choices, choices.choice(places)) if places else None

        return of

    return decorated


def _has_operands(instruction: Instruction) -> bool:
    return bool(instruction.operands)


def _numbered(instruction: Instruction) -> Sequence[str]:
    """List the attributes that have numbers; of a leaf they say what it is."""
    if instruction.opcode in _GIVEN:
        return []
    return [n for n, v in instruction.attributes.items() if n not in _KEPT and numbers(v)]


@_at(_has_operands)
def other_operand(choices: Choices, place: _Place) -> Module | None:
    """Let an instruction read another value of the same shape."""
    number = choices.integer(0, len(place.instruction.operands) - 1)
    old = place.instruction.operands[number]
    others = [name for name in place.earlier(place.shape(old)) if name != old]
    return place.replaced(place.reading(number, choices.choice(others))) if others else None


@_at(lambda i: len(set(i.operands)) > 1)
def exchanged_operands(choices: Choices, place: _Place) -> Module | None:
    """Exchange two operands."""
    operands = list(place.instruction.operands)
    first, second = choices.permutation(range(len(operands)))[:2]
    operands[first], operands[second] = operands[second], operands[first]
    return place.replaced(place.instruction._replace(operands=tuple(operands)))


@_at(lambda i: i.opcode in ALIKE)
def other_opcode(choices: Choices, place: _Place) -> Module | None:
    """Compute something else of the same operands, elementwise."""
    (shape,) = leaves(place.instruction.shape)
    able = [
        opcode
        for opcode, (types, arity) in ALIKE.items()
        if arity == len(place.instruction.operands) and types(shape.element_type)
    ]
    opcode = choices.choice(able)
    return place.replaced(place.instruction._replace(opcode=opcode, attributes={}))


@_at(lambda i: i.opcode == "compare")
def other_direction(choices: Choices, place: _Place) -> Module | None:
    """Compare by another direction."""
    return place.giving(direction=choices.choice(DIRECTIONS))


@_at(lambda i: constant_value(i) is not None)
def other_constant(choices: Choices, place: _Place) -> Module | None:
    """Change one number of a constant: by one, in its sign, or to any."""
    array, shape = constant_value(place.instruction), place.instruction.shape
    assert array is not None
    assert isinstance(shape, ArrayShape)
    if not array.size:
        return None
    flat = array.reshape(-1).copy()
    index = choices.integer(0, flat.size - 1)
    flat[index] = _other_number(choices, flat[index : index + 1], shape.element_type)
    return place.giving(literal=Literal(shape, flat.reshape(array.shape)))


def _other_number(choices: Choices, old: np.ndarray, element_type: ElementType) -> object:
    """Draw a number near an old one, or any of its type."""
    kind = choices.choice(("more", "less", "negative", "any"))
    if kind == "any" or element_type.kind == "pred":
        return values.scalar(choices, element_type)[()]
    with np.errstate(all="ignore"):
        one = np.ones(1).astype(old.dtype)
        changed = {"more": old + one, "less": old - one, "negative": old * (one - one - one)}
        return changed[kind].astype(old.dtype)[0]


@_at(lambda i: i.opcode == "get-tuple-element")
def other_element(choices: Choices, place: _Place) -> Module | None:
    """Take another element of a tuple."""
    whole = place.shape(place.instruction.operands[0])
    assert isinstance(whole, TupleShape)
    same = [n for n, shape in enumerate(whole.elements) if shape == place.instruction.shape]
    return place.giving(index=choices.choice(same))


@_at(lambda i: bool(called(i)))
def other_callee(choices: Choices, place: _Place) -> Module | None:
    """Call another computation of the same signature."""
    module, instruction = place.module, place.instruction
    old = module.computation(choices.choice(called(instruction)))
    before = module.computations[: module.computations.index(place.computation)]
    able = [c.name for c in before if _signature(c) == _signature(old) and c is not old]
    if not able:
        return None
    new = choices.choice(able)
    given = instruction.attributes.items()
    return place.giving(**{name: _renamed(value, old.name, new) for name, value in given})


def _signature(computation: Computation) -> object:
    return [p.shape for p in computation.parameters], computation.root_instruction.shape


def _renamed(value: Attribute, old: str, new: str) -> Attribute:
    if isinstance(value, tuple):
        return tuple(new if name == old else name for name in value)  # type: ignore[return-value]
    return new if value == old else value


@_at(lambda i: bool(_numbered(i)))
def other_number(choices: Choices, place: _Place) -> Module | None:
    """Change one number of an attribute: a dimension, a bound, a field of a window, a flag."""
    name = choices.choice(_numbered(place.instruction))
    value = place.instruction.attributes[name]
    old = numbers(value)
    index = choices.integer(0, len(old) - 1)
    new = choices.choice((old[index] + 1, old[index] - 1, 0, 1, choices.choice(old)))
    changed = place.giving(**{name: with_number(value, index, new)})
    return transformed_module(changed, lambda shape: shape)  # shapes are inferred again


@_at(_has_operands)
def inserted(choices: Choices, place: _Place) -> Module | None:
    """Change a value for one of its users: by an elementwise instruction, or to another type and
    back."""
    number = choices.integer(0, len(place.instruction.operands) - 1)
    name = place.instruction.operands[number]
    shape = place.shape(name)
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_array or shape.is_dynamic:
        return None
    added = _added(choices, shape, name, place.earlier(shape))
    return place.replaced(*added, place.reading(number, added[-1].name))


def _added(
    choices: Choices, shape: ArrayShape, name: str, others: Sequence[str]
) -> Sequence[Instruction]:
    first = f"{name}.changed"
    if choices.chance(3):
        kinds = [t for t in TYPES if t.is_complex == shape.element_type.is_complex]
        there = replace(shape, element_type=choices.choice(kinds))
        return (
            Instruction(first, there, "convert", (name,)),
            Instruction(f"{first}.back", shape, "convert", (first,)),
        )
    able = [opcode for opcode, (types, _) in ALIKE.items() if types(shape.element_type)]
    opcode = choices.choice((*able, "copy"))
    arity = ALIKE[opcode][1] if opcode in ALIKE else 1
    operands = [name, *(choices.choice(others) for _ in range(arity - 1))]
    return (Instruction(first, shape, opcode, tuple(choices.permutation(operands))),)


@_at(_has_operands)
def left_out(choices: Choices, place: _Place) -> Module | None:
    """Leave an instruction out: what reads it reads an operand of the same shape."""
    computation, instruction = place.computation, place.instruction
    able = [name for name in instruction.operands if place.shape(name) == instruction.shape]
    if not able:
        return None
    new = choices.choice(able)
    instructions = tuple(
        i._replace(operands=tuple(new if n == instruction.name else n for n in i.operands))
        for i in computation.instructions
        if i is not instruction
    )
    root = new if computation.root == instruction.name else computation.root
    return place.within(replace(computation, instructions=instructions, root=root))


def other_size(choices: Choices, module: Module) -> Module | None:
    """Give all dimensions of one size another."""
    sizes = {n for i in _all(module) for leaf in leaves(i.shape) for n in leaf.dims}
    if not sizes:
        return None
    old = choices.choice(sorted(sizes))
    near = tuple(n for n in (old - 1, old + 1, 2 * old) if n > 0)
    changed = transformed_module(module, resizing(old, choices.choice((*_SIZES, *near))))
    if changed is None:
        return None
    most = max((leaf.elements for i in _all(changed) for leaf in leaves(i.shape)), default=0)
    return changed if most <= _MOST_ELEMENTS else None


def other_type(choices: Choices, module: Module) -> Module | None:
    """Compute in another element type: all arrays of one type become arrays of another."""
    types = {leaf.element_type for i in _all(module) for leaf in leaves(i.shape)}
    if not types:
        return None
    old = choices.choice(sorted(types, key=lambda t: t.name))
    able = [t for t in TYPES if t.kind == old.kind and t is not old] or [*TYPES]
    return transformed_module(module, retyping(old, choices.choice(able)))


def _all(module: Module) -> Sequence[Instruction]:
    return [i for c in module.computations for i in c.instructions]


def returned(choices: Choices, module: Module) -> Module | None:
    """Return a value in between beside the result."""
    entry = module.entry
    inner = [i for i in entry.instructions if i.opcode not in _GIVEN and i.name != entry.root]
    if not inner:
        return None
    one, root = choices.choice(inner), entry.root_instruction
    pair = Instruction(
        "results", TupleShape((root.shape, one.shape)), "tuple", (root.name, one.name)
    )
    return with_entry(
        module, replace(entry, instructions=(*entry.instructions, pair), root=pair.name)
    )


CHANGES: Sequence[Change] = (
    *(other_operand, other_operand, exchanged_operands, other_opcode, other_opcode),
    *(other_direction, other_constant, other_constant, other_element, other_callee),
    *(other_number, other_number, inserted, inserted, left_out, other_size, other_type, returned),
)
