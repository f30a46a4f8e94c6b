"""Bound contractions of magnitudes from above, in f32 where that takes half the time.

Magnitudes of products and radii are added up for the width of an interval alone, of which three
digits are enough. The sum of n non-negative products that is computed in f32, in any order, with or
without FMA, is at least 1 - n 2^-24 times the exact one (Jeannerod, Rump: "Improved error bounds
for inner products in floating-point arithmetic", SIAM J. Matrix Anal. Appl. 34, 2013), if none of
the products is below the normal range.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlo.values import Array

# Elements of a factor, and products of a sum, from which rounding the factors takes little of the
# time that their product does; and to which the bound is at most 1/128 too large.
_LARGE, _DEEP, _DEEPEST = 1 << 16, 128, 1 << 16
_NORMAL, _SMALLEST = 2.0**-126, 2.0**-120  # of factors, and of products, with a margin


def bound(product: Callable[[Array, Array], Array], terms: int, left: Array, right: Array) -> Array:
    """Bound a contraction of non-negative float64 factors, each element a sum of ``terms``
    products."""
    if min(left.size, right.size) < _LARGE or not _DEEP <= terms <= _DEEPEST:
        return product(left, right)
    least = _least_positive(left), _least_positive(right)
    if min(least) < _NORMAL or least[0] * least[1] < _SMALLEST:
        return product(left, right)
    with np.errstate(over="ignore", invalid="ignore"):
        found = product(left.astype(np.float32), right.astype(np.float32))
    if not found.max() < np.inf:
        return product(left, right)
    found *= np.float32(1 + (terms + 4) * 2.0**-22)  # the factors were rounded, too
    return np.asarray(found)


def _least_positive(factor: Array) -> float:
    """Find the least number that is not zero; infinity if there is none."""
    least = float(factor.min())
    return least if least > 0 else float(np.min(factor, where=factor > 0, initial=np.inf))
