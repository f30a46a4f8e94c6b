"""Change one thing of a program: a use, an opcode, a number, an attribute, a type or a size.

A change draws a module from a module, or returns None where it has no place. What it returns may
be invalid: the verifier decides (:mod:`fuzz.near_misses.programs`). The meaning is another; what is
wanted are programs that differ in one respect from those that compilers recognise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fuzz.draw import values
from fuzz.draw.choices import Choices
from fuzz.draw.generators.elementwise import ALIKE
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
_DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
# Attributes whose other numbers make a program undefined, or say nothing of its value.
_KEPT = frozenset({"parameter_number", "indices_are_sorted", "unique_indices", "channel_id"})
# Sizes at which generated code changes: of one element, of vectors, of blocks.
_SIZES = (1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 128, 256, 257)
_MOST_ELEMENTS = 1 << 14  # of an array that has become larger


def _any(
    choices: Choices, module: Module, suits: Callable[[Instruction], bool]
) -> tuple[Computation, Instruction] | None:
    found = [(c, i) for c in module.computations for i in c.instructions if suits(i)]
    return choices.choice(found) if found else None


def _replaced(
    module: Module, computation: Computation, old: Instruction, *new: Instruction
) -> Module:
    """Put instructions in the place of one."""
    instructions = tuple(
        one for i in computation.instructions for one in (new if i is old else (i,))
    )
    return _with(module, replace(computation, instructions=instructions))


def _with(module: Module, computation: Computation) -> Module:
    given = with_entry if computation.name == module.entry_name else with_computation
    return given(module, computation)


def _earlier(computation: Computation, instruction: Instruction, shape: Shape) -> Sequence[str]:
    """List the values before an instruction that have a shape."""
    found = list[str]()
    for one in computation.instructions:
        if one is instruction:
            break
        if one.shape == shape:
            found.append(one.name)
    return found


def other_operand(choices: Choices, module: Module) -> Module | None:
    """Let an instruction read another value of the same shape."""
    place = _any(choices, module, lambda i: bool(i.operands))
    if place is None:
        return None
    computation, instruction = place
    number = choices.integer(0, len(instruction.operands) - 1)
    old = instruction.operands[number]
    shape = next(i.shape for i in computation.instructions if i.name == old)
    others = [name for name in _earlier(computation, instruction, shape) if name != old]
    if not others:
        return None
    return _replaced(
        module, computation, instruction, _reading(instruction, number, choices.choice(others))
    )


def _reading(instruction: Instruction, number: int, name: str) -> Instruction:
    operands = list(instruction.operands)
    operands[number] = name
    return instruction._replace(operands=tuple(operands))


def exchanged_operands(choices: Choices, module: Module) -> Module | None:
    """Exchange two operands."""
    place = _any(choices, module, lambda i: len(set(i.operands)) > 1)
    if place is None:
        return None
    computation, instruction = place
    first, second = choices.permutation(range(len(instruction.operands)))[:2]
    operands = list(instruction.operands)
    operands[first], operands[second] = operands[second], operands[first]
    return _replaced(
        module, computation, instruction, instruction._replace(operands=tuple(operands))
    )


def other_opcode(choices: Choices, module: Module) -> Module | None:
    """Compute something else of the same operands, elementwise."""
    place = _any(choices, module, lambda i: i.opcode in ALIKE)
    if place is None:
        return None
    computation, instruction = place
    (shape,) = leaves(instruction.shape)
    able = [
        opcode
        for opcode, (types, arity) in ALIKE.items()
        if arity == len(instruction.operands) and types(shape.element_type)
    ]
    opcode = choices.choice(able)
    return _replaced(
        module, computation, instruction, instruction._replace(opcode=opcode, attributes={})
    )


def other_direction(choices: Choices, module: Module) -> Module | None:
    """Compare by another direction."""
    place = _any(choices, module, lambda i: i.opcode == "compare")
    if place is None:
        return None
    computation, instruction = place
    attributes = {**instruction.attributes, "direction": choices.choice(_DIRECTIONS)}
    return _replaced(module, computation, instruction, instruction._replace(attributes=attributes))


def other_constant(choices: Choices, module: Module) -> Module | None:
    """Change one number of a constant: by one, in its sign, or to any."""
    place = _any(choices, module, lambda i: constant_value(i) is not None)
    if place is None:
        return None
    computation, instruction = place
    array = constant_value(instruction)
    assert array is not None
    assert isinstance(instruction.shape, ArrayShape)
    if not array.size:
        return None
    flat = array.reshape(-1).copy()
    index = choices.integer(0, flat.size - 1)
    flat[index] = _other_number(choices, flat[index : index + 1], instruction.shape.element_type)
    literal = Literal(instruction.shape, flat.reshape(array.shape))
    attributes: Mapping[str, Attribute] = {"literal": literal}
    return _replaced(module, computation, instruction, instruction._replace(attributes=attributes))


def _other_number(choices: Choices, old: np.ndarray, element_type: ElementType) -> object:
    """Draw a number near an old one, or any of its type."""
    kind = choices.choice(("more", "less", "negative", "any"))
    if kind == "any" or element_type.kind == "pred":
        return values.scalar(choices, element_type)[()]
    with np.errstate(all="ignore"):
        one = np.ones(1).astype(old.dtype)
        changed = {"more": old + one, "less": old - one, "negative": old * (one - one - one)}
        return changed[kind].astype(old.dtype)[0]


def other_element(choices: Choices, module: Module) -> Module | None:
    """Take another element of a tuple."""
    place = _any(choices, module, lambda i: i.opcode == "get-tuple-element")
    if place is None:
        return None
    computation, instruction = place
    source = next(i for i in computation.instructions if i.name == instruction.operands[0])
    assert isinstance(source.shape, TupleShape)
    same = [n for n, shape in enumerate(source.shape.elements) if shape == instruction.shape]
    attributes = {**instruction.attributes, "index": choices.choice(same)}
    return _replaced(module, computation, instruction, instruction._replace(attributes=attributes))


def other_callee(choices: Choices, module: Module) -> Module | None:
    """Call another computation of the same signature."""
    place = _any(choices, module, lambda i: bool(called(i)))
    if place is None:
        return None
    computation, instruction = place
    old = module.computation(choices.choice(called(instruction)))
    before = module.computations[: module.computations.index(computation)]
    able = [c.name for c in before if _signature(c) == _signature(old) and c is not old]
    if not able:
        return None
    new = choices.choice(able)
    attributes = {
        name: _renamed(value, old.name, new) for name, value in instruction.attributes.items()
    }
    return _replaced(module, computation, instruction, instruction._replace(attributes=attributes))


def _signature(computation: Computation) -> object:
    return [p.shape for p in computation.parameters], computation.root_instruction.shape


def _renamed(value: Attribute, old: str, new: str) -> Attribute:
    if isinstance(value, tuple):
        return tuple(new if name == old else name for name in value)  # type: ignore[return-value]
    return new if value == old else value


def other_number(choices: Choices, module: Module) -> Module | None:
    """Change one number of an attribute: a dimension, a bound, a field of a window, a flag."""

    def has_numbers(instruction: Instruction) -> bool:
        return instruction.opcode not in _GIVEN and any(_numbered(instruction))

    place = _any(choices, module, has_numbers)
    if place is None:
        return None
    computation, instruction = place
    name = choices.choice([*_numbered(instruction)])
    value = instruction.attributes[name]
    old = numbers(value)
    index = choices.integer(0, len(old) - 1)
    new = choices.choice((old[index] + 1, old[index] - 1, 0, 1, choices.choice(old)))
    attributes = {**instruction.attributes, name: with_number(value, index, new)}
    changed = instruction._replace(attributes=attributes)
    return transformed_module(_replaced(module, computation, instruction, changed), lambda s: s)


def _numbered(instruction: Instruction) -> Sequence[str]:
    """List the attributes that have numbers."""
    return [n for n, v in instruction.attributes.items() if n not in _KEPT and numbers(v)]


def inserted(choices: Choices, module: Module) -> Module | None:
    """Change a value for one of its users: by an elementwise instruction, or to another type and
    back."""
    place = _any(choices, module, lambda i: bool(i.operands))
    if place is None:
        return None
    computation, user = place
    number = choices.integer(0, len(user.operands) - 1)
    name = user.operands[number]
    shape = next(i.shape for i in computation.instructions if i.name == name)
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_array or shape.is_dynamic:
        return None
    added = _added(choices, shape, name, _earlier(computation, user, shape))
    return _replaced(module, computation, user, *added, _reading(user, number, added[-1].name))


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


def left_out(choices: Choices, module: Module) -> Module | None:
    """Leave an instruction out: what reads it reads an operand of the same shape."""
    place = _any(choices, module, lambda i: bool(i.operands))
    if place is None:
        return None
    computation, instruction = place
    shapes = {i.name: i.shape for i in computation.instructions}
    able = [name for name in instruction.operands if shapes[name] == instruction.shape]
    if not able:
        return None
    new = choices.choice(able)
    instructions = tuple(
        i._replace(operands=tuple(new if n == instruction.name else n for n in i.operands))
        for i in computation.instructions
        if i is not instruction
    )
    root = new if computation.root == instruction.name else computation.root
    return _with(module, replace(computation, instructions=instructions, root=root))


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
