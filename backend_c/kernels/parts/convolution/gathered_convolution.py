"""Write convolutions to few pixels with many steps, as gradients by weights are, in plain sums.

The gradient of 3 x 3 weights of 3 features has 27 rows, 3 in each row of pixels, which fill no
tile, and a step for each pixel of all images. So all positions of all images are rows of one
product, at any places of the input (runtime/hlo_gemm_gathered.h): right factors, which are large,
pass the caches once. Threads share the steps, in a number of parts that does not depend on theirs;
the parts' sums are added up in order.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Array, Expr, Pointer
from backend_c.ir.scope import apply
from backend_c.kernels.parts.convolution.convolution_input import SHORT, Convolved, with_long_rows
from backend_c.kernels.parts.convolution.fast_convolution import FastConvolution, Into, Tile

_MOST_ROWS = 336  # four blocks of rows that are copied at a time
_PARTS = 8  # of the steps, at most
_LEAST_STEPS = 2048  # of a part
_ROOM = 16  # rows that the last tile may have beyond the last one


def has_gathered_rows(convolved: Convolved) -> bool:
    """Return whether all positions are few rows, of a window as wide as its input, and those in a
    row of pixels, or of images, do not fill a tile by themselves."""
    rows = convolved.images * math.prod(convolved.outputs)
    is_short = with_long_rows(convolved).outputs[-1] < SHORT
    return convolved.has_features_in_window and rows <= _MOST_ROWS and is_short


class GatheredConvolution(FastConvolution):
    """Write one convolution whose positions are gathered to rows."""

    def emit(self) -> None:
        """Write the products of all parts of the steps, their sum, and the result."""
        self.prepare()
        self.input.prepare()
        scope, segments = self.scope, len(self.input.offsets)
        parts = max(1, min(_PARTS, segments, self.factors.k // _LEAST_STEPS))
        each = -(-segments // parts)
        parts = -(-segments // each)
        places = [
            image * self.input.image_pitch
            + sum(i * pitch for i, pitch in zip(place, self.input.position_pitches, strict=True))
            for image in range(self.convolved.images)
            for place in itertools.product(*map(range, self.convolved.outputs))
        ]
        table = scope.table(np.array(places, np.int64))
        elements = (len(places) + _ROOM) * self.columns
        sums = scope.scratch(self.sums, parts * elements)
        cost = each * self.input.length * elements
        with nest.outer(scope, (parts,), cost) as (part,):
            self._products(part, each, table, Pointer(sums, ix.multiply(part, elements)))
        self._add_parts(sums, parts, elements, len(places) * self.columns)
        self._write(sums)

    def _products(self, part: Expr, each: int, table: Array, into: Pointer) -> None:
        """Call the inner kernel for a part of ``each`` segments of steps."""
        scope, source, zero = self.scope, self.input, ix.constant(0)
        begin = scope.bind(ix.multiply(part, each))
        end = ix.clamp(0, ix.add(begin, each), len(source.offsets))
        scope.call(
            f"hlo_gemm_{self.sums}_gathered",
            source.start(zero, zero, [zero] * len(self.convolved.outputs)),
            Pointer(table, zero),
            *map(ix.constant, (table.elements, source.step_pitch)),
            Pointer(self.offsets, zero),
            begin,
            end,
            *map(ix.constant, (source.length, self.factors.k)),
            self.right.address(zero, zero),
            *map(ix.constant, (self.right.step_pitch, self.columns)),
            into,
        )

    def _add_parts(self, sums: Array, parts: int, elements: int, count: int) -> None:
        """Add the sums of all parts up in the first one's place."""
        scope = self.scope
        if parts == 1:
            return
        with scope.loop(count, "lanes") as i:
            total: Expr = scope.load(sums, i)
            for other in range(1, parts):
                total = apply("add", total, scope.load(sums, ix.add(i, other * elements)))
            scope.store(sums, i, total)

    def _write(self, sums: Array) -> None:
        """Write the result from all sums, image by image."""
        scope, zero, columns = self.scope, ix.constant(0), self.columns
        counts = ix.constant(self.height), ix.constant(self.width), ix.constant(columns)
        row_pitch = self.width * columns
        with nest.outer(scope, (self.convolved.images, *self.outer), self.height * row_pitch) as at:
            image, *outer = at
            dims = (self.convolved.images, *self.outer)
            start = ix.multiply(ix.linearize(tuple(at), dims), self.height * row_pitch)
            tile = Tile(zero, image, (*outer, zero, zero), zero, counts)
            into = Into(sums, scope.bind(start), row_pitch, columns)
            self._repair(tile, into)
            self.write_results(tile, into)
