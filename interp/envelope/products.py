"""Enclose products and quotients of floats by their corners, the results at the operands' ends."""

from __future__ import annotations

import itertools
from functools import reduce

import numpy as np

from hlo.values import Array
from interp.envelope import budget
from interp.envelope.boolean_masks import either, is_ever
from interp.envelope.enclosure import (
    Enclosure,
    anything,
    greatest_of,
    is_nan,
    least_of,
    nan_among,
    represents_infinity,
    where,
)
from interp.envelope.interval_rules import (
    Function,
    are_normal,
    finished,
    flushed,
    has_infinity,
    has_zero,
    or_too_large,
    settled,
)
from interp.envelope.reciprocals import divided_by_reciprocals
from interp.ops import elementwise as exact


def corners_of(function: Function, operands: tuple[Enclosure, ...]) -> list[Array]:
    """Apply a function to each combination of the operands' ends."""
    return [function(*ends) for ends in itertools.product(*(x.ends() for x in operands))]


def product(lhs: Enclosure, rhs: Enclosure) -> Enclosure:
    """Enclose products of floats."""
    if are_normal(lhs, rhs) and budget.current() is not budget.EXACT:
        return _of_normal(np.multiply, "multiply", lhs, rhs)
    lhs, rhs = flushed(lhs), flushed(rhs)
    corners = corners_of(exact.multiply, (lhs, rhs))
    kept = settled(lhs, rhs)
    if len(corners) == 1:
        nan = either(nan_among(*corners), lhs.nan, rhs.nan)
        return finished("multiply", corners[0], corners[0], nan, kept)
    nan = either(lhs.nan, rhs.nan)
    infinite = has_infinity(lhs), has_infinity(rhs)
    if is_ever(infinite[0]) or is_ever(infinite[1]):
        nan = nan | (has_zero(lhs) & infinite[1]) | (infinite[0] & has_zero(rhs))
    result = finished("multiply", *_ends(corners, lhs, rhs), nan, kept)
    return or_too_large(result, corners, nan)


def _divided(lhs: Enclosure, rhs: Enclosure) -> Enclosure:
    is_exact = budget.current() is budget.EXACT
    if not is_exact and are_normal(lhs, rhs) and not has_zero(rhs).any():
        return _of_normal(np.divide, "divide", lhs, rhs)
    corners = corners_of(exact.divide, (lhs, rhs))
    kept = settled(lhs, rhs) | has_zero(rhs)
    if len(corners) == 1:
        nan = either(nan_among(*corners), lhs.nan, rhs.nan)
        return finished("divide", corners[0], corners[0], nan, kept)
    nan = either(lhs.nan, rhs.nan)
    nan = nan | (has_zero(lhs) & has_zero(rhs)) | (has_infinity(lhs) & has_infinity(rhs))
    result = finished("divide", *_ends(corners, lhs, rhs), nan, kept)
    result = or_too_large(result, corners, nan)
    one_zero = (rhs.low == rhs.high) & (np.signbit(rhs.low) == np.signbit(rhs.high))
    either_side = np.broadcast_to(has_zero(rhs) & ~one_zero & ~is_nan(lhs.low), result.shape)
    if not is_ever(either_side):
        return result
    open_ = anything(result.shape, result.element_type)
    if not represents_infinity(result.element_type):  # the quotient by zero itself is NaN
        return where(either_side, open_, result)
    return where(either_side, Enclosure(open_.low, open_.high, result.nan), result)


def quotient(lhs: Enclosure, rhs: Enclosure) -> Enclosure:
    """Enclose quotients. Division by zero is open in f4 and f6, which have neither infinities nor
    NaN: a compiler may give the largest number or zero."""
    lhs, rhs = flushed(lhs), flushed(rhs)
    result, by_zero = divided_by_reciprocals(_divided(lhs, rhs), lhs, rhs), has_zero(rhs)
    is_lacking = result.element_type.bits < 8 and budget.current() is not budget.EXACT
    if not is_lacking or not is_ever(by_zero):
        return result
    by_zero = np.broadcast_to(by_zero, result.shape)
    return where(by_zero, anything(result.shape, result.element_type), result)


def _of_normal(function: Function, opcode: str, lhs: Enclosure, rhs: Enclosure) -> Enclosure:
    """Enclose products or quotients of normal numbers, the divisors of one sign: no corner is NaN,
    and the sign of a result that underflows is open."""
    corners = corners_of(function, (lhs, rhs))
    low, high = (reduce(better, corners) for better in (np.minimum, np.maximum))
    # Neither operand may be NaN, so either mask serves for both.
    return finished(opcode, low, low if len(corners) == 1 else high, lhs.nan)


def _ends(corners: list[Array], lhs: Enclosure, rhs: Enclosure) -> tuple[Array, Array]:
    """Compute the ends of products and quotients as the extremes of the corners. Where all corners
    are NaN (infinities of both signs times zero), the numbers in between give zero; an operand that
    is NaN alone has none."""
    low, high = least_of(*corners), greatest_of(*corners)
    inner = is_nan(low)
    if not is_ever(inner):
        return low, high
    inner = inner & ((lhs.low < lhs.high) | (rhs.low < rhs.high))
    inner = inner & ~is_nan(lhs.low) & ~is_nan(rhs.low)
    zero = np.zeros((), low.dtype)
    return np.where(inner, zero, low), np.where(inner, zero, high)
