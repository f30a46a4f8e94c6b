"""Write depthwise convolutions in fast mode, of floats or integers: features are the lanes.

result[pixel, f] = sum over taps of input[pixel + tap, f / multiplier] * weights[tap, f]. There is
nothing to multiply as matrices; such convolutions take as long as memory. An image of one feature,
as that of a stencil or a filter, is a case of it: there pixels are the lanes.
"""

from __future__ import annotations

import math

from backend_c.ir import index as ix
from backend_c.ir.element import zero
from backend_c.ir.loop_ir import Expr, Pointer
from backend_c.ir.scope import apply
from backend_c.kernels.parts.contraction.factor_memory import stored_factors
from backend_c.kernels.parts.convolution.convolution_input import Convolved
from backend_c.kernels.parts.convolution.fast_convolution import FastConvolution, Into, Tile

_UNROLLED = 32  # taps in one expression
_MOST = 256  # taps
_FEW = 4  # features of the result of one input feature: with more, products of matrices pay


def is_depthwise(convolved: Convolved) -> bool:
    """Return whether each input feature is a group, and the taps are few enough to be unrolled."""
    groups = convolved.feature_groups
    taps = math.prod(d.size for d in convolved.window.dimensions)
    features = convolved.dims[convolved.labels.output_feature]
    # Groups of a batch have images of their own; a tile reads one, for the features of all groups.
    is_plain = convolved.batch_groups == 1 and features <= _FEW
    return (groups > 1 or is_plain) and convolved.features == groups and taps <= _MOST


class DepthwiseConvolution(FastConvolution):
    """Write one depthwise convolution; the columns of a tile span several groups."""

    def prepare(self) -> None:
        """Write the weights to scratch as [tap][feature]."""
        factors = self.factors
        self.multiplier = factors.n
        self.groups, self.columns = 1, factors.batch * factors.n
        # Of one feature the taps of a row are steps of one segment.
        steps = [step * self.input.step_pitch for step in range(self.input.length)]
        self.taps = [offset + step for offset in self.input.offsets for step in steps]
        dims = factors.k, factors.batch, factors.n
        self.weights = stored_factors(
            lambda tap, group, column: factors.rhs(group, column, tap), dims, self.sums, self.scope
        )

    def multiply(self, tile: Tile, left: Pointer, into: Into) -> None:
        """Write the sums of a tile: up to ``_UNROLLED`` taps in one expression, added to those
        before."""
        scope = self.scope
        rows, pixels, columns = tile.counts
        row_pitch, pixel_pitch = self.pitches()
        offsets = self.taps
        are_pixels_lanes = self.convolved.features == 1
        inner = (columns, pixels) if are_pixels_lanes else (pixels, columns)
        for start in range(0, len(offsets), _UNROLLED):
            taps = range(start, min(start + _UNROLLED, len(offsets)))
            with (
                scope.loop(rows) as row,
                scope.loop(inner[0]) as outer,
                scope.loop(inner[1], "lanes") as lane,
            ):
                pixel, j = (lane, outer) if are_pixels_lanes else (outer, lane)
                column = ix.add(tile.column, j)
                first = ix.add(
                    left.offset,
                    ix.multiply(row, row_pitch),
                    ix.multiply(pixel, pixel_pitch),
                    ix.divide(column, self.multiplier),
                )
                at = self.offset(into, row, pixel, j)
                # From +0 on: no sum is -0.
                before: Expr = zero(self.sums)
                if start:
                    before = scope.load(into.array, at)
                total = before
                for tap in taps:
                    element = scope.load(left.array, ix.add(first, offsets[tap]))
                    weight = scope.load(self.weights, ix.add(column, tap * self.columns))
                    total = self._added(total, element, weight)
                scope.store(into.array, at, total)

    def _added(self, total: Expr, element: Expr, weight: Expr) -> Expr:
        """Return total + element * weight."""
        if self.sums.is_float:
            return apply("multiply-add", element, weight, total)
        return apply("add", total, apply("multiply", element, weight))
