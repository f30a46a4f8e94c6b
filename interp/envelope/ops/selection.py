"""Enclose comparisons, selects and conversions: where an interval straddles, both sides are
legal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hlo.types import F64, ArrayShape
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.boolean_masks import either, is_ever, never
from interp.envelope.complex_numbers import joined, parts
from interp.envelope.enclosure import (
    Enclosure,
    anything,
    finfo,
    hull,
    is_nan,
    is_nan_alone,
    nan_among,
    point,
    rounded_or_wide,
    where,
)
from interp.envelope.interval_rules import (
    Function,
    finished,
    flushed,
    is_subnormal,
    kept_in_f32,
    or_too_large,
)
from interp.envelope.ops.arithmetic import maximum, minimum
from interp.exact.conversion import total_order, widened
from interp.ops import data_movement
from interp.ops import elementwise as exact

__all__ = [
    "clamp",
    "compare",
    "complex_",
    "imag",
    "iota",
    "is_finite",
    "real",
    "reduce_precision",
    "select",
]

_Ends = tuple[Array, Array]
# f16 has their five bits of exponent, so their subnormals are subnormal in f16 (and not in f32).
_SUBNORMAL_IN_F16 = frozenset(("f8e5m2", "f8e5m2fnuz"))

# direction -> where it may hold and where it must, of numbers in a..b and c..d
DIRECTIONS: dict[str, Callable[[_Ends, _Ends], tuple[Array, Array]]] = {
    "EQ": lambda x, y: ((x[0] <= y[1]) & (y[0] <= x[1]), _one(x, y)),
    "NE": lambda x, y: (~_one(x, y), (x[0] > y[1]) | (y[0] > x[1])),
    "LT": lambda x, y: (x[0] < y[1], x[1] < y[0]),
    "LE": lambda x, y: (x[0] <= y[1], x[1] <= y[0]),
    "GT": lambda x, y: (x[1] > y[0], x[0] > y[1]),
    "GE": lambda x, y: (x[1] >= y[0], x[0] >= y[1]),
}


def _one(x: _Ends, y: _Ends) -> Array:
    return np.asarray((x[0] == x[1]) & (y[0] == y[1]) & (x[0] == y[0]))


def iota(*, iota_dimension: int, shape: ArrayShape) -> Enclosure:
    """Enclose iota: a conversion of integers, which may stay wide; the first element is open in a
    type without zero."""
    value = data_movement.iota(iota_dimension=iota_dimension, shape=shape)
    element_type = shape.element_type
    if budget.current().keeps_wide and element_type.is_float and element_type.bits < 32:
        numbers = data_movement.iota(
            iota_dimension=iota_dimension, shape=replace(shape, element_type=F64)
        )
        either = rounded_or_wide(numbers, element_type)
        return where(is_nan(value), anything(value.shape, element_type), either)
    if budget.current() is budget.EXACT or not is_nan(value).any():
        return point(value)
    return where(is_nan(value), anything(value.shape, shape.element_type), point(value))


def truth(may: Array, must: Array) -> Enclosure:
    low, high = np.asarray(must), np.asarray(may)
    if np.array_equal(low, high):
        low = high
    return Enclosure(low, high, never(low.shape))


def compare(lhs: Enclosure, rhs: Enclosure, *, direction: str, type: str = "") -> Enclosure:
    """Enclose comparisons: both answers where intervals overlap, or NaN is legal but not certain.
    For TOTALORDER a NaN may come first or last, as its sign is open, but for that of a single value
    under the budget that permits nothing."""
    if lhs.element_type.is_complex:
        return _compared_by_parts(lhs, rhs, direction)
    in_total = type == "TOTALORDER" and lhs.element_type.is_float
    if lhs is rhs:
        return _compared_with_itself(lhs, direction, in_total)
    kept = [kept_in_f32(x) for x in (lhs, rhs)]
    if any(kept):
        wide = [x[1] if x else _in_f32(y) for x, y in zip(kept, (lhs, rhs), strict=True)]
        return compare(wide[0], wide[1], direction=direction, type=type)
    if not in_total:
        lhs, rhs = flushed(lhs), flushed(rhs)
    key = total_order if in_total else widened
    may, must = DIRECTIONS[direction]((key(lhs.low), key(lhs.high)), (key(rhs.low), key(rhs.high)))
    unordered = lhs.nan | rhs.nan
    if in_total:
        exactly = budget.current() is budget.EXACT
        for operand in (lhs, rhs):
            if not (exactly and operand.is_point):
                may, must = may | operand.nan, must & ~operand.nan
        return truth(may, must)
    if direction == "NE":
        # NaN alone differs from everything, itself included.
        return truth(may | unordered, must | is_nan(lhs.low) | is_nan(rhs.low))
    return truth(may, must & ~unordered)


def _compared_by_parts(lhs: Enclosure, rhs: Enclosure, direction: str) -> Enclosure:
    """Enclose whether complex numbers are equal, if both parts are, or not, if a part is not."""
    ours = parts(lhs)
    theirs = ours if lhs is rhs else parts(rhs)
    real, imag = (compare(*pair, direction=direction) for pair in zip(ours, theirs, strict=True))
    join = np.logical_and if direction == "EQ" else np.logical_or
    return truth(join(real.high, imag.high), join(real.low, imag.low))


def _in_f32(operand: Enclosure) -> Enclosure:
    """Convert f8e8m0fnu to f32, which has all of its numbers."""
    low, high = (x.astype(np.float32) for x in (operand.low, operand.high))
    return Enclosure(low, high, operand.nan)


def _compared_with_itself(value: Enclosure, direction: str, in_total: bool) -> Enclosure:
    """Enclose the comparison of a value with itself, which tests for NaN, whatever its interval."""
    nowhere = never(value.shape)
    if direction in ("LT", "GT") or (in_total and direction == "NE"):
        return point(nowhere)
    if in_total:
        return point(~nowhere)
    only_nan = is_nan_alone(value)
    return truth(value.nan, only_nan) if direction == "NE" else truth(~only_nan, ~value.nan)


def clamp(min: Enclosure, operand: Enclosure, max: Enclosure) -> Enclosure:
    """Enclose clamp as minimum(max, maximum(operand, min))."""
    return minimum(max, maximum(operand, min))


def select(pred: Enclosure, on_true: Enclosure, on_false: Enclosure) -> Enclosure:
    """Enclose the hull of both sides where the predicate is open; subnormals may be flushed, as a
    select by a comparison of both sides may become a minimum or maximum."""
    chosen = where(pred.low, on_true, on_false)
    open_ = ~pred.low & pred.high
    if not pred.is_point and is_ever(open_):
        chosen = where(open_, hull(on_true, on_false), chosen)
    if not budget.current().flushes or not chosen.element_type.is_float:
        return chosen
    subnormal = is_subnormal(chosen.low) | is_subnormal(chosen.high)
    if not is_ever(subnormal):
        return chosen
    # `finished` has no error for a select, so this flushes and opens the signs of zeros.
    return where(subnormal, finished("select", chosen.low, chosen.high, chosen.nan), chosen)


def complex_(real: Enclosure, imag: Enclosure) -> Enclosure:
    """Enclose complex numbers by a rectangle of the complex plane."""
    return joined(real, imag)


def real(operand: Enclosure) -> Enclosure:
    """Enclose the real part; the NaN of a complex number may be in either component."""
    return moved_numbers(exact.real, (operand,), operand.nan)


def imag(operand: Enclosure) -> Enclosure:
    """Enclose the imaginary part; zero of real numbers."""
    nan = operand.nan if operand.element_type.is_complex else np.asarray(False)
    return moved_numbers(exact.imag, (operand,), nan)


def moved_numbers(function: Function, operands: tuple[Enclosure, ...], nan: Array) -> Enclosure:
    low = function(*(x.low for x in operands))
    high = low if all(x.is_point for x in operands) else function(*(x.high for x in operands))
    if low is high:
        return Enclosure(low, low, np.broadcast_to(is_nan(low), low.shape))
    return Enclosure(low, high, np.broadcast_to(nan | is_nan(low), low.shape))


def is_finite(operand: Enclosure) -> Enclosure:
    """Enclose is-finite: False is legal where an end is infinite or NaN is legal."""
    low, high = (exact.is_finite(end) for end in (operand.low, operand.high))
    between_ends = ~is_nan(operand.low) & (operand.low < operand.high)
    return truth(low | high | between_ends, low & high & ~operand.nan)


def reduce_precision(operand: Enclosure, *, exponent_bits: int, mantissa_bits: int) -> Enclosure:
    """Enclose reduce-precision by the ends, as it is monotone. Without mantissa bits a NaN becomes
    an infinity of its sign, which is open; exactly it becomes what the interpreter gives."""
    reduced = partial(
        exact.reduce_precision, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits
    )
    values = [reduced(x) for x in flushed(operand).ends()]
    nan = nan_among(*values)
    is_exact = budget.current() is budget.EXACT
    result = Enclosure(
        values[0], values[-1], nan if is_exact and not mantissa_bits else either(operand.nan, nan)
    )
    if len(values) > 1:
        result = or_too_large(result, values, operand.nan & is_nan(operand.low))
    if budget.current().keeps_wide and operand.element_type.bits < 32:
        found = _reduced_in(np.float32, operand, exponent_bits, mantissa_bits)
        lost = is_nan(found.low) | is_nan(found.high)  # beyond the type
        result = where(lost, result, hull(result, found))
        if operand.element_type.name in _SUBNORMAL_IN_F16:
            found = _reduced_in(np.float16, operand, exponent_bits, mantissa_bits)
            tiny = finfo(operand.low.dtype).smallest_normal
            is_small = (np.abs(operand.low) < tiny) | (np.abs(operand.high) < tiny)
            result = where(is_small, hull(result, found), result)
    if mantissa_bits or not is_ever(operand.nan):
        return result
    if is_exact:
        of_nan = reduced(np.full(result.shape, np.nan, operand.low.dtype))
        return (
            result if result.is_point else where(operand.nan, hull(result, point(of_nan)), result)
        )
    return where(operand.nan, anything(result.shape, result.element_type), result)


def _reduced_in(
    wide: type[np.floating[Any]], operand: Enclosure, exponent_bits: int, mantissa_bits: int
) -> Enclosure:
    """Enclose reduce-precision of a narrow type that is kept in a wider one. In f32 its subnormals
    are normal, so leading zeros do not count as mantissa bits; in f16 those of f8e5m2 do."""
    low, high = (
        exact.reduce_precision(x, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)
        for x in (operand.low.astype(wide), operand.high.astype(wide))
    )
    dtype = operand.low.dtype
    return Enclosure(low.astype(dtype), high.astype(dtype), operand.nan)
