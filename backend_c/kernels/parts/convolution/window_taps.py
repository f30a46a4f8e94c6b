"""Find the range of a window's taps that lie within an array, so that loops need no tests."""

from __future__ import annotations

from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.convolution.convolution_input import Convolved
from hlo.attributes import WindowDimension


class TapRange(NamedTuple):
    """Describe the taps ``first`` … ``first + taps - 1`` of a window at one position.

    The tap ``first + i`` reads the array at ``start + i * step``, below ``extent``.
    """

    first: Expr
    taps: Expr
    start: Expr
    step: int
    size: int
    extent: int

    def at(self, number: Expr, scope: Scope) -> tuple[Expr, Expr]:
        """Return tap number ``number`` of the range, and the index that it reads."""
        tap = scope.bounded(ix.add(self.first, number), 0, max(self.size - 1, 0))
        index = ix.add(self.start, ix.multiply(number, self.step))
        return tap, scope.bounded(index, 0, max(self.extent - 1, 0))


def has_tap_ranges(convolved: Convolved) -> bool:
    """Return whether the taps within the input are always a range: static, no base dilation."""
    dense = all(d.base_dilation == 1 for d in convolved.window.dimensions)
    return dense and convolved.batch_groups == 1 and not convolved.lhs.sizes


def tap_range(output: Expr, dimension: WindowDimension, extent: int, scope: Scope) -> TapRange:
    """Return the taps t with 0 <= output * stride + t * dilation - padding_low < extent.

    Rounded up, (padding_low - output * stride) / dilation is the first of them, and the same with
    the extent added is the first one after them.
    """
    dilation, size = dimension.window_dilation, dimension.size
    reach = (size - 1) * dilation + 1
    corner = ix.subtract(ix.multiply(output, dimension.stride), dimension.padding_low)

    def ceiling(distance: Expr) -> Expr:
        # Clamped before the division: `ix.divide` is of numbers from 0 on.
        inside = scope.bind(ix.clamp(0, distance, reach))
        return ix.clamp(0, ix.divide(ix.add(inside, dilation - 1), dilation), size)

    first = scope.bind(ceiling(ix.subtract(ix.constant(0), corner)))
    after = scope.bind(ceiling(ix.subtract(extent, corner)))
    count = scope.bind(ix.clamp(0, ix.subtract(after, first), size))
    start = scope.bind(ix.add(corner, ix.multiply(first, dilation)))
    return TapRange(first, count, start, dilation, size, extent)
