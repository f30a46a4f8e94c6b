"""Build enclosure rules from the interpreter's functions, evaluated at the ends of their
operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlo.opcodes import SUM, having
from hlo.types import ElementType
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.boolean_masks import always, either, is_ever
from interp.envelope.enclosure import (
    WITHOUT_ZERO,
    Enclosure,
    all_certain,
    anything,
    between,
    finfo,
    is_certain,
    is_nan,
    largest,
    least,
    nan_among,
    outward,
    represents_infinity,
    where,
)
from interp.exact.conversion import type_of

Function = Callable[..., Array]
Rule = Callable[..., Enclosure]

_UNDERFLOWS = budget.ROUNDED - having(SUM)  # below twice the least normal number sums are exact


def flushed(operand: Enclosure) -> Enclosure:
    """Admit zero where a float operand is subnormal and may be flushed."""
    if not budget.current().may_flush(operand.element_type):
        return operand
    if operand.element_type.name == WITHOUT_ZERO:
        return Enclosure(operand.low, operand.high, operand.nan | _is_least(operand.low))
    if not any(map(_may_be_small, operand.ends())):
        return operand
    low, high = _with_flushed(operand.low, operand.high)
    same = low is operand.low and high is operand.high
    return operand if same else Enclosure(low, high, operand.nan)


def moved_in_f32(result: Enclosure) -> Enclosure:
    """Admit zero for a moved subnormal of bf16: a compiler without bf16 moves it as f32, and the
    conversions to f32 and back flush it (XLA: ``float_normalization.cc``)."""
    peer = budget.current()
    return flushed(result) if peer.keeps_wide and result.element_type.name == "bf16" else result


def opened_where_nan(value: Enclosure) -> Enclosure:
    """Admit any number in place of a NaN of a type that has none (f4, f6): the conversion is
    open."""
    has_none = value.element_type.is_float and value.element_type.bits < 8  # f4 and f6
    if not has_none or not is_ever(value.nan):
        return value
    return where(value.nan, anything(value.shape, value.element_type), value)


def _is_least(low: Array) -> Array:
    """Test for the least number of f8e8m0fnu: it is subnormal in f32, but the type has no zero that
    it could be flushed to."""
    return np.asarray(low <= finfo(low.dtype).smallest_normal)


def kept_in_f32(operand: Enclosure) -> tuple[Array, Enclosure] | None:
    """Find the elements of f8e8m0fnu that may be NaN because the number is not representable. Kept
    in f32 they may be any number, zero and negative ones included. Return their mask and the
    enclosure in f32; None if there are none."""
    if operand.element_type.name != WITHOUT_ZERO or budget.current() is budget.EXACT:
        return None
    lost = operand.nan & ~is_nan(operand.low)
    if not is_ever(lost):
        return None
    low, high = (end.astype(np.float32) for end in (operand.low, operand.high))
    infinity = np.float32(np.inf)
    wide = Enclosure(np.where(lost, -infinity, low), np.where(lost, infinity, high), operand.nan)
    return np.asarray(lost), wide


def are_normal(*operands: Enclosure) -> bool:
    """Test for f32 and f64 whose ends are all normal numbers, neither zero nor subnormal, infinite
    or NaN, and of which NaN is not legal: most values. They are not flushed, and nothing of them is
    :func:`settled`."""
    return all(
        x.low.dtype.char in "fd" and not is_ever(x.nan) and all(map(_is_normal, x.ends()))
        for x in operands
    )


def _is_normal(end: Array) -> bool:
    if not end.size:
        return True
    magnitudes, info = np.abs(end), finfo(end.dtype)
    least_one = np.minimum.reduce(magnitudes, None)
    return bool(
        least_one >= info.smallest_normal and np.maximum.reduce(magnitudes, None) <= info.max
    )


def _may_be_small(end: Array) -> bool:
    """Test whether any element is zero, subnormal or the least normal number: most arrays have
    none, and this takes fewer passes than the treatment of those."""
    return bool((np.abs(end) <= finfo(end.dtype).smallest_normal).any())


def is_subnormal(end: Array) -> Array:
    """Test for numbers other than zero that may be flushed to zero."""
    return np.asarray((np.abs(end) < finfo(end.dtype).smallest_normal) & (end != 0))


def _with_flushed(low: Array, high: Array, *, rounded: bool = False) -> tuple[Array, Array]:
    """Admit zero beside subnormals, or in their place, as the budget has it. ``rounded``: also
    beside the least normal number, since what is rounded to it may be less, and hardware flushes
    what is too small before it is rounded to a subnormal."""
    tiny = finfo(low.dtype).smallest_normal
    if budget.current().always_flushes:
        low, high = (np.where(np.abs(x) < tiny, np.zeros((), x.dtype), x) for x in (low, high))
    less = np.less_equal if rounded else np.less
    above, below = (low > 0) & less(low, tiny), (high < 0) & less(-tiny, high)
    if is_ever(above):
        low = np.where(above, np.zeros((), low.dtype), low)
    if is_ever(below):
        high = np.where(below, -np.zeros((), high.dtype), high)
    return low, high


def finished(
    opcode: str, low: Array, high: Array, nan: Array, kept: Array | None = None
) -> Enclosure:
    """Widen the exact ends of a float operation's result by the peer's error, flushing and signs of
    zeros. Infinities and zeros in ``kept`` (:func:`settled`) keep their value."""
    peer = budget.current()
    element_type = type_of(low)
    if not element_type.is_float:
        return between(low, high, nan)
    if peer is budget.EXACT:
        return _between_exact(low, high, nan)
    error = peer.of(opcode, element_type)
    if error:
        # Rounding the ends lost half a unit: of the exact result, or of one that is not rounded.
        apart = outward(low, high, math.ceil(error + 0.5))
        if kept is not None and is_ever(kept):
            apart = (
                np.where(kept & (np.isinf(low) | (low == 0)), low, apart[0]),
                np.where(kept & (np.isinf(high) | (high == 0)), high, apart[1]),
            )
        low, high = apart
    if element_type.name == WITHOUT_ZERO:
        nan = nan | _is_least(low)
        # Zero and less are NaN here, but numbers where they are kept in f32.
        lost = is_nan(low) | is_nan(high) | (nan if peer.keeps_wide else False)
        return where(lost, anything(low.shape, element_type), Enclosure(low, high, nan))
    if _may_be_small(low) or _may_be_small(high):
        if peer.may_flush(element_type):
            low, high = _with_flushed(low, high, rounded=opcode in _UNDERFLOWS)
        low, high = of_either_sign(low, high)
    found = between(low, high, nan)
    if not peer.keeps_wide or represents_infinity(element_type) or not is_ever(found.nan):
        return found
    # What is more than the largest number may be kept, and become less by what follows.
    return where(found.nan, anything(low.shape, element_type), found)


def _between_exact(low: Array, high: Array, nan: Array) -> Enclosure:
    """Finish the exact results of operands that may be several numbers: which it is decides the
    sign of a zero, and, in a type without infinity, an overflow to NaN, which is no end."""
    if low is high:  # of one number each
        return between(low, high, nan)
    found = between(*of_either_sign(low, high), nan)
    if represents_infinity(found.element_type):
        return found
    lost = is_nan(low) | is_nan(high) | found.nan
    return where(lost, anything(found.shape, found.element_type), found) if is_ever(lost) else found


def or_too_large(result: Enclosure, corners: Sequence[Array], nan: Array) -> Enclosure:
    """Admit anything where a corner overflows in a type without infinity: it is NaN, and no end."""
    if not result.element_type.is_float or represents_infinity(result.element_type):
        return result
    lost = np.logical_or.reduce([is_nan(x) for x in corners]) & ~nan
    if not is_ever(lost):
        return result
    return where(lost, anything(result.shape, result.element_type), result)


def of_either_sign(low: Array, high: Array) -> tuple[Array, Array]:
    """Admit zeros of both signs where an end is zero."""
    minus, plus = (low == 0) & ~np.signbit(low), (high == 0) & np.signbit(high)
    if is_ever(minus) or is_ever(plus):
        zero = np.zeros((), low.dtype)
        low, high = np.where(minus, -zero, low), np.where(plus, zero, high)
    return low, high


def compared(result: Enclosure) -> Enclosure:
    """Finish a minimum or maximum: subnormals may be flushed, and a peer may ignore the sign of a
    zero."""
    if budget.current() is budget.EXACT or not result.element_type.is_float:
        return result
    taken = flushed(result)
    low, high = of_either_sign(taken.low, taken.high)
    return taken if low is taken.low and high is taken.high else between(low, high, result.nan)


def only_certain(result: Enclosure, operands: Sequence[Enclosure]) -> Enclosure:
    """Keep the results of elements whose operands are certain; admit anything elsewhere."""
    if all(map(all_certain, operands)):
        return result
    certain: Array = always(result.shape)
    for operand in operands:
        certain = certain & is_certain(operand)
    return where(certain, result, anything(result.shape, result.element_type))


def lifted(function: Function, opcode: str = "") -> Rule:
    """Make a rule without intervals: the function's result for certain operands, else anything."""

    def rule(*operands: Enclosure, **attributes: object) -> Enclosure:
        value = function(*(x.low for x in operands), **attributes)
        element_type = type_of(value)
        if opcode and element_type.is_float:
            result = finished(opcode, value, value, is_nan(value), settled(*operands))
        else:
            result = Enclosure(value, value, is_nan(value))
        return only_certain(result, operands)

    return rule


