"""Judge a result element by element: equal, within, outside (a proven miscompile), undetermined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.values import Array
from interp.envelope.blocks import BLOCK, any_in_blocks, in_blocks_of
from interp.envelope.boolean_masks import is_always, is_ever, never
from interp.envelope.enclosure import (
    Enclosure,
    contains,
    finfo,
    is_nan,
    is_nan_alone,
)
from interp.exact.conversion import type_of

EQUAL, WITHIN, UNDETERMINED, OUTSIDE = "equal", "within", "undetermined", "outside"
KINDS = (EQUAL, WITHIN, UNDETERMINED, OUTSIDE)
_EQUAL, _WITHIN, _UNDETERMINED, _OUTSIDE = range(len(KINDS))

# An enclosure wider than this part of the numbers around says nothing about a result in it.
WIDEST = 2.0**-4


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdicts of one array: the count of each kind, and the index of the first element outside."""

    counts: dict[str, int]
    first_outside: tuple[int, ...] | None

    @property
    def worst(self) -> str:
        """The worst kind that occurs."""
        kinds = (OUTSIDE, UNDETERMINED, WITHIN)
        return next((kind for kind in kinds if self.counts[kind]), EQUAL)


def judged(actual: Array, exact: Array, legal: Enclosure) -> Verdict:
    """Judge an actual result against the exact one and its enclosure; all of one shape and type."""
    return summary(kinds(actual, exact, legal))


def kinds(actual: Array, exact: Array, legal: Enclosure) -> Array:
    """Judge each element: its verdict as an index into :data:`KINDS`."""

    def found(actual: Array, exact: Array, *enclosed: Array) -> tuple[Array]:
        return (_kinds(actual, exact, _enclosure(enclosed), around),)

    with np.errstate(all="ignore"):
        around = _around(legal, exact)
        return in_blocks_of(found, (actual, exact, *legal.ends(), legal.nan))[0]


def _kinds(actual: Array, exact: Array, legal: Enclosure, around: float) -> Array:
    same = _same(actual, exact)
    inside = np.asarray(contains(legal, actual))
    wide = _is_wide(legal, exact, WIDEST, around) | _is_endless(legal, exact)
    found = np.where(inside, np.where(wide, _UNDETERMINED, _WITHIN), _OUTSIDE)
    same &= inside | ~_has_zero(actual)  # a zero that was only moved keeps its sign
    return np.where(same, _EQUAL, found).astype(np.int8)


def _is_endless(legal: Enclosure, exact: Array) -> Array:
    """Test for an infinite result whose interval has numbers: beside it any width is narrow."""
    infinite = ~np.isfinite(exact) & ~is_nan(exact)
    if legal.is_point or not is_ever(infinite):
        return never(legal.shape)
    return np.asarray(infinite & (legal.low != legal.high))


def _enclosure(parts: Sequence[Array]) -> Enclosure:
    """Make an enclosure from its arrays: one or two ends and the NaN mask."""
    *ends, nan = parts
    return Enclosure(ends[0], ends[-1], nan)


def _has_zero(actual: Array) -> Array:
    with np.errstate(invalid="ignore"):  # bf16 warns of NaN
        return np.asarray(
            (actual.real == 0) | (actual.imag == 0) if actual.dtype.kind == "c" else actual == 0
        )


def legal_kinds(actual: Array, exact: Array) -> Array:
    """Judge elements already known to be legal: equal or within."""
    with np.errstate(all="ignore"):
        return np.where(_same(actual, exact), _EQUAL, _WITHIN).astype(np.int8)


def summary(found: Array) -> Verdict:
    """Count the verdicts of an array and find the first element outside."""
    counts = {kind: int(np.count_nonzero(found == n)) for n, kind in enumerate(KINDS)}
    first = None
    if counts[OUTSIDE]:
        flat = int(np.argmax(found.reshape(-1) == _OUTSIDE))
        first = tuple(int(i) for i in np.unravel_index(flat, found.shape))
    return Verdict(counts, first)


def is_open(found: Array) -> bool:
    """Test for undetermined elements."""
    return bool((found == _UNDETERMINED).any())


def resolved(found: Array, anchored: Array) -> Array:
    """Turn undetermined into within where a narrower enclosure found the element legal."""
    known = (found == _UNDETERMINED) & ((anchored == _WITHIN) | (anchored == _EQUAL))
    return np.where(known, np.int8(_WITHIN), found)


