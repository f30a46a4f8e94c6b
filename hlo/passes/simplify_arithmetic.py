"""Rules for arithmetic: only what is exact for every operand, signed zeros and infinities too."""

from __future__ import annotations

from functools import partial

import numpy as np

from hlo.module import Instruction
from hlo.passes.value_facts import Answer, Known, Rule
from hlo.types import F32, F64, ElementType


def _same_shape(known: Known, instruction: Instruction) -> Answer:
    return instruction.operands[0] if known.shape(instruction) == instruction.shape else None


def _embeds(source: ElementType, target: ElementType) -> bool:
    """Whether every value of ``source`` is one of ``target``, and ``convert`` gives just that."""
    if source.kind == "pred":
        return target.is_integer or target in (F32, F64)
    if source.is_float:
        return target is F64 or (target is F32 and source.bits < 32)
    if source.kind in ("signed", "unsigned") and target.is_integer:
        same = source.kind == target.kind and source.bits <= target.bits
        return same or (source.kind == "unsigned" and source.bits < target.bits)
    if source.is_integer:
        return (target is F64 and source.bits <= 32) or (target is F32 and source.bits <= 16)
    return False


def _convert_of_convert(known: Known, instruction: Instruction) -> Answer:
    """The first conversion goes if it loses nothing and the second sees the same number.

    From an integer over a float to an integer does not: floats saturate where integers wrap.
    """
    inner = known.operand(instruction)
    if inner.opcode != "convert":
        return None
    source, between = known.array(inner).element_type, known.array(instruction).element_type
    target = getattr(instruction.shape, "element_type", None)
    assert isinstance(target, ElementType)
    if not _embeds(source, between):
        return None
    if source.is_integer and between.is_float and not target.is_float:
        return None
    return instruction._replace(operands=inner.operands)


def _neutral(value: float, known: Known, instruction: Instruction) -> Answer:
    """``x · value`` is x. Complex products are not componentwise, so they stay."""
    shape = known.array(instruction)
    number = known.splat(instruction.operands[1])
    if number is None or shape.is_complex or shape.element_type.kind == "pred":
        return None
    if shape.is_integer:
        return instruction.operands[0] if int(number) == value else None
    wide = np.float64(number)
    same = wide == value and np.signbit(wide) == np.signbit(value)
    return instruction.operands[0] if same else None


def _add_zero(known: Known, instruction: Instruction) -> Answer:
    """x + -0 is x, and so is an integer plus 0; but -0 + +0 is +0."""
    return _neutral(0.0 if known.array(instruction).is_integer else -0.0, known, instruction)


def _of_itself(opcode: str, known: Known, instruction: Instruction) -> Answer:
    inner = known.operand(instruction)
    return inner.operands[0] if inner.opcode == opcode else None


def _negated_twice(known: Known, instruction: Instruction) -> Answer:
    """But f8e8m0fnu has no negative numbers: what is negated is NaN."""
    if known.array(instruction).element_type.name == "f8e8m0fnu":
        return None
    return _of_itself("negate", known, instruction)


def _part(number: int, known: Known, instruction: Instruction) -> Answer:
    inner = known.operand(instruction)
    return inner.operands[number] if inner.opcode == "complex" else None


def _either_way(known: Known, instruction: Instruction) -> Answer:
    _, on_true, on_false = instruction.operands
    return on_true if on_true == on_false else None


RULES: dict[str, tuple[Rule, ...]] = {
    "convert": (_same_shape, _convert_of_convert),
    "bitcast-convert": (_same_shape,),
    "add": (_add_zero,),
    "subtract": (partial(_neutral, 0.0),),
    "multiply": (partial(_neutral, 1.0),),
    "divide": (partial(_neutral, 1.0),),
    "maximum": (partial(_neutral, -np.inf),),
    "minimum": (partial(_neutral, np.inf),),
    "negate": (_negated_twice,),
    "not": (partial(_of_itself, "not"),),
    "real": (partial(_part, 0),),
    "imag": (partial(_part, 1),),
    "select": (_either_way,),
}
