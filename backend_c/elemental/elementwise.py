"""Build one element of each elementwise op: an operation on the operands' elements there.

result[i] = op(operands[0][i], operands[1][i], …), where a scalar operand stands for an array of
that value in the ops that allow it (clamp, select). What an operation means on a type (wrapping,
rounding, NaN, saturation) is in the tables of :mod:`backend_c.render.operations` and the runtime
headers.
"""

from __future__ import annotations

from collections.abc import Callable

from backend_c.ir.element import Element, widened
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import apply
from hlo.types import C64, C128, F32, F64, PARTS, PRED, S32, S64, ArrayShape, ElementType

__all__ = [
    "abs_",
    "acos",
    "acosh",
    "add",
    "and_",
    "asin",
    "asinh",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "clamp",
    "compare",
    "complex_",
    "convert",
    "cosine",
    "cosh",
    "count_leading_zeros",
    "divide",
    "erf",
    "exponential",
    "exponential_minus_one",
    "floor",
    "imag",
    "is_finite",
    "log",
    "log_plus_one",
    "logistic",
    "maximum",
    "minimum",
    "mulhi",
    "multiply",
    "negate",
    "not_",
    "or_",
    "popcnt",
    "power",
    "real",
    "reduce_precision",
    "remainder",
    "round_nearest_afz",
    "round_nearest_even",
    "rsqrt",
    "select",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sine",
    "sinh",
    "sqrt",
    "stochastic_convert",
    "subtract",
    "tan",
    "tanh",
    "xor",
]


def _sizes(*operands: Element) -> tuple[Expr, ...]:
    """Return the actual sizes of the first bounded operand; those of operands agree."""
    return next((operand.sizes for operand in operands if operand.sizes), ())


def _at(operand: Element, index: tuple[Expr, ...]) -> Expr:
    """Return an operand's element; a scalar operand is broadcast."""
    return operand.at(*index) if operand.shape.rank else operand.at()


def _elementwise(
    operation: str, operands: tuple[Element, ...], element_type: ElementType | None = None
) -> Element:
    """Build ``operation`` at each index; the result has the dims of the widest operand."""
    # The others are scalars, or have the same dims.
    widest = max((operand.shape for operand in operands), key=lambda shape: shape.rank)
    result = element_type or operands[0].shape.element_type

    def at(*index: Expr) -> Expr:
        return apply(operation, *(_at(operand, index) for operand in operands), type=result)

    return Element(ArrayShape(result, widest.dims, widest.dynamic), at, _sizes(*operands))


def _unary(operation: str) -> Callable[[Element], Element]:
    """Return the builder of a unary op."""

    def unary(operand: Element) -> Element:
        return _elementwise(operation, (operand,))

    return unary


def _binary(operation: str) -> Callable[[Element, Element], Element]:
    """Return the builder of a binary op."""

    def binary(lhs: Element, rhs: Element) -> Element:
        return _elementwise(operation, (lhs, rhs))

    return binary


acos = _unary("acos")
acosh = _unary("acosh")
asin = _unary("asin")
asinh = _unary("asinh")
atanh = _unary("atanh")
cbrt = _unary("cbrt")
ceil = _unary("ceil")
cosine = _unary("cosine")
cosh = _unary("cosh")
count_leading_zeros = _unary("count-leading-zeros")
erf = _unary("erf")
exponential = _unary("exponential")
exponential_minus_one = _unary("exponential-minus-one")
floor = _unary("floor")
log = _unary("log")
log_plus_one = _unary("log-plus-one")
logistic = _unary("logistic")
negate = _unary("negate")
not_ = _unary("not")
popcnt = _unary("popcnt")
round_nearest_afz = _unary("round-nearest-afz")
round_nearest_even = _unary("round-nearest-even")
rsqrt = _unary("rsqrt")
sign = _unary("sign")
sine = _unary("sine")
sinh = _unary("sinh")
sqrt = _unary("sqrt")
tan = _unary("tan")
tanh = _unary("tanh")

add = _binary("add")
and_ = _binary("and")
atan2 = _binary("atan2")
divide = _binary("divide")
maximum = _binary("maximum")
minimum = _binary("minimum")
mulhi = _binary("mulhi")
multiply = _binary("multiply")
or_ = _binary("or")
power = _binary("power")
remainder = _binary("remainder")
shift_left = _binary("shift-left")
shift_right_arithmetic = _binary("shift-right-arithmetic")
shift_right_logical = _binary("shift-right-logical")
subtract = _binary("subtract")
xor = _binary("xor")


