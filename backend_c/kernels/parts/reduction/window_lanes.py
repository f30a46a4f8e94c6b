"""Find the range of lanes (neighbouring window positions) in which a tap reads no padding.

A loop over that range needs neither a test nor a clamped index:

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
    """Describe the lanes in which a tap has an element, and the indices that they read.

    The first lane reads index ``start``, each further one ``step`` more.
    """

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
    """Return the lanes l with 0 <= (position + l) * stride + tap * dilation - padding_low < extent.

    There must be no holes of base dilation. With x the value at l = 0, the first lane is
    ceil(-x / stride), and ceil((extent - x) / stride) is the one after the last.
    """
    stride = dimension.stride
    taken = ix.add(
        ix.multiply(position, stride),
        ix.multiply(tap, dimension.window_dilation),
        -dimension.padding_low,
    )
    most = ix.bounds(lanes)[1] * stride

    def ceiling(lacking: Expr) -> Expr:
        """Return ceil(distance / stride), at most the number of lanes."""
        steps = ix.divide(ix.add(ix.clamp(0, lacking, most), stride - 1), stride)
        return scope.bind(ix.clamp(0, scope.bind(steps), lanes))

    first = ceiling(ix.subtract(ix.constant(0), taken))
    after = ceiling(ix.subtract(ix.constant(extent), taken))
    count = scope.bind(ix.clamp(0, ix.subtract(after, first), lanes))
    # Where no lane is in the range, the start is nobody's.
    start = ix.clamp(0, ix.add(taken, ix.multiply(first, stride)), max(extent - 1, 0))
    return TapLanes(LaneRange(first, count), scope.bind(start), stride)
