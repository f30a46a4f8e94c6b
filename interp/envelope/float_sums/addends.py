"""Know of the addends of a sum what bounds its error in every order.

**Zeros.** x + 0 is x, and 0 + 0 is 0, in every type and however it is rounded. So a sum of which m
addends are not zero errs as one of m addends, whatever the order, the width of the accumulator, the
lanes that are filled with zeros, and the places where a partial sum is rounded to a narrower type:
without its leaves of zeros each tree of additions is a tree over the m others, of m - 1 additions.
A partial sum may also be flushed where a zero is added to it, but only once, as it is zero then. Of
one addend, or none, there is no addition. Its own rounding, if it was kept unrounded, and its being
flushed are in the interval of the addend.

**Grids.** If all addends are multiples of a power of two g, then so is every partial sum, and its
magnitude is at most the sum of all magnitudes. Where that is at most g 2^p, a type of p significant
bits, and every wider one, represents all partial sums: nothing is ever rounded, in any order. The
addends must be known exactly: what a compiler may round in another way is no point. If a partial
sum may be subnormal (g is less than the least normal number) it may be flushed, which changes
nothing but this: it stays on the grid, and no magnitude grows. Counts, masks and whole numbers in
floats are such sums.

Both hold for the addends of *one* sum. What a compiler merges with others is left out by
:mod:`interp.envelope.float_sums.merged_sums`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hlo.types import ElementType
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.blocks import in_blocks_of
from interp.envelope.boolean_masks import is_ever
from interp.envelope.enclosure import WITHOUT_ZERO, finfo

Fold = Callable[[Array, np.ufunc], Array]
Ends = Sequence[Array]  # low and high, of finite numbers in float64

_MANTISSA, _EXPONENT = np.int64((1 << 52) - 1), np.int64(0x7FF << 52)
_SAMPLE = 1 << 10


@dataclass(frozen=True, slots=True, eq=False)
class Addends:
    """Facts of the addends of sums: the ``count`` of those that are not certainly zero, and the
    ``grid``, a power of two that all are multiples of (0: none is known)."""

    count: int | Array
    grid: float | Array = 0.0

    def are_single(self) -> Array:
        """Test for sums of at most one addend, in which nothing is added."""
        return np.asarray((np.asarray(self.count) <= 1) & (not budget.current().merges))

    def on_grid(self, magnitudes: Array, bits: int) -> Array:
        """Test for sums whose partial sums are all represented by ``bits`` significant bits."""
        most = np.asarray(self.grid) * 2.0**bits
        return np.asarray((most > 0) & (magnitudes <= most))


def of_folds(
    addends: Ends, init: Ends, fold: Fold, terms: int | Array, element_type: ElementType
) -> Addends:
    """Collect what is known of the addends of folds, the init among them, ``terms`` in all.
    ``fold`` folds them by an operation."""
    zeros, none = is_zero(addends), is_zero(init)
    count: int | Array = terms - none.astype(np.int64)
    if is_ever(zeros):
        count = fold((~zeros).astype(np.float64), np.add) + ~none
    if not may_have_grid(addends, element_type):
        return Addends(counted(count, terms))
    grid = np.minimum(fold(grids(*addends), np.minimum), grids(*init))
    return Addends(counted(count, terms), grid)


def counted(count: int | Array, terms: int | Array) -> int | Array:
    """Return the count of addends that errors may stem from: of a sum that may be merged with
    others it is that of all ``terms``, unless it adds nothing up."""
    if not budget.current().merges:
        return count
    return np.where(np.asarray(count) <= 1, count, terms)


def is_zero(ends: Ends) -> Array:
    """Test for certain zeros."""
    low, high = ends
    return np.asarray((low == 0) & (high == 0))


def grids(low: Array, high: Array) -> Array:
    """Compute the greatest power of two that a number is a multiple of: infinity for zero, 0 where
    the number is uncertain."""
    return np.asarray(in_blocks_of(_last_bits, (low, high))[0])


def _last_bits(low: Array, high: Array) -> tuple[Array]:
    bits = np.ascontiguousarray(low).view(np.int64)
    mantissa, power = bits & _MANTISSA, bits & _EXPONENT
    least = power.view(np.float64)
    # The last bit of the mantissa that is set: what it adds to the power of two.
    last = (power | (mantissa & -mantissa)).view(np.float64) - least
    found = np.where(mantissa == 0, least, last).reshape(low.shape)
    return (np.where(low == high, np.where(low == 0, np.inf, found), 0.0),)


def grid_of(ends: Ends) -> float:
    """Compute the power of two that all numbers are multiples of; 0 if one is uncertain."""
    return float(grids(*ends).min(initial=np.inf))


def may_have_grid(ends: Ends, element_type: ElementType) -> bool:
    """Test a sample for numbers of few significant bits, as sums of others are rounded: a grid
    takes as long as the sum itself."""
    if budget.current().merges or element_type.name == WITHOUT_ZERO:
        return False
    size = math.prod(ends[0].shape)
    if size > 4 * _SAMPLE:
        places = np.linspace(0, size - 1, _SAMPLE).astype(np.int64)
        index = np.unravel_index(places, ends[0].shape)
        ends = [end[index] for end in ends]
    bits = int(finfo(element_type.numpy).nmant) + 1
    numbers = ~is_zero(ends)
    known = np.abs(ends[0]) <= grids(*ends) * 2.0 ** (bits - min(4, bits // 2))
    return int((known & numbers).sum()) * 4 >= int(numbers.sum())
