"""Find the lanes, neighbouring positions of windows, in which a tap has an element.

At the edges of an array some lanes read padding. Those in which a tap is inside are a range, so
that a loop over them needs neither a test nor a clamped index:

    for tap: for lane in first … : total[lane] += a[start + (lane - first) * stride]
"""

from __future__ import annotations

from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope, apply
from hlo.attributes import WindowDimension
from hlo.types import PRED


class LaneRange(NamedTuple):
    """Describe the lanes ``first`` … ``first + size - 1``."""

    first: Expr
    size: Expr

    def has(self, lane: Expr) -> Expr:
        """Return whether a lane is in the range."""
        is_after = apply("compare-GE", lane, self.first, type=PRED)
        is_before = apply("compare-LT", lane, ix.add(self.first, self.size), type=PRED)
        return apply("and", is_after, is_before, type=PRED)


class TapLanes(NamedTuple):
    """Describe the lanes in which a tap has an element, of which the first reads that at ``start``
    and each further one that ``step`` after."""

    lanes: LaneRange
    start: Expr
    step: int

    def at(self, lane: Expr) -> Expr:
        """Return the index that a lane of the range reads."""
        number = ix.subtract(lane, self.lanes.first)
        return ix.add(self.start, ix.multiply(number, self.step))


def tap_lanes(
    position: Expr, tap: Expr, dimension: WindowDimension, extent: int, lanes: Expr, scope: Scope
) -> TapLanes:
    """Return the lanes l below ``lanes`` with 0 <= (position + l) * stride + tap * dilation -
    padding_low < extent, where there are no holes of base dilation.

    Rounded up, what the first index lacks to 0, over the stride, is the first of them; the same
    with the extent is the first one after them.
    """
    stride = dimension.stride
    taken = ix.add(
        ix.multiply(position, stride),
        ix.multiply(tap, dimension.window_dilation),
        -dimension.padding_low,
    )
    most = ix.bounds(lanes)[1] * stride

    def ceiling(lacking: Expr) -> Expr:
        """Return a distance over the stride, rounded up, as far as there are lanes."""
        steps = ix.divide(ix.add(ix.clamp(0, lacking, most), stride - 1), stride)
        return scope.bind(ix.clamp(0, scope.bind(steps), lanes))

    first = ceiling(ix.subtract(ix.constant(0), taken))
    after = ceiling(ix.subtract(ix.constant(extent), taken))
    count = scope.bind(ix.clamp(0, ix.subtract(after, first), lanes))
    # Where no lane is in the range, the start is nobody's.
    start = ix.clamp(0, ix.add(taken, ix.multiply(first, stride)), max(extent - 1, 0))
    return TapLanes(LaneRange(first, count), scope.bind(start), stride)