def settled(*operands: Enclosure) -> Array:
    """Test which results cannot be infinite or zero by overflow or underflow, since an operand is
    certainly infinite or zero. One that is infinite at one end only may be a number that a peer
    keeps in a wider type."""
    found: Any = np.False_
    for operand in operands:
        if operand.element_type.is_float:
            infinite, zero = np.isinf(operand.low), operand.low == 0
            if is_ever(infinite):
                found = found | (infinite & (operand.low == operand.high))
            if is_ever(zero):
                found = found | (zero & (operand.high == 0))
    return np.asarray(found)


def monotone(
    function: Function,
    opcode: str,
    signs: tuple[int, ...] = (1,),
    *,
    invalid: Callable[..., Array] | None = None,
    within: tuple[float, float] = (-np.inf, np.inf),
) -> Rule:
    """Make the rule of a function that grows (sign 1) or falls (-1) in each operand.
    ``invalid(operands…)`` tests where it may be NaN though no end shows it, of operands that are
    not normal numbers; results are clipped to ``within``."""

    def rule(*operands: Enclosure) -> Enclosure:
        has_normal = are_normal(*operands)
        ends = operands if has_normal else tuple(map(flushed, operands))
        low = function(*(x.low if s > 0 else x.high for x, s in zip(ends, signs)))
        points = all(x.is_point for x in ends)
        high = (
            low if points else function(*(x.high if s > 0 else x.low for x, s in zip(ends, signs)))
        )
        nan = either(nan_among(low, high), *(operand.nan for operand in operands))
        if not points:
            if invalid is not None and not has_normal:
                nan = nan | invalid(*ends)
            if is_ever(nan):
                low, high = one_sided(low, high)
        result = finished(opcode, low, high, nan, None if has_normal else settled(*ends))
        return clipped(result, *within) if np.isfinite(within).any() else result

    return rule


