"""Elementwise ops: the operands' shapes agree, and the element type decides what is allowed.

Sources: XLA's operation semantics; ``shape_inference.cc`` (InferUnaryOpShape and others).
"""

from __future__ import annotations

from collections.abc import Callable

from hlo.ops.constraints import array, arrays, require, same_dims
from hlo.ops.element_types import is_order, require_element_type
from hlo.types import C64, C128, F32, F64, PARTS, PRED, ArrayShape, ElementType, bounded

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
# By the element type's kind; pred is compared as unsigned (XLA's DefaultComparisonType).
COMPARISONS = {
    "FLOAT": ("float", "complex"),
    "TOTALORDER": ("float",),
    "SIGNED": ("signed",),
    "UNSIGNED": ("unsigned", "pred"),
}
_WHOLES = {F32: C64, F64: C128}


def _plain(shape: ArrayShape, element_type: ElementType | None = None) -> ArrayShape:
    return ArrayShape(element_type or shape.element_type, shape.dims, shape.dynamic)


def _unary(opcode: str) -> Callable[[ArrayShape], ArrayShape]:
    def unary(operand: ArrayShape) -> ArrayShape:
        """C1: an array; C2: of an element type that the op is defined for."""
        shape = array("C1", operand)
        require_element_type("C2", opcode, shape)
        return _plain(shape)

    return unary


def _binary(opcode: str) -> Callable[[ArrayShape, ArrayShape], ArrayShape]:
    def binary(lhs: ArrayShape, rhs: ArrayShape) -> ArrayShape:
        """C1: arrays; C2: of a type that the op is defined for; C3: of the same type and dims."""
        shapes = arrays("C1", (lhs, rhs))
        require_element_type("C2", opcode, shapes[0])
        same = lhs.element_type is rhs.element_type
        require("C3", same, f"{lhs} and {rhs} differ in their element types")
        return bounded(lhs.element_type, lhs.dims, same_dims("C3", shapes))

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


def abs_(operand: ArrayShape) -> ArrayShape:
    """C1: an array; C2: of signed numbers. The magnitude of a complex number is a float."""
    shape = array("C1", operand)
    require_element_type("C2", "abs", shape)
    return _plain(shape, PARTS.get(shape.element_type))


def _part(operand: ArrayShape) -> ArrayShape:
    """C1: an array; C2: of floats or complex numbers."""
    shape = array("C1", operand)
    require_element_type("C2", "real", shape)
    return _plain(shape, PARTS.get(shape.element_type))


real = imag = _part


def complex_(real: ArrayShape, imag: ArrayShape) -> ArrayShape:
    """C1: arrays; C2: of f32 or f64; C3: of the same type and dims."""
    shapes = arrays("C1", (real, imag))
    require_element_type("C2", "complex", shapes[0])
    same = real.element_type is imag.element_type
    require("C3", same, f"{real} and {imag} differ in their element types")
    return bounded(_WHOLES[real.element_type], real.dims, same_dims("C3", shapes))


def is_finite(operand: ArrayShape) -> ArrayShape:
    """C1: an array; C2: of floats."""
    shape = array("C1", operand)
    require_element_type("C2", "is-finite", shape)
    return _plain(shape, PRED)


def convert(operand: ArrayShape, *, shape: ArrayShape) -> ArrayShape:
    """C1: arrays of the same dims. What a complex number loses as a real one is its imaginary part
    (StableHLO's definition)."""
    source, target = array("C1", operand), array("C1", shape, "result")
    require("C1", source.dims == target.dims, f"{source} and {target} differ in their dimensions")
    return _plain(source, target.element_type)


def stochastic_convert(operand: ArrayShape, random: ArrayShape, *, shape: ArrayShape) -> ArrayShape:
    """C1: same dims; C2: a float, and unsigned random bits of its width; C3: to an integer."""
    shapes = arrays("C1", (operand, random, shape))
    dynamic = same_dims("C1", shapes[:2])
    require_element_type("C2", "stochastic-convert", operand)
    bits = random.element_type
    fits = bits.kind == "unsigned" and bits.bits == operand.element_type.bits
    require("C2", fits, f"random bits {random} are not unsigned of the width of {operand}")
    require("C3", shape.is_integer, f"{shape} is not of an integer type")
    return bounded(shape.element_type, operand.dims, dynamic)


def reduce_precision(operand: ArrayShape, *, exponent_bits: int, mantissa_bits: int) -> ArrayShape:
    """C1: an array of floats; C2: 1 <= exponent_bits; C3: 0 <= mantissa_bits."""
    shape = array("C1", operand)
    require_element_type("C1", "reduce-precision", shape)
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
    known = not type or type in COMPARISONS
    require("C3", known, f"type={type}: one of {', '.join(COMPARISONS)}")
    fits = not type or lhs.element_type.kind in COMPARISONS[type]
    require("C3", fits, f"type={type} does not fit {lhs}")
    ordered = direction in ("EQ", "NE") or is_order(lhs.element_type)
    require("C4", ordered, f"direction={direction} is not defined on {lhs}")
    return bounded(PRED, lhs.dims, dynamic)


def clamp(min: ArrayShape, operand: ArrayShape, max: ArrayShape) -> ArrayShape:
    """C1: arrays; C2: of the same type, not complex; C3: min and max are scalars or of the
    operand's dims."""
    arrays("C1", (min, operand, max))
    require_element_type("C2", "clamp", operand)
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
