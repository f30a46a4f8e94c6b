"""Define simplification rules for small constants: fold what rearranges them, and arithmetic of
integers, as indices of updates and slices are made of.

Scalars are literals in the kernels that use them, arrays of constants lie in memory: so nothing
that makes an array of a scalar is folded. Floating-point arithmetic is left to the generated code,
which rounds in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from hlo.literal import Literal
from hlo.module import Instruction
from hlo.passes.rewriting import Answer, array, constant_value, integers, slices
from hlo.passes.value_facts import Rule, ValueFacts
from hlo.values import Array

_MOST = 64  # elements of a constant that is rearranged here

COMPARISONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _constant(instruction: Instruction, value: Array) -> Instruction:
    """Replace an instruction by a constant."""
    literal = Literal(instruction.shape, np.asarray(value))
    return instruction._replace(opcode="constant", operands=(), attributes={"literal": literal})


def _values(facts: ValueFacts, instruction: Instruction) -> list[Array] | None:
    """Return the operands' values, if they are all small constants."""
    found = []
    for number in range(len(instruction.operands)):
        value = constant_value(facts.operand(instruction, number))
        if value is None or value.size > _MOST:
            return None
        found.append(value)
    return found


def _rearranged(
    rearrange: Callable[[Instruction, Array], Array], facts: ValueFacts, instruction: Instruction
) -> Answer:
    """Fold an instruction that rearranges a constant array."""
    values = _values(facts, instruction)
    if values is None or values[0].ndim == 0:
        return None
    return _constant(instruction, rearrange(instruction, values[0]))


def _reshaped(instruction: Instruction, value: Array) -> Array:
    return value.reshape(array(instruction.shape).dims)


def _sliced(instruction: Instruction, value: Array) -> Array:
    return value[tuple(slice(*window) for window in slices(instruction, "slice"))].copy()


def _transposed(instruction: Instruction, value: Array) -> Array:
    return np.ascontiguousarray(value.transpose(integers(instruction, "dimensions")))


def _reversed(instruction: Instruction, value: Array) -> Array:
    return np.ascontiguousarray(np.flip(value, integers(instruction, "dimensions")))


def _integers(facts: ValueFacts, instruction: Instruction) -> list[Array] | None:
    """Return the operands' values, if all are scalar constants, integers or predicates that NumPy
    has itself, and the result is one, too."""
    types = [array(instruction.shape).element_type]
    types += [facts.array(instruction, n).element_type for n in range(len(instruction.operands))]
    if any(one.numpy.kind not in "iub" or one.bits < 8 and one.kind != "pred" for one in types):
        return None
    values = _values(facts, instruction)
    return None if values is None or any(value.ndim for value in values) else values


def _computed(compute: Callable[..., Array], facts: ValueFacts, instruction: Instruction) -> Answer:
    """Fold an operation on bits, or a choice between two numbers."""
    values = _integers(facts, instruction)
    return None if values is None else _constant(instruction, compute(*values))


def _added(
    compute: Callable[[Array, Array], Array], facts: ValueFacts, instruction: Instruction
) -> Answer:
    """Fold integer arithmetic, modulo 2^bits."""
    if array(instruction.shape).element_type.kind == "pred":
        return None
    with np.errstate(over="ignore"):
        return _computed(compute, facts, instruction)


def _converted(facts: ValueFacts, instruction: Instruction) -> Answer:
    """Fold a conversion between integers, modulo 2^bits; one to pred tests for zero."""
    values = _integers(facts, instruction)
    if values is None:
        return None
    return _constant(instruction, values[0].astype(array(instruction.shape).element_type.numpy))


def _compared(facts: ValueFacts, instruction: Instruction) -> Answer:
    """Fold a comparison of integers."""
    return _computed(COMPARISONS[str(instruction.attributes["direction"])], facts, instruction)


def _selected(facts: ValueFacts, instruction: Instruction) -> Answer:
    """select(true, x, y) is x, select(false, x, y) is y; also where all elements have one
    predicate."""
    predicate = facts.splat(instruction.operands[0])
    if predicate is None:
        return None
    return instruction.operands[1 if predicate else 2]


def _slice_at_constants(facts: ValueFacts, instruction: Instruction) -> Answer:
    """dynamic-slice at constant start indices is a slice; starts are clamped to the operand."""
    operand, starts = facts.array(instruction), []
    for number, extent in enumerate(operand.dims, 1):
        if number >= len(instruction.operands):
            return None  # starts as one array, of before 2019
        start = facts.splat(instruction.operands[number])
        if start is None:
            return None
        starts.append((int(start), extent))
    window = tuple(
        (first := min(max(start, 0), extent - size), first + size, 1)
        for (start, extent), size in zip(starts, array(instruction.shape).dims, strict=True)
    )
    return instruction._replace(
        opcode="slice", operands=instruction.operands[:1], attributes={"slice": window}
    )


RULES: dict[str, tuple[Rule, ...]] = {
    "reshape": (partial(_rearranged, _reshaped),),
    "slice": (partial(_rearranged, _sliced),),
    "dynamic-slice": (_slice_at_constants,),
    "transpose": (partial(_rearranged, _transposed),),
    "reverse": (partial(_rearranged, _reversed),),
    "convert": (_converted,),
    "compare": (_compared,),
    "select": (_selected,),
    "add": (partial(_added, np.add),),
    "subtract": (partial(_added, np.subtract),),
    "multiply": (partial(_added, np.multiply),),
    "maximum": (partial(_computed, np.maximum),),
    "minimum": (partial(_computed, np.minimum),),
    "and": (partial(_computed, np.bitwise_and),),
    "or": (partial(_computed, np.bitwise_or),),
    "xor": (partial(_computed, np.bitwise_xor),),
    "not": (partial(_computed, np.invert),),
}
