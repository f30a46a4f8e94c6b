"""Evaluate elementwise ops: each element of the result from one element of each operand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from hlo.errors import Unsupported
from hlo.types import ELEMENT_TYPES, F32, F64, ArrayShape, ElementType
from hlo.values import Array
from interp.exact import complex_arithmetic, conversion, integers
from interp.exact.conversion import converted, is_native, total_order, type_of, widened, wrapped
from interp.exact.elementary_functions import elementary
from interp.exact.rounding import rounded

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

Function = Callable[..., Any]  # of NumPy arrays
Meaning = Callable[[ElementType], Function]  # what a function is on an element type


def _float(function: Function) -> Meaning:
    """Extend a float function to types narrower than f32: computed in float64 and rounded once,
    which is exact for + - * / sqrt (53 bits are more than twice what those types have)."""

    def on(element_type: ElementType) -> Function:
        if element_type in (F32, F64):
            return function
        return lambda *operands: rounded(
            np.asarray(function(*map(widened, operands))), element_type
        )

    return on


def _integer(function: Function) -> Meaning:
    """Extend an integer function, which NumPy wraps, to types narrower than 8 bits: computed in 8
    bits."""

    def on(element_type: ElementType) -> Function:
        if element_type.bits >= 8:
            return function
        return lambda *operands: wrapped(
            np.asarray(function(*map(widened, operands))), element_type
        )

    return on


def _sized(function: Function) -> Meaning:
    """Extend an integer function that takes the width in bits as its last argument."""

    def on(element_type: ElementType) -> Function:
        return _integer(lambda *wide: function(*wide, element_type.bits))(element_type)

    return on


def _plain(function: Function) -> Meaning:
    return lambda element_type: function


def _elementary(name: str) -> Meaning:
    return lambda element_type: partial(elementary, name)


Rows = dict[str, Meaning]  # by kind of element type


def _rows(
    float_: Meaning | None = None,
    integer: Meaning | None = None,
    pred: Meaning | None = None,
    complex_: Meaning | None = None,
) -> Rows:
    kinds = {"float": float_, "signed": integer, "unsigned": integer, "pred": pred}
    rows = kinds | {"complex": complex_}
    return {kind: function for kind, function in rows.items() if function is not None}


def _by_type(rows: Rows) -> Mapping[np.dtype[Any], Function]:
    """Expand rows by kind of type to a table of functions by NumPy type."""
    return {
        element_type.numpy: rows[element_type.kind](element_type)
        for element_type in ELEMENT_TYPES.values()
        if element_type.kind in rows
    }


def _meaningless(operand: Array) -> Unsupported:
    return Unsupported(f"this operation has no meaning on {type_of(operand)}")


def _unary(rows: Rows) -> Callable[[Array], Array]:
    functions = _by_type(rows)

    def op(operand: Array) -> Array:
        function = functions.get(operand.dtype)
        if function is None:
            raise _meaningless(operand)
        return function(operand)  # type: ignore[no-any-return]

    return op


def _binary(rows: Rows) -> Callable[[Array, Array], Array]:
    functions = _by_type(rows)

    def op(lhs: Array, rhs: Array) -> Array:
        function = functions.get(lhs.dtype)
        if function is None:
            raise _meaningless(lhs)
        return function(lhs, rhs)  # type: ignore[no-any-return]

    return op


def _function(name: str) -> Callable[[Array], Array]:
    """Make a unary elementary function of floats and complex numbers."""
    return _unary(_rows(_elementary(name), complex_=_elementary(name)))


def _maximum(lhs: Array, rhs: Array) -> Array:
    """Compute the maximum; NaN if either is; -0 < +0."""
    # Equal numbers that are not the same are -0 and +0, which np.maximum does not order.
    tied = np.where(np.signbit(lhs), rhs, lhs)
    return np.where(lhs == rhs, tied, np.maximum(lhs, rhs))


def _minimum(lhs: Array, rhs: Array) -> Array:
    """Compute the minimum; NaN if either is; -0 < +0."""
    tied = np.where(np.signbit(lhs), lhs, rhs)
    return np.where(lhs == rhs, tied, np.minimum(lhs, rhs))


def _sign(operand: Array) -> Array:
    """Compute the sign; zeros keep theirs, and NaN stays."""
    # np.sign would make +0 of -0.
    keep = (operand == 0) | np.isnan(operand)
    return np.where(keep, operand, np.copysign(operand.dtype.type(1), operand))


def _round_half_away(operand: Array) -> Array:
    # Not floor(x + 0.5), whose sum rounds: 0.49999997 + 0.5 is 1 in f32.
    whole = np.trunc(operand)  # operand - whole is exact
    one = np.copysign(operand.dtype.type(1), operand)
    return np.where(np.abs(operand - whole) >= 0.5, whole + one, whole)


def _zero(element_type: ElementType) -> Function:
    """Return a zero, NaN where the type has none."""
    return lambda operand: rounded(np.zeros(operand.shape), element_type)


add = _binary(
    _rows(_float(np.add), _integer(np.add), _plain(np.logical_or), _plain(np.add)),
)
subtract = _binary(_rows(_float(np.subtract), _integer(np.subtract), complex_=_plain(np.subtract)))
multiply = _binary(
    _rows(
        _float(np.multiply),
        _integer(np.multiply),
        _plain(np.logical_and),
        _plain(complex_arithmetic.multiply),
    )
)
divide = _binary(
    _rows(_float(np.divide), _sized(integers.divide), complex_=_plain(complex_arithmetic.divide))
)
remainder = _binary(_rows(_float(np.fmod), _sized(integers.remainder)))
maximum = _binary(_rows(_float(_maximum), _integer(np.maximum), _plain(np.logical_or)))
minimum = _binary(_rows(_float(_minimum), _integer(np.minimum), _plain(np.logical_and)))
power = _binary(
    _rows(_elementary("power"), _sized(integers.power), complex_=_elementary("power")),
)
atan2 = _binary(_rows(_elementary("atan2"), complex_=_elementary("atan2")))
and_ = _binary(_rows(None, _integer(np.bitwise_and), _plain(np.logical_and)))
or_ = _binary(_rows(None, _integer(np.bitwise_or), _plain(np.logical_or)))
xor = _binary(_rows(None, _integer(np.bitwise_xor), _plain(np.logical_xor)))
shift_left = _binary(_rows(None, _sized(integers.shift_left)))
shift_right_arithmetic = _binary(_rows(None, _sized(integers.shift_right_arithmetic)))
shift_right_logical = _binary(_rows(None, _sized(integers.shift_right_logical)))
mulhi = _binary(_rows(None, _sized(integers.multiply_high)))

abs_ = _unary(
    _rows(_float(np.abs), _integer(np.abs), complex_=_plain(complex_arithmetic.magnitude))
)
negate = _unary(_rows(_float(np.negative), _integer(np.negative), complex_=_plain(np.negative)))
not_ = _unary(_rows(None, _integer(np.invert), _plain(np.logical_not)))
sign = _unary(
    _rows(_float(_sign), _integer(np.sign), complex_=_plain(complex_arithmetic.sign)),
)
popcnt = _unary(_rows(None, _sized(integers.population_count)))
count_leading_zeros = _unary(_rows(None, _sized(integers.count_leading_zeros)))
ceil = _unary(_rows(_float(np.ceil)))
floor = _unary(_rows(_float(np.floor)))
round_nearest_afz = _unary(_rows(_float(_round_half_away)))
round_nearest_even = _unary(_rows(_float(np.rint)))
is_finite = _unary(_rows(_plain(lambda operand: np.isfinite(widened(operand)))))
sqrt = _unary(_rows(_float(np.sqrt), complex_=_elementary("sqrt")))
real = _unary(_rows(_plain(lambda operand: operand), complex_=_plain(np.real)))
imag = _unary(_rows(_zero, complex_=_plain(np.imag)))

acos = _function("acos")
acosh = _function("acosh")
asin = _function("asin")
asinh = _function("asinh")
atanh = _function("atanh")
cbrt = _function("cbrt")
cosine = _function("cosine")
cosh = _function("cosh")
erf = _function("erf")
exponential = _function("exponential")
exponential_minus_one = _function("exponential_minus_one")
log = _function("log")
log_plus_one = _function("log_plus_one")
logistic = _function("logistic")
rsqrt = _function("rsqrt")
sine = _function("sine")
sinh = _function("sinh")
tan = _function("tan")
tanh = _function("tanh")

_DIRECTIONS: dict[str, Function] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}
_COMPARED_AS_THEY_ARE = frozenset(
    one.numpy for one in ELEMENT_TYPES.values() if one.is_array and is_native(one)
)


def compare(lhs: Array, rhs: Array, *, direction: str, type: str = "") -> Array:
    """Compare as IEEE 754 does: a NaN is unordered, unless ``type`` is TOTALORDER."""
    if type != "TOTALORDER" and lhs.dtype in _COMPARED_AS_THEY_ARE:
        return _DIRECTIONS[direction](lhs, rhs)  # type: ignore[no-any-return]
    in_total = type == "TOTALORDER" and type_of(lhs).is_float
    key = total_order if in_total else widened
    return _DIRECTIONS[direction](key(lhs), key(rhs))  # type: ignore[no-any-return]


def clamp(min: Array, operand: Array, max: Array) -> Array:
    """Compute minimum(max, maximum(operand, min)): NaN if any is, ``max`` where the bounds are
    crossed."""
    return minimum(max, maximum(operand, min))


def select(pred: Array, on_true: Array, on_false: Array) -> Array:
    """Select from ``on_true`` or ``on_false``; ``pred`` is a scalar or has their shape."""
    return np.where(pred, on_true, on_false)


def complex_(real: Array, imag: Array) -> Array:
    """Combine to real + imag * i."""
    # real + 1j * imag would add 0 * imag to the real part: NaN for an infinity, and -0 is lost.
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.result_type(real, 1j))
    result.real, result.imag = real, imag
    return result


def convert(operand: Array, *, shape: ArrayShape) -> Array:
    """Convert to the element type of ``shape``."""
    return converted(operand, shape.element_type)


def reduce_precision(operand: Array, *, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round to fewer exponent and mantissa bits; the type stays."""
    return conversion.reduced_precision(operand, exponent_bits, mantissa_bits)


def stochastic_convert(operand: Array, random: Array, *, shape: ArrayShape) -> Array:
    """Convert to an integer type with stochastic rounding: away from zero where ``random`` is less
    than the fraction times 2 to the number of its bits, else truncated."""
    return conversion.stochastically_converted(operand, random, shape.element_type)
