"""Elementwise ops: the operands' shapes agree, and the element type decides what is allowed.

Sources: XLA's operation semantics; ``shape_inference.cc`` (InferUnaryOpShape and others).
"""

from __future__ import annotations

from collections.abc import Callable

from hlo.ops.constraints import Types, array, arrays, of_types, require, same_dims
from hlo.types import C64, C128, F32, F64, PRED, ArrayShape, ElementType, bounded

__all__ = [
    "abs_", "acos", "acosh", "add", "and_", "asin", "asinh", "atan2", "atanh", "cbrt", "ceil",
    "clamp", "compare", "complex_", "convert", "cosine", "cosh", "count_leading_zeros", "divide",
    "erf", "exponential", "exponential_minus_one", "floor", "imag", "is_finite", "log",
    "log_plus_one", "logistic", "maximum", "minimum", "mulhi", "multiply", "negate", "not_", "or_",
    "popcnt", "power", "real", "reduce_precision", "remainder", "round_nearest_afz",
    "round_nearest_even", "rsqrt", "select", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "sign", "sine", "sinh", "sqrt", "stochastic_convert", "subtract", "tan",
    "tanh", "xor",
]  # fmt: skip

_DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
_COMPARISONS = ("", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")
_PARTS = {C64: F32, C128: F64}
_WHOLES = {F32: C64, F64: C128}


def _any(element_type: ElementType) -> bool:
    return element_type.is_array


def _number(element_type: ElementType) -> bool:
    return element_type.is_array and element_type is not PRED


def _integer(element_type: ElementType) -> bool:
    return element_type.is_integer


def _floating(element_type: ElementType) -> bool:
    return element_type.is_float


def _continuous(element_type: ElementType) -> bool:
    return element_type.is_float or element_type.is_complex


def _logical(element_type: ElementType) -> bool:
    return element_type.is_integer or element_type is PRED


def _signed(element_type: ElementType) -> bool:
    return element_type.kind in ("signed", "float", "complex")


def _real(element_type: ElementType) -> bool:
    return element_type.is_integer or element_type.is_float


def _ordered(element_type: ElementType) -> bool:
    return element_type.is_array and not element_type.is_complex


_WANTED: dict[Types, str] = {
    _any: "an array",
    _number: "a number",
    _integer: "an integer",
    _floating: "a float",
    _continuous: "a float or complex",
    _logical: "an integer or pred",
    _signed: "a signed, float or complex",
    _real: "an integer or float",
    _ordered: "an ordered",
}


def _plain(shape: ArrayShape, element_type: ElementType | None = None) -> ArrayShape:
    return ArrayShape(element_type or shape.element_type, shape.dims, shape.dynamic)


def _unary(types: Types) -> Callable[[ArrayShape], ArrayShape]:
    def unary(operand: ArrayShape) -> ArrayShape:
        """C1: an array; C2: of an element type that the op is defined for."""
        shape = array("C1", operand)
        of_types("C2", shape, types, _WANTED[types])
        return _plain(shape)

    return unary


def _binary(types: Types) -> Callable[[ArrayShape, ArrayShape], ArrayShape]:
    def binary(lhs: ArrayShape, rhs: ArrayShape) -> ArrayShape:
        """C1: arrays; C2: of a type that the op is defined for; C3: of the same type and dims."""
        shapes = arrays("C1", (lhs, rhs))
        of_types("C2", shapes[0], types, _WANTED[types])
        same = lhs.element_type is rhs.element_type
        require("C3", same, f"{lhs} and {rhs} differ in their element types")
        return bounded(lhs.element_type, lhs.dims, same_dims("C3", shapes))

    return binary


negate = _unary(_number)
not_ = _unary(_logical)
sign = _unary(_signed)
cbrt = ceil = erf = floor = round_nearest_afz = round_nearest_even = _unary(_floating)
count_leading_zeros = popcnt = _unary(_integer)
(
    acos, acosh, asin, asinh, atanh, cosine, cosh, exponential, exponential_minus_one, log,
    log_plus_one, logistic, rsqrt, sine, sinh, sqrt, tan, tanh,
) = [_unary(_continuous)] * 18  # fmt: skip

add = multiply = _binary(_any)  # of pred: or, and
maximum = minimum = _binary(_ordered)
subtract = divide = power = _binary(_number)
remainder = _binary(_real)
atan2 = _binary(_continuous)
and_ = or_ = xor = _binary(_logical)
mulhi = shift_left = shift_right_arithmetic = shift_right_logical = _binary(_integer)


def abs_(operand: ArrayShape) -> ArrayShape:
    """C1: an array; C2: of signed numbers. The magnitude of a complex number is a float."""
    shape = array("C1", operand)
    of_types("C2", shape, _signed, _WANTED[_signed])
    return _plain(shape, _PARTS.get(shape.element_type))


def _part(operand: ArrayShape) -> ArrayShape:
    """C1: an array; C2: of floats or complex numbers."""
    shape = array("C1", operand)
    of_types("C2", shape, _continuous, _WANTED[_continuous])
    return _plain(shape, _PARTS.get(shape.element_type))


real = imag = _part


def complex_(real: ArrayShape, imag: ArrayShape) -> ArrayShape:
    """C1: arrays; C2: of f32 or f64; C3: of the same type and dims."""
    shapes = arrays("C1", (real, imag))
    of_types("C2", shapes[0], lambda t: t in _WHOLES, "f32 or f64")
    same = real.element_type is imag.element_type
    require("C3", same, f"{real} and {imag} differ in their element types")
    return bounded(_WHOLES[real.element_type], real.dims, same_dims("C3", shapes))


def is_finite(operand: ArrayShape) -> ArrayShape:
    """C1: an array; C2: of floats."""
    shape = array("C1", operand)
    of_types("C2", shape, _floating, _WANTED[_floating])
    return _plain(shape, PRED)


def convert(operand: ArrayShape, *, shape: ArrayShape) -> ArrayShape:
    """C1: arrays of the same dims; C2: a complex number converts to complex only."""
    source, target = array("C1", operand), array("C1", shape, "result")
    require("C1", source.dims == target.dims, f"{source} and {target} differ in their dimensions")
    lossy = source.is_complex and not target.is_complex
    require("C2", not lossy, f"{source} to {target}: take real() or imag() first")
    return _plain(source, target.element_type)


def stochastic_convert(operand: ArrayShape, random: ArrayShape, *, shape: ArrayShape) -> ArrayShape:
    """C1: same dims; C2: a float, and unsigned random bits of its width; C3: to an integer."""
    shapes = arrays("C1", (operand, random, shape))
    dynamic = same_dims("C1", shapes[:2])
    of_types("C2", operand, _floating, _WANTED[_floating])
    bits = random.element_type
    fits = bits.kind == "unsigned" and bits.bits == operand.element_type.bits
    require("C2", fits, f"random bits {random} are not unsigned of the width of {operand}")
    of_types("C3", shape, _integer, _WANTED[_integer])
    return bounded(shape.element_type, operand.dims, dynamic)


def reduce_precision(operand: ArrayShape, *, exponent_bits: int, mantissa_bits: int) -> ArrayShape:
    """C1: an array of floats; C2: 1 <= exponent_bits; C3: 0 <= mantissa_bits."""
    shape = array("C1", operand)
    of_types("C1", shape, _floating, _WANTED[_floating])
    require("C2", exponent_bits >= 1, f"exponent_bits={exponent_bits} is less than 1")
    require("C3", mantissa_bits >= 0, f"mantissa_bits={mantissa_bits} is less than 0")
    return _plain(shape)


def compare(lhs: ArrayShape, rhs: ArrayShape, *, direction: str, type: str = "") -> ArrayShape:
    """C1: arrays of the same type and dims; C2: a known direction; C3: a type that fits; C4: no
    order on complex numbers."""
    shapes = arrays("C1", (lhs, rhs))
    same = lhs.element_type is rhs.element_type
    require("C1", same, f"{lhs} and {rhs} differ in their element types")
    dynamic = same_dims("C1", shapes)
    known = direction in _DIRECTIONS
    require("C2", known, f"direction={direction}: one of {', '.join(_DIRECTIONS)}")
    require("C3", type in _COMPARISONS, f"type={type}: one of {', '.join(_COMPARISONS[1:])}")
    kinds = {"FLOAT": ("float", "complex"), "SIGNED": ("signed",), "UNSIGNED": ("unsigned", "pred")}
    fits = lhs.element_type.kind in kinds.get(type, (lhs.element_type.kind,))
    require("C3", fits, f"type={type} does not fit {lhs}")
    ordered = direction in ("EQ", "NE") or not lhs.is_complex
    require("C4", ordered, f"direction={direction} is not defined on {lhs}")
    return bounded(PRED, lhs.dims, dynamic)


def clamp(min: ArrayShape, operand: ArrayShape, max: ArrayShape) -> ArrayShape:
    """C1: arrays; C2: of the same type, not complex; C3: min and max are scalars or of the
    operand's dims."""
    arrays("C1", (min, operand, max))
    of_types("C2", operand, _ordered, _WANTED[_ordered])
    for bound in (min, max):
        same = bound.element_type is operand.element_type
        require("C2", same, f"{bound} and {operand} differ in their element types")
        fits = not bound.rank or bound.dims == operand.dims
        require("C3", fits, f"{bound} is neither a scalar nor of the dimensions of {operand}")
    return _plain(operand)


def select(pred: ArrayShape, on_true: ArrayShape, on_false: ArrayShape) -> ArrayShape:
    """C1: arrays; C2: of pred; C3: on_true and on_false alike; C4: pred a scalar or of their
    dims."""
    arrays("C1", (pred, on_true, on_false))
    require("C2", pred.element_type is PRED, f"{pred} is not of pred type")
    same = on_true.element_type is on_false.element_type
    require("C3", same, f"{on_true} and {on_false} differ in their element types")
    dynamic = same_dims("C3", (on_true, on_false))
    fits = not pred.rank or pred.dims == on_true.dims
    require("C4", fits, f"{pred} is neither a scalar nor of the dimensions of {on_true}")
    if pred.dynamic:
        dynamic = tuple(a or b for a, b in zip(dynamic, pred.dynamic, strict=True))
    return bounded(on_true.element_type, on_true.dims, dynamic)
