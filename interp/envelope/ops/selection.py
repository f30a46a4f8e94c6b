"""Enclose comparisons, selects and conversions: where an interval straddles, both sides are
legal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hlo.types import F32, F64, ArrayShape, ElementType
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.boolean_masks import either, is_ever, never
from interp.envelope.complex_numbers import joined, parts
from interp.envelope.enclosure import (
    Enclosure,
    anything,
    finfo,
    greatest_of,
    hull,
    is_nan,
    is_nan_alone,
    largest,
    least,
    least_of,
    nan_among,
    point,
    represents_infinity,
    rounded_or_wide,
    where,
)
from interp.envelope.interval_rules import (
    Function,
    finished,
    flushed,
    is_subnormal,
    kept_in_f32,
    lifted,
    or_too_large,
)
from interp.envelope.ops.arithmetic import maximum, minimum
from interp.exact.conversion import total_order, type_of, widened
from interp.ops import data_movement
from interp.ops import elementwise as exact

__all__ = [
    "clamp",
    "compare",
    "complex_",
    "convert",
    "imag",
    "iota",
    "is_finite",
    "real",
    "reduce_precision",
    "select",
    "stochastic_convert",
]

_Ends = tuple[Array, Array]
# f16 has their five bits of exponent, so their subnormals are subnormal in f16 (and not in f32).
_SUBNORMAL_IN_F16 = frozenset(("f8e5m2", "f8e5m2fnuz"))

# direction -> where it may hold and where it must, of numbers in a..b and c..d
_DIRECTIONS: dict[str, Callable[[_Ends, _Ends], tuple[Array, Array]]] = {
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


def _truth(may: Array, must: Array) -> Enclosure:
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
    may, must = _DIRECTIONS[direction]((key(lhs.low), key(lhs.high)), (key(rhs.low), key(rhs.high)))
    unordered = lhs.nan | rhs.nan
    if in_total:
        exactly = budget.current() is budget.EXACT
        for operand in (lhs, rhs):
            if not (exactly and operand.is_point):
                may, must = may | operand.nan, must & ~operand.nan
        return _truth(may, must)
    if direction == "NE":
        # NaN alone differs from everything, itself included.
        return _truth(may | unordered, must | is_nan(lhs.low) | is_nan(rhs.low))
    return _truth(may, must & ~unordered)


def _compared_by_parts(lhs: Enclosure, rhs: Enclosure, direction: str) -> Enclosure:
    """Enclose whether complex numbers are equal, if both parts are, or not, if a part is not."""
    ours = parts(lhs)
    theirs = ours if lhs is rhs else parts(rhs)
    real, imag = (compare(*pair, direction=direction) for pair in zip(ours, theirs, strict=True))
    join = np.logical_and if direction == "EQ" else np.logical_or
    return _truth(join(real.high, imag.high), join(real.low, imag.low))


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
    return _truth(value.nan, only_nan) if direction == "NE" else _truth(~only_nan, ~value.nan)


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
    return _truth(low | high | between_ends, low & high & ~operand.nan)


def convert(operand: Enclosure, *, shape: ArrayShape) -> Enclosure:
    """Enclose conversions by those of the ends, as they are monotone; anything where integers wrap.
    NaN becomes the integer zero, and true."""
    source, target = operand.element_type, shape.element_type
    if source.is_complex or target.is_complex:
        return _by_components(operand, shape)
    kept = kept_in_f32(operand) if source is not target else None
    if kept is not None:
        lost, wide = kept
        plain = convert(where(lost, point(np.ones_like(operand.low)), operand), shape=shape)
        return where(lost, convert(wide, shape=shape), plain)
    ends = flushed(operand) if source is not target else operand
    values = [exact.convert(x, shape=shape) for x in ends.ends()]
    low, high = values[0], values[-1]
    # f32 has all integers of up to 24 bits: those of 16 are rounded once, through f32 or not.
    is_rounded_twice = source is F64 or (source.is_integer and source.bits >= 32)
    if is_rounded_twice and target.is_float and target.bits < 32 and budget.current().through_f32:
        low, high = _also_through_f32(ends, values, shape)
    if target.kind == "pred":
        zeros: _Ends = (np.zeros(()), np.zeros(()))  # f8e8m0fnu has none
        zero = _DIRECTIONS["EQ"]((widened(ends.low), widened(ends.high)), zeros)
        return _truth(~zero[1] | ends.nan, ~zero[0] | is_nan(ends.low))
    if target.is_float:
        narrows = source.is_integer or (source.is_float and not holds(target, source))
        nan = operand.nan | is_nan(low) | is_nan(high)
        low, high = _with_numbers(ends, low, high)
        if narrows and low.dtype != operand.low.dtype:
            result = finished("convert", low, high, nan, _infinite_or_nan(ends))
            return _beyond(ends, result)
        return _or_kept_wide(ends, Enclosure(low, high, nan))
    return _to_integer(ends, low, high)


def _also_through_f32(
    operand: Enclosure, values: Sequence[Array], shape: ArrayShape
) -> tuple[Array, Array]:
    """Enclose ends of f64, or of integers that f32 rounds, converted to a narrow type directly, or
    rounded to f32 first."""
    in_f32 = [exact.convert(x, shape=replace(shape, element_type=F32)) for x in operand.ends()]
    twice = [exact.convert(x, shape=shape) for x in in_f32]
    low, high = least_of(values[0], twice[0]), greatest_of(values[-1], twice[-1])
    same = values[0] is values[-1] and not np.any((low != high) & ~(is_nan(low) & is_nan(high)))
    return low, low if same else high


def _beyond(operand: Enclosure, result: Enclosure) -> Enclosure:
    """Admit anything for numbers that the target type cannot represent: negative ones without a
    sign bit, too large ones and NaN in a type without infinity and NaN."""
    if budget.current() is budget.EXACT:
        return result
    low, high = (end.astype(np.float64) for end in (operand.low, operand.high))
    most = float(largest(result.element_type))  # infinity, if it has one
    if float(least(result.element_type)) >= 0:
        none: Array = low < 0
    elif np.isfinite(most) and not is_nan(np.asarray(np.nan).astype(result.low.dtype)):
        none = ~(np.maximum(np.abs(low), np.abs(high)) <= most) | operand.nan
    else:
        return result
    return where(none, anything(result.shape, result.element_type), result)


def _or_kept_wide(operand: Enclosure, result: Enclosure) -> Enclosure:
    """Admit anything where every number of a type without infinity is legal: the value may be kept
    in f32, beyond the largest of them."""
    source = operand.element_type
    is_exact = budget.current() is budget.EXACT
    if is_exact or not source.is_float or represents_infinity(source):
        return result
    is_open = (operand.low == least(source)) & (operand.high == largest(source))
    return where(np.asarray(is_open), anything(result.shape, result.element_type), result)


def _with_numbers(operand: Enclosure, low: Array, high: Array) -> tuple[Array, Array]:
    """Replace NaN ends of a type without infinity, which stand for too large numbers, where the
    interval has numbers in between: NaN at one end only, or at both with zero inside."""
    lost = [is_nan(end) & ~is_nan(operand.low) for end in (low, high)]
    if low is high or not any(is_ever(x) for x in lost):
        return low, high
    element_type = type_of(low)
    through = ~(operand.low == operand.high) & (operand.low <= 0) & (operand.high >= 0)
    through |= lost[0] != lost[1]
    low = np.where(lost[0] & through, least(element_type), low)
    return low, np.where(lost[1] & through, largest(element_type), high)


def holds(target: ElementType, source: ElementType) -> bool:
    """Test whether a float type represents every number of another (bf16 does not hold f16)."""
    wide, narrow = finfo(target.numpy), finfo(source.numpy)
    return bool(
        wide.nmant >= narrow.nmant
        and float(wide.max) >= float(narrow.max)
        and float(wide.smallest_subnormal) <= float(narrow.smallest_subnormal)
    )


def _by_components(operand: Enclosure, shape: ArrayShape) -> Enclosure:
    """Convert complex numbers by component; real numbers become the real part."""
    real, imag = map(flushed, parts(operand))
    if not shape.element_type.is_complex:
        return convert(real, shape=shape)
    part = replace(shape, element_type=F32 if shape.element_type.bits == 64 else F64)
    zero = point(np.zeros(operand.shape, part.element_type.numpy))
    is_complex = operand.element_type.is_complex
    return joined(convert(real, shape=part), convert(imag, shape=part) if is_complex else zero)


def _infinite_or_nan(value: Enclosure) -> Array:
    if not value.element_type.is_float:
        return np.asarray(False)
    one = (value.low == value.high) | is_nan(value.low)
    return np.asarray(one & ~np.isfinite(value.low))


def _to_integer(operand: Enclosure, low: Array, high: Array) -> Enclosure:
    nan = never(low.shape)
    if operand.element_type.is_float:
        if is_ever(operand.nan) and low is not high:
            zero = np.zeros((), low.dtype)
            low = np.where(operand.nan & (low > zero), zero, low)
            high = np.where(operand.nan & (high < zero), zero, high)
        elif (operand.nan & ~is_nan(operand.low)).any():
            return hull(Enclosure(low, low, nan), point(np.zeros_like(low)))
        return Enclosure(low, high, nan)
    if low is high:
        return Enclosure(low, low, nan)
    # If both ends are in the target's range, so is what lies between. float64 rounds integers of 64
    # bits, but one that wraps differs from its operand by at least half of that.
    back = [x.astype(np.float64) for x in (widened(low), widened(high))]
    ends = [widened(x).astype(np.float64) for x in (operand.low, operand.high)]
    wraps = (back[0] != ends[0]) | (back[1] != ends[1])
    wraps &= ~(operand.low == operand.high)
    result = Enclosure(low, high, nan)
    return (
        where(wraps, anything(low.shape, result.element_type), result) if is_ever(wraps) else result
    )


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


def stochastic_convert(operand: Enclosure, random: Enclosure, *, shape: ArrayShape) -> Enclosure:
    """Enclose stochastic-convert: exact for certain operands, else anything."""
    convert_ = lifted(lambda x, y: exact.stochastic_convert(x, y, shape=shape))
    return convert_(flushed(operand), random)
