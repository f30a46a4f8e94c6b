"""Enclose conversions from any element type to any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hlo.types import F32, F64, ArrayShape, ElementType
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.boolean_masks import is_ever, never
from interp.envelope.complex_numbers import joined, parts
from interp.envelope.enclosure import (
    Enclosure,
    anything,
    finfo,
    greatest_of,
    hull,
    is_nan,
    largest,
    least,
    least_of,
    point,
    represents_infinity,
    where,
)
from interp.envelope.interval_rules import finished, flushed, kept_in_f32, lifted
from interp.envelope.ops.selection import DIRECTIONS, truth
from interp.exact.conversion import type_of, widened
from interp.ops import elementwise as exact

__all__ = ["convert", "stochastic_convert"]

_Ends = tuple[Array, Array]
_WHOLE = 2.0**53  # float64 has all integers up to it


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
        zero = DIRECTIONS["EQ"]((widened(ends.low), widened(ends.high)), zeros)
        return truth(~zero[1] | ends.nan, ~zero[0] | is_nan(ends.low))
    if target.is_float:
        narrows = source.is_integer or (source.is_float and not holds(target, source))
        nan = operand.nan | is_nan(low) | is_nan(high)
        low, high = _with_numbers(ends, low, high)
        if narrows and low.dtype != operand.low.dtype:
            result = finished("convert", low, high, nan, _infinite_or_nan(ends))
            same = Enclosure(low, low, nan)
            return where(_is_the_same(ends, low, nan), same, _beyond(ends, result))
        return _or_kept_wide(ends, Enclosure(low, high, nan))
    return _to_integer(ends, low, high)


def _is_the_same(operand: Enclosure, converted: Array, nan: Array) -> Array:
    """Test where one normal number is converted to itself: there is no rounding that a compiler
    could leave out."""
    number, same = (widened(x).astype(np.float64) for x in (operand.low, converted))
    is_normal = np.abs(same) >= float(finfo(converted.dtype).smallest_normal)
    if operand.element_type.is_float:
        is_normal &= np.abs(number) >= float(finfo(operand.low.dtype).smallest_normal)
    is_one = (operand.low == operand.high) & (np.abs(number) <= _WHOLE) & (number == same)
    return np.asarray(is_one & is_normal & ~nan)


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


def stochastic_convert(operand: Enclosure, random: Enclosure, *, shape: ArrayShape) -> Enclosure:
    """Enclose stochastic-convert: exact for certain operands, else anything."""
    convert_ = lifted(lambda x, y: exact.stochastic_convert(x, y, shape=shape))
    return convert_(flushed(operand), random)
