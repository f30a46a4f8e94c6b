"""Write convolutions of many features to few in fast mode, as the last layer of a decoder is.

    result[pixel, f] = sum over taps and features of input[pixel + tap, feature]
                       * weights[f, tap, feature]

A product of matrices with one to four columns would leave most of its tile empty. So the sum is
what runs in lanes: the features of a tap lie side by side, and often those of a row of taps. A few
pixels share the loads of the weights.
"""

from __future__ import annotations

import numpy as np

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Constant, Expr, Pointer, Variable
from backend_c.ir.scope import apply
from backend_c.kernels.parts.contraction.factor_memory import stored_factors
from backend_c.kernels.parts.convolution.convolution_input import Convolved
from backend_c.kernels.parts.convolution.fast_convolution import FastConvolution, Into, Tile

_FEW = 4  # features of the result; with more, enough of a tile is used
_MANY = 16  # features of the input
_SUMS = 4  # that one loop in lanes adds up


def has_narrow_result(convolved: Convolved) -> bool:
    """Return whether a convolution without groups takes many features to few."""
    features = convolved.dims[convolved.labels.output_feature]
    has_groups = convolved.feature_groups > 1 or convolved.batch_groups > 1
    return not has_groups and features <= _FEW and convolved.features >= _MANY


class NarrowResultConvolution(FastConvolution):
    """Write one convolution to few features, with lanes along the sums."""

    def prepare(self) -> None:
        """Write the weights to scratch as [feature of the result][tap and feature]."""
        scope, factors = self.scope, self.factors
        self.offsets = scope.table(np.array(self.input.offsets, np.int64))
        dims = factors.batch, factors.n, factors.k
        self.weights = stored_factors(factors.rhs, dims, self.sums, scope)

    def multiply(self, tile: Tile, left: Pointer, into: Into) -> None:
        """Write the sums of a tile by groups of pixels, then of those that are left over."""
        together = _SUMS // self.columns
        pixels = tile.counts[1]
        groups = ix.divide(pixels, together)
        with self.scope.loop(tile.counts[0]) as row:
            with self.scope.loop(groups) as group:
                self._pixels(row, ix.multiply(group, together), together, left, into)
            done = ix.multiply(groups, together)
            with self.scope.loop(ix.subtract(pixels, done)) as rest:
                self._pixels(row, ix.add(done, rest), 1, left, into)

    def _pixels(self, row: Expr, first: Expr, count: int, left: Pointer, into: Into) -> None:
        """Write the sums of ``count`` neighbouring pixels from ``first`` on."""
        scope, length = self.scope, self.input.length
        row_pitch, pixel_pitch = self.pitches()
        start = ix.add(left.offset, ix.multiply(row, row_pitch), ix.multiply(first, pixel_pitch))
        starts = [scope.bind(ix.add(start, n * pixel_pitch)) for n in range(count)]
        totals = self._sums(count)
        with scope.loop(len(self.input.offsets)) as segment:
            offset = scope.bind(scope.load(self.offsets, segment))
            sums, before = self._sums(count), ix.multiply(segment, length)
            with scope.loop(length, "lanes", [one for pixel in sums for one in pixel]) as step:
                k = ix.add(before, step)
                weights = [
                    scope.bind(scope.load(self.weights, ix.add(k, j * self.factors.k)))
                    for j in range(self.columns)
                ]
                for place, pixel in zip(starts, sums, strict=True):
                    element = scope.bind(scope.load(left.array, ix.add(place, offset, step)))
                    for weight, one in zip(weights, pixel, strict=True):
                        scope.assign(one, apply("multiply-add", element, weight, one))
            for pixel, found in zip(totals, sums, strict=True):
                for total, one in zip(pixel, found, strict=True):
                    scope.assign(total, apply("add", total, one))
        for n, pixel in enumerate(totals):
            for j, one in enumerate(pixel):
                at = self.offset(into, row, ix.add(first, n), ix.constant(j))
                scope.store(into.array, at, one)

    def _sums(self, count: int) -> list[list[Variable]]:
        """Declare a sum for each feature of ``count`` pixels."""
        zero = Constant(self.sums, 0.0)
        return [
            [self.scope.mutable(self.sums, zero) for _ in range(self.columns)] for _ in range(count)
        ]