def same_where_open(found: Sequence[Array], one: Sequence[Array], other: Sequence[Array]) -> bool:
    """Test whether two results agree bit by bit (any NaN equals any) in all undetermined
    elements."""
    for kind, x, y in zip(found, one, other, strict=False):
        open_ = kind == _UNDETERMINED
        if is_ever(open_) and not _same(x[open_], y[open_]).all():
            return False
    return True


def _same(actual: Array, exact: Array) -> Array:
    if actual.dtype.kind == "c":
        return _same(actual.real, exact.real) & _same(actual.imag, exact.imag)
    if type_of(actual).is_float:
        return np.asarray((actual == exact) | (is_nan(actual) & is_nan(exact)))
    return np.asarray(actual == exact)


def is_wide(legal: Enclosure, exact: Array, widest: float = WIDEST) -> Array:
    """Test which intervals are wide: more than ``widest`` times the larger of the exact element's
    magnitude and the root mean square of the array. Integers are wide unless certain; so is a NaN
    that is legal beside numbers."""
    if legal.is_point:
        return never(legal.shape)

    def found(exact: Array, *enclosed: Array) -> tuple[Array]:
        return (_is_wide(_enclosure(enclosed), exact, widest, around),)

    with np.errstate(all="ignore"):
        around = _around(legal, exact)
        return in_blocks_of(found, (exact, *legal.ends(), legal.nan))[0]


def is_anywhere_wide(legal: Enclosure, exact: Array, widest: float = WIDEST) -> bool:
    """Test for a wide interval (:func:`is_wide`) up to the first one."""
    if legal.is_point:
        return False

    def found(exact: Array, *enclosed: Array) -> Array:
        return _is_wide(_enclosure(enclosed), exact, widest, around)

    with np.errstate(all="ignore"):
        around = _around(legal, exact)
        return any_in_blocks(found, (exact, *legal.ends(), legal.nan))


def _around(legal: Enclosure, exact: Array) -> float:
    """Return the root mean square that widths are compared with, 0 where none is needed."""
    return typical(exact) if legal.element_type.is_inexact and not legal.is_point else 0.0


def _is_wide(legal: Enclosure, exact: Array, widest: float, around: float) -> Array:
    if legal.is_point:
        return never(legal.shape)
    if not legal.element_type.is_inexact:
        return np.asarray(legal.low != legal.high)
    if _is_surely_narrow(legal, exact, widest, around):
        return never(legal.shape)
    low, high, middle = (in_double(x) for x in (legal.low, legal.high, exact))
    known = np.abs(high - low) <= widest * np.maximum(np.abs(middle), around)
    if is_always(known) and not is_ever(legal.nan):
        return never(legal.shape)
    # The width of a single infinity is inf - inf = NaN, which the comparison above takes for
    # unknown.
    infinite = ~np.isfinite(low) & ~np.isfinite(high) & (legal.low == legal.high)
    only_nan = is_nan_alone(legal)
    uncertain_nan = legal.nan & ~is_nan(legal.low)
    return np.asarray((~known & ~infinite & ~only_nan) | uncertain_nan)


def _is_surely_narrow(legal: Enclosure, exact: Array, widest: float, around: float) -> bool:
    """Test quickly whether no interval is wide, in the array's own type: 1 % is left for its
    roundings. Mostly this saves the conversion to float64."""
    if legal.low.dtype.char not in "fd" or is_ever(legal.nan):
        return False
    number = exact.dtype.type
    most = np.maximum(np.abs(exact), number(around)) * number(widest * 0.99)
    is_exact = most >= finfo(exact.dtype).smallest_normal  # but for a rounding
    return bool((is_exact & (legal.high - legal.low <= most)).all())


def typical(array: Array) -> float:
    """Compute the root mean square of the finite magnitudes, 0 if there are none."""
    found = _root_mean_square(array, 1.0)
    if np.isfinite(found):
        return found
    # Squares of f64 overflow beyond 1e154; those of 2^-600 times as much do not.
    most = float(np.finfo(np.float64).max)
    return min(_root_mean_square(array, 2.0**-600) / 2.0**-600, most)


def _root_mean_square(array: Array, scale: float) -> float:
    flat, total, count = array.reshape(-1), 0.0, 0
    for start in range(0, flat.size, BLOCK):
        size = np.abs(in_double(flat[start : start + BLOCK]))
        finite = np.isfinite(size)
        numbers = size if is_always(finite) else size[finite]
        with np.errstate(over="ignore"):
            total += float(np.square(numbers * scale).sum())
        count += numbers.size
    return math.sqrt(total / count) if count else 0.0


def in_double(array: Array) -> Any:
    """Convert numbers to float64 or complex128."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
