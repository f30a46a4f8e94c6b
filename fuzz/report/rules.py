"""State the rule that a result violates in one plain sentence, by opcode and kind of type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuzz.judge.blame import culprit_in
from hlo.module import Instruction, Module
from hlo.opcodes import ELEMENTARY, IDENTITY, MOVES, ROUNDS, having
from hlo.types import ArrayShape, ElementType, Shape

# abs and negate, too: of -2^(n-1) they are that number itself, which is 2^(n-1) modulo 2^n.
_MODULAR = frozenset(
    ["abs", "add", "convolution", "dot", "multiply", "negate", "power", "subtract"]
)
_NEAREST = "the real result, rounded to the nearest number of its type, ties to even"
_CLAMPED = (
    "start indices are clamped, as the numbers that their type holds, so that the slice lies inside"
)
_DEFINED = "each element is what its definition gives"
_ROUNDED = having(ROUNDS) | having(ELEMENTARY)
_MOVES = having(MOVES) | having(IDENTITY) | {"pad", "concatenate", "gather", "reverse", "sort"}

_OF_ALL: Mapping[str, str] = {
    "dynamic-slice": f"{_CLAMPED}; the elements keep their bits",
    "dynamic-update-slice": f"{_CLAMPED}; all other elements keep their bits",
    "gather": f"{_CLAMPED}; the elements keep their bits",
    "scatter": "updates that do not lie inside are skipped, all others are combined",
    "bitcast-convert": "the bits stay as they are",
    "select": "it gives the bits of one operand or the other",
    "popcnt": "it counts the ones among the bits of the type",
    "count-leading-zeros": "it counts the zeros above the highest one among the bits of the type",
    "reduce-precision": "it rounds to the nearest number of the format, ties to even",
    "is-finite": "it is true of all but infinities and NaN",
    "shift-left": "bits that leave the type are gone; by its width or more it is 0",
    "shift-right-logical": "zeros come in; by the width of the type or more it is 0",
    "shift-right-arithmetic": "copies of the sign come in, however far it shifts",
    "and": "it combines each pair of bits",
    "or": "it combines each pair of bits",
    "xor": "it combines each pair of bits",
    "not": "it inverts each bit",
    "reduce": "it gives the elements combined with the init, in any order",
    "sort": "the elements are reordered and keep their bits",
    "iota": "it gives the index along its dimension",
}
_OF_FLOATS: Mapping[str, str] = {
    "maximum": "it gives the greater operand, and NaN if either is",
    "minimum": "it gives the less operand, and NaN if either is",
    "clamp": "it is minimum(max, maximum(operand, min)), and NaN if any is",
    "floor": "it gives the greatest whole number that is not above the operand",
    "ceil": "it gives the least whole number that is not below the operand",
    "round-nearest-even": "it gives the nearest whole number, ties to the even one",
    "round-nearest-afz": "it gives the nearest whole number, ties away from zero",
    "negate": "it changes the sign alone",
    "abs": "it clears the sign alone",
}
# And of preds, of which true is the greater one.
_OF_INTEGERS: Mapping[str, str] = {
    "divide": "it truncates towards zero; by 0 all bits are ones, and -2^(n-1) / -1 is itself",
    "remainder": "it has the sign of the dividend; by 0 it is the dividend, by -1 it is 0",
    "maximum": "it gives the greater operand",
    "minimum": "it gives the less operand",
    "clamp": "it is minimum(max, maximum(operand, min))",
    "sign": "it is -1, 0 or 1",
}


def rule(module: Module, culprit: str | None = None) -> str:
    """State what the instruction to blame must compute; the sentence begins with its opcode."""
    instruction = culprit_in(module.entry, culprit)
    shapes = {i.name: i.shape for i in module.entry.instructions}
    operands = [shapes[name] for name in instruction.operands if name in shapes]
    return f"`{instruction.opcode}`: {_sentence(instruction, operands)}."


def _sentence(instruction: Instruction, operands: Sequence[Shape]) -> str:
    opcode, shape = instruction.opcode, instruction.shape
    first = operands[0] if operands else None
    if not isinstance(shape, ArrayShape):
        return _DEFINED
    to = shape.element_type
    if opcode == "convert" and isinstance(first, ArrayShape):
        return _conversion(first.element_type, to)
    if opcode == "compare":
        return _comparison(str(instruction.attributes.get("type", "")), first)
    if opcode in _OF_ALL:
        return _OF_ALL[opcode]
    if opcode in _MOVES:
        return "it moves elements, which keep their bits"
    if any(isinstance(one, ArrayShape) and one.is_complex for one in (shape, *operands)):
        return _DEFINED
    return _of_kind(opcode, to)


def _of_kind(opcode: str, to: ElementType) -> str:
    named = _OF_FLOATS if to.is_float else _OF_INTEGERS
    if opcode in named:
        return named[opcode]
    if to.is_integer and opcode in _MODULAR:
        return f"it is exact modulo 2^{to.bits}"
    return f"it gives {_NEAREST}" if to.is_float and opcode in _ROUNDED else _DEFINED


def _conversion(source: ElementType, to: ElementType) -> str:
    if to.kind == "pred":
        return "all but zero is true"
    if to.is_integer:
        if source.is_integer or source.kind == "pred":
            return f"it keeps the low {to.bits} bits"
        return "it truncates towards zero; beyond the type it is the nearest end, of NaN 0"
    return "it rounds to the nearest number of the type, ties to even"


def _comparison(kind: str, first: object) -> str:
    is_float = isinstance(first, ArrayShape) and first.element_type.is_float
    if kind == "TOTALORDER" and is_float:
        return "the order is -NaN < -inf < … < -0 < +0 < … < inf < NaN"
    if is_float:
        return "nothing but NE holds of NaN, and the two zeros are equal"
    return "the numbers are compared as their type holds them"
