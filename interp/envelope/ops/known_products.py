"""Know of the products of a dot or convolution what bounds their sums: how many are not certainly
zero, and of which power of two all are multiples (:mod:`interp.envelope.float_sums.addends`).

A product is zero if a factor is, whatever the other is rounded to, or split into. So a product of a
matrix with one nonzero number in each row has no addition: its elements are single products,
rounded once, or several times to types that hold each other, which directed rounding encloses.
Products of multiples of g and h are multiples of g h, and none is larger than the sum of all
magnitudes: where that is at most g h 2^p, products and sums are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hlo.types import F64, ElementType
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.boolean_masks import is_ever
from interp.envelope.enclosure import finfo
from interp.envelope.float_sums.addends import Addends, counted, grid_of, may_have_grid
from interp.envelope.float_sums.sums import accumulated_bits, flushing_on_grid, least_normal
from interp.envelope.ops.factors import Ball

__all__: list[str] = []

_MANY = 0.25  # the share of zeros from which counting them, a product in f32, is worth it
_MOST_COUNTED = 1 << 24  # f32 counts exactly


def of_products(
    factors: Sequence[Ball], product: Callable[..., Array], terms: int, sums: ElementType
) -> Addends | None:
    """Collect what is known of the ``terms`` products of each sum; None if it is nothing.
    ``product`` contracts arrays in f32."""
    zeros = [ball[2] == 0 for ball in factors]
    count: int | Array = terms
    many = any(mask.mean() >= _MANY for mask in zeros if mask.size) and terms < _MOST_COUNTED
    if many:
        masks = [(~mask).astype(np.float32) for mask in zeros]
        count = counted(product(*masks).astype(np.float64), terms)
    ends = [(middle - radius, middle + radius) for middle, radius, _ in factors]
    grid = 0.0
    if not budget.current().merges and all(may_have_grid(x, sums) for x in ends):
        grid = float(np.prod([grid_of(x) for x in ends]))
    return Addends(count, grid) if many or grid else None


def error_of_exact(known: Addends, middle: Array, most: Array, sums: ElementType) -> Array:
    """Bound the error, but for the last rounding, of sums of points that are never rounded before:
    infinity for others. Single products of f64 are rounded here."""
    infinite = np.full(middle.shape, np.inf)
    if sums is not F64:
        single = known.are_single() & (np.abs(middle) > least_normal(sums))
        infinite = np.where(single, 0.0, infinite)
    on_grid = known.on_grid(most, accumulated_bits(sums))
    if not is_ever(on_grid) or known.grid < float(finfo(sums.numpy).smallest_subnormal):
        return infinite
    flushed = np.where(on_grid, flushing_on_grid(known, sums), np.inf)
    return np.asarray(np.minimum(infinite, flushed))
