"""Define simplification rules for arithmetic, each exact for every operand: signed zeros,
infinities and NaN included (any NaN may stand for any other)."""

from __future__ import annotations

from functools import partial

import numpy as np

from hlo.module import Instruction
from hlo.passes.rewriting import Answer
from hlo.passes.value_facts import Rule, ValueFacts
from hlo.types import F32, F64, ElementType


def _same_shape(facts: ValueFacts, instruction: Instruction) -> Answer:
    """Replace a conversion to the same shape by its operand."""
    return instruction.operands[0] if facts.shape(instruction) == instruction.shape else None


def _embeds(source: ElementType, target: ElementType) -> bool:
    """Return whether ``convert`` from ``source`` to ``target`` is exact for every value."""
    if source.kind == "pred":
        # True is -1 in s1, the one integer type that lacks 1.
        return (target.is_integer and target.name != "s1") or target in (F32, F64)
    if source.is_float:
        return target is F64 or (target is F32 and source.bits < 32)
    if source.kind in ("signed", "unsigned") and target.is_integer:
        same = source.kind == target.kind and source.bits <= target.bits
        return same or (source.kind == "unsigned" and source.bits < target.bits)
    if source.is_integer:
        return (target is F64 and source.bits <= 32) or (target is F32 and source.bits <= 16)
    return False


def _convert_of_convert(facts: ValueFacts, instruction: Instruction) -> Answer:
    """convert(convert(x)) is convert(x) if the first conversion is exact.

    Except integer or pred → float → integer: a float saturates when converted, an integer wraps
    (true is 1.0, which is 0 in s1, but -1 if converted at once).
    """
    inner = facts.operand(instruction)
    if inner.opcode != "convert":
        return None
    source, between = facts.array(inner).element_type, facts.array(instruction).element_type
    target = getattr(instruction.shape, "element_type", None)
    assert isinstance(target, ElementType)
    if not _embeds(source, between):
        return None
    if between.is_float and not source.is_float and not target.is_float:
        return None
    return instruction._replace(operands=inner.operands)


def _dot_of_converts(facts: ValueFacts, instruction: Instruction) -> Answer:
    """dot(convert(x), y) is dot(x, y) if the conversion is exact: products and sums stay the same.

    Except where the operand's type decides more than its values: how the sum is converted to a
    result of another kind, or an ``algorithm`` that prescribes operand types.
    """
    result = getattr(instruction.shape, "element_type", None)
    assert isinstance(result, ElementType)
    operands = list(instruction.operands)
    for number in range(2):
        inner = facts.operand(instruction, number)
        if inner.opcode != "convert":
            continue
        source = facts.array(inner).element_type
        target = facts.array(instruction, number).element_type
        of_kind = (
            (source.is_float and result.is_float and (target is not F64 or result is F64))
            or (source.is_integer and target.is_integer and result.is_integer)
        )  # fmt: skip
        if of_kind and _embeds(source, target):
            operands[number] = inner.operands[0]
    if "algorithm" in instruction.attributes or tuple(operands) == instruction.operands:
        return None
    return instruction._replace(operands=tuple(operands))


def _neutral(value: float, facts: ValueFacts, instruction: Instruction) -> Answer:
    """``x op value`` is x, where ``value`` is the neutral element of op.

    Not for complex numbers, whose product is not componentwise: (∞ + 0i)(1 + 0i) = ∞ + NaN i.
    """
    shape = facts.array(instruction)
    number = facts.splat(instruction.operands[1])
    if number is None or shape.is_complex or shape.element_type.kind == "pred":
        return None
    if shape.is_integer:
        return instruction.operands[0] if int(number) == value else None
    wide = np.float64(number)
    same = wide == value and np.signbit(wide) == np.signbit(value)
    return instruction.operands[0] if same else None


def _add_zero(facts: ValueFacts, instruction: Instruction) -> Answer:
    """x + -0 is x for every float x (but -0 + +0 is +0), and so is an integer plus 0."""
    return _neutral(0.0 if facts.array(instruction).is_integer else -0.0, facts, instruction)


def _involution(opcode: str, facts: ValueFacts, instruction: Instruction) -> Answer:
    """f(f(x)) is x, for an involution f."""
    inner = facts.operand(instruction)
    return inner.operands[0] if inner.opcode == opcode else None


def _negated_twice(facts: ValueFacts, instruction: Instruction) -> Answer:
    """-(-x) is x; not in f8e8m0fnu, which has no negative numbers, so that -x is NaN."""
    if facts.array(instruction).element_type.name == "f8e8m0fnu":
        return None
    return _involution("negate", facts, instruction)


def _part(number: int, facts: ValueFacts, instruction: Instruction) -> Answer:
    """real(complex(a, b)) is a, imag(complex(a, b)) is b: operand ``number``."""
    inner = facts.operand(instruction)
    return inner.operands[number] if inner.opcode == "complex" else None


def _equal_branches(facts: ValueFacts, instruction: Instruction) -> Answer:
    """select(p, x, x) is x."""
    _, on_true, on_false = instruction.operands
    return on_true if on_true == on_false else None


RULES: dict[str, tuple[Rule, ...]] = {
    "convert": (_same_shape, _convert_of_convert),
    "bitcast-convert": (_same_shape,),
    "dot": (_dot_of_converts,),
    "add": (_add_zero,),
    "subtract": (partial(_neutral, 0.0),),
    "multiply": (partial(_neutral, 1.0),),
    "divide": (partial(_neutral, 1.0),),
    "maximum": (partial(_neutral, -np.inf),),
    "minimum": (partial(_neutral, np.inf),),
    "negate": (_negated_twice,),
    "not": (partial(_involution, "not"),),
    "real": (partial(_part, 0),),
    "imag": (partial(_part, 1),),
    "select": (_equal_branches,),
}