def abs_(operand: Element) -> Element:
    """result[i] = |operand[i]|, real for complex numbers."""
    part = PARTS.get(operand.shape.element_type)
    return _elementwise("abs", (operand,), part)


def real(operand: Element) -> Element:
    """result[i] = Re(operand[i])."""
    part = PARTS.get(operand.shape.element_type)
    return operand if part is None else _elementwise("real", (operand,), part)


def imag(operand: Element) -> Element:
    """result[i] = Im(operand[i]), 0 for floats."""
    part = PARTS.get(operand.shape.element_type)
    if part is not None:
        return _elementwise("imag", (operand,), part)
    zero = Constant(operand.shape.element_type, 0.0)
    return Element(operand.shape, lambda *index: zero, operand.sizes)


def complex_(real: Element, imag: Element) -> Element:
    """result[i] = real[i] + imag[i] * i."""
    whole = C64 if real.shape.element_type is F32 else C128
    return _elementwise("complex", (real, imag), whole)


def is_finite(operand: Element) -> Element:
    """result[i] = operand[i] is neither infinite nor NaN."""
    return _elementwise("is-finite", (operand,), PRED)


def convert(operand: Element, *, shape: ArrayShape) -> Element:
    """result[i] = operand[i] in the element type of ``shape``; Re(operand[i]) if that is real."""
    if operand.shape.element_type is shape.element_type:
        return operand
    if operand.shape.is_complex and not shape.is_complex:
        return convert(real(operand), shape=shape)
    return _elementwise("convert", (operand,), shape.element_type)


def stochastic_convert(operand: Element, random: Element, *, shape: ArrayShape) -> Element:
    """result[i] = trunc(operand[i]), or one further from 0 where ``random`` says so.

    It does where random[i] < frac(|operand[i]|) * 2**bits, ``bits`` being the width of ``random``:
    so the expected value is the operand. NaN becomes 0; saturates.
    """

    def at(*index: Expr) -> Expr:
        value, word = operand.at(*index), random.at(*index)
        wide = widened(value)
        whole = apply("floor", apply("abs", wide))
        scale = Constant(F64, 2.0**word.type.bits)
        fraction = apply("multiply", apply("subtract", apply("abs", wide), whole), scale)
        below = apply("compare-LT", word, apply("convert", fraction, type=word.type), type=PRED)
        one, zero = Constant(F64, 1.0), Constant(F64, 0.0)
        rounded = apply("add", whole, apply("select", below, one, zero, type=F64))
        negative = apply("compare-LT", wide, zero, type=PRED)
        # The sign goes back on at the end: rounding is away from zero on either side.
        signed = apply("select", negative, apply("negate", rounded), rounded, type=F64)
        return apply("convert", signed, type=shape.element_type)

    dims = operand.shape.dims
    result = ArrayShape(shape.element_type, dims, operand.shape.dynamic)
    return Element(result, at, _sizes(operand, random))


def reduce_precision(operand: Element, *, exponent_bits: int, mantissa_bits: int) -> Element:
    """result[i] = operand[i] rounded to a format of ``exponent_bits`` and ``mantissa_bits``."""
    bits = [Constant(S32, exponent_bits), Constant(S32, mantissa_bits)]

    def at(*index: Expr) -> Expr:
        return apply("reduce-precision", operand.at(*index), *bits)

    return Element(operand.shape, at, operand.sizes)


def compare(lhs: Element, rhs: Element, *, direction: str, type: str = "") -> Element:
    """result[i] = lhs[i] DIRECTION rhs[i]; TOTALORDER compares keys in the values' order."""
    # Integers and pred are totally ordered as they are.
    if type != "TOTALORDER" or not lhs.shape.is_float:
        return _elementwise(f"compare-{direction}", (lhs, rhs), PRED)
    key = S64 if lhs.shape.element_type is F64 else S32
    keys = tuple(_elementwise("total-order", (operand,), key) for operand in (lhs, rhs))
    return _elementwise(f"compare-{direction}", keys, PRED)


def clamp(min: Element, operand: Element, max: Element) -> Element:
    """result[i] = min(max, max(min, operand[i]))."""
    element_type = operand.shape.element_type
    at_least = _elementwise("maximum", (min, operand), element_type)
    return _elementwise("minimum", (max, at_least), element_type)


def select(pred: Element, on_true: Element, on_false: Element) -> Element:
    """result[i] = on_true[i] where pred[i], else on_false[i]."""
    return _elementwise("select", (pred, on_true, on_false), on_true.shape.element_type)