def one_sided(low: Array, high: Array) -> tuple[Array, Array]:
    """Replace a NaN end (inf − inf) by the type's extreme, where the other end is a number."""
    lost_low, lost_high = is_nan(low) & ~is_nan(high), is_nan(high) & ~is_nan(low)
    if is_ever(lost_low) or is_ever(lost_high):
        element_type = type_of(low)
        low = np.where(lost_low, least(element_type), low)
        high = np.where(lost_high, largest(element_type), high)
    return low, high


def clipped(value: Enclosure, low: float, high: float) -> Enclosure:
    """Clip the ends to low..high; NaN ends stay."""
    ends = [
        np.where(x < low, low, np.where(x > high, high, x)).astype(x.dtype) for x in value.ends()
    ]
    return Enclosure(ends[0], ends[-1], value.nan)


def has_infinity(value: Enclosure) -> Array:
    return np.asarray(np.isinf(value.low) | np.isinf(value.high))


def has_zero(value: Enclosure) -> Array:
    return np.asarray((value.low <= 0) & (value.high >= 0))


def extreme(value: Enclosure, sign: int) -> Array:
    """Test where an infinity of this sign is legal."""
    return np.asarray(value.high == np.inf if sign > 0 else value.low == -np.inf)


def is_real(element_type: ElementType) -> bool:
    return element_type.is_float
