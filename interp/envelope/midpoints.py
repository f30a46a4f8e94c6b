"""Take midpoints of enclosures, and judge values relative to them."""

from __future__ import annotations

import numpy as np

from hlo.values import Array
from interp.envelope.blocks import in_blocks_of
from interp.envelope.complex_numbers import parts
from interp.envelope.enclosure import Enclosure
from interp.envelope.verdict import EQUAL, KINDS, UNDETERMINED, is_wide, kinds
from interp.ops.elementwise import complex_


def middle(value: Enclosure) -> Array:
    """Take the midpoint of each interval: zero between infinities, the low end of integers."""
    if not value.element_type.is_inexact:
        return np.asarray(value.low)
    if value.low.dtype.kind == "c":
        return np.asarray(complex_(*map(middle, parts(value))))
    if value.is_point:
        return np.asarray(value.low)
    return in_blocks_of(_middle, (value.low, value.high))[0]


def _middle(least: Array, greatest: Array) -> tuple[Array]:
    low, high = least.astype(np.float64), greatest.astype(np.float64)
    unbounded = high == np.inf
    if unbounded.any():
        unbounded &= low == -np.inf
    # Halved before they are added, as the sum of the ends may overflow.
    low /= 2
    high /= 2
    low += high
    if unbounded.any():
        low = np.where(unbounded, 0.0, low)
    return (np.asarray(low.astype(least.dtype)),)


def beside_middle(actual: Array, legal: Enclosure) -> Array:
    """Judge a value against an enclosure's midpoints, in place of an exact result that the peer's
    own values have left behind. Unbounded intervals and integers have no midpoint to be equal to:
    undetermined."""
    with np.errstate(all="ignore"):
        centre = middle(legal)
        found = kinds(actual, centre, legal)
        open_ = is_unbounded(legal) & (found == KINDS.index(EQUAL))
        if not open_.any():
            return found
        open_ &= is_wide(legal, centre)
    return np.where(open_, np.int8(KINDS.index(UNDETERMINED)), found)


def is_unbounded(value: Enclosure) -> Array:
    """Test where an interval is infinite or NaN is legal; everywhere, for integers and pred."""
    if not value.element_type.is_inexact:
        return np.broadcast_to(np.True_, value.shape)
    return in_blocks_of(_is_unbounded, (value.low, value.high, value.nan))[0]


def _is_unbounded(low: Array, high: Array, nan: Array) -> tuple[Array]:
    wide = np.complex128 if low.dtype.kind == "c" else np.float64
    return (np.asarray(~np.isfinite(high.astype(wide) - low.astype(wide)) | nan),)
