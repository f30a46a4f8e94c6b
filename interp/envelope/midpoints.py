"""Take midpoints of enclosures, and judge values relative to them."""

from __future__ import annotations

import math

import numpy as np

from hlo.values import Array
from interp.envelope.blocks import BLOCK, in_blocks_of, is_uniform
from interp.envelope.boolean_masks import always, is_always, is_ever
from interp.envelope.complex_numbers import parts
from interp.envelope.enclosure import Enclosure, finfo
from interp.envelope.verdict import (
    EQUAL,
    KINDS,
    UNDETERMINED,
    WIDEST,
    is_anywhere_wide,
    is_wide,
    kinds,
)
from interp.ops.elementwise import complex_

_MOST_BYTES = 1 << 26  # of the values whose widths are remembered


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
    if is_ever(unbounded):
        unbounded &= low == -np.inf
    # Halved before they are added, as the sum of the ends may overflow.
    low /= 2
    high /= 2
    low += high
    if is_ever(unbounded):
        low = np.where(unbounded, 0.0, low)
    return (np.asarray(low.astype(least.dtype)),)


def is_wide_anywhere(value: Enclosure, widest: float = WIDEST) -> bool:
    """Test for an interval that is wide (:func:`is_wide`) beside its midpoint."""
    return middle_of_wide(value, widest) is not None


def middle_of_wide(value: Enclosure, widest: float = WIDEST) -> Array | None:
    """Take the midpoints if one of the intervals is wide beside them; None if all are narrow."""
    if value.is_point or _are_surely_narrow(value, widest):
        return None
    centre = middle(value)
    return centre if is_anywhere_wide(value, centre, widest) else None


def _are_surely_narrow(value: Enclosure, widest: float) -> bool:
    """Test quickly whether all intervals are narrow, in the array's own type and beside the low
    ends. If no width is more than w times the larger of a low end and their root mean square, then
    no midpoint is further than w / 2 times that from its low end, nor their root mean square than
    w / sqrt(2) times the other: a factor of 1 - w is left for these, and 1 % for roundings."""
    if value.low.dtype.char not in "fd" or not value.low.size or is_ever(value.nan):
        return False
    if is_uniform(value):
        return False
    lows, highs = map(_blocks, value.ends())
    number, tiny = value.low.dtype.type, float(finfo(value.low.dtype).smallest_normal)
    with np.errstate(all="ignore"):
        squares = sum(float(np.dot(low, low)) for low in lows)
        typical = math.sqrt(squares / value.low.size) if math.isfinite(squares) else 0.0
        factor = 0.99 * widest * (1 - widest)
        for low, high in zip(lows, highs, strict=True):
            limits = np.maximum(np.abs(low), number(typical)) * number(factor)
            narrow = high - low <= limits
            if factor * typical < tiny:  # else no limit is rounded as a subnormal
                narrow &= limits >= tiny
            if not (is_always(narrow) or (narrow | (low == high)).all()):
                return False
    return True


def _blocks(array: Array) -> list[Array]:
    flat = array.reshape(-1)
    return [flat[start : start + BLOCK] for start in range(0, flat.size, BLOCK)]


class KnownWidths:
    """Remember which of the last values are wide anywhere: tuples hand a value on, and at each step
    it is asked about again."""

    def __init__(self, widest: float) -> None:
        self._widest = widest
        self._known: dict[int, tuple[Enclosure, bool]] = {}  # the value, so that its id stays its
        self._bytes = 0

    def middle_of_wide(self, value: Enclosure) -> Array | None:
        """Take the midpoints of a value that is wide anywhere, as the function of that name."""
        known = self._known.get(id(value))
        if known is not None:
            return middle(value) if known[1] else None
        found = middle_of_wide(value, self._widest)
        self._known[id(value)] = value, found is not None
        self._bytes += value.low.nbytes
        while self._bytes > _MOST_BYTES:
            oldest = next(iter(self._known))
            self._bytes -= self._known.pop(oldest)[0].low.nbytes
        return found


def beside_middle(actual: Array, legal: Enclosure) -> Array:
    """Judge a value against an enclosure's midpoints, in place of an exact result that the peer's
    own values have left behind. Unbounded intervals and integers have no midpoint to be equal to:
    undetermined."""
    with np.errstate(all="ignore"):
        centre = middle(legal)
        found = kinds(actual, centre, legal)
        open_ = is_unbounded(legal) & (found == KINDS.index(EQUAL))
        if not is_ever(open_):
            return found
        open_ &= is_wide(legal, centre)
    return np.where(open_, np.int8(KINDS.index(UNDETERMINED)), found)


def is_unbounded(value: Enclosure) -> Array:
    """Test where an interval is infinite or NaN is legal; everywhere, for integers and pred."""
    if not value.element_type.is_inexact:
        return always(value.shape)
    return in_blocks_of(_is_unbounded, (value.low, value.high, value.nan))[0]


def _is_unbounded(low: Array, high: Array, nan: Array) -> tuple[Array]:
    wide = np.complex128 if low.dtype.kind == "c" else np.float64
    return (np.asarray(~np.isfinite(high.astype(wide) - low.astype(wide)) | nan),)
