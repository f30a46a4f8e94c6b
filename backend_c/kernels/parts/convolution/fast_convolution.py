"""Write convolutions in plain sums (fast mode) as matrix products without a matrix of patches.

The rows of the product are pixels of the result, its steps the taps of the window and the features;
threads share blocks of rows of pixels. Each tap begins at a constant offset from its pixel
(:mod:`backend_c.kernels.parts.convolution.convolution_input`): to runtime/hlo_gemm.h it is a
segment of steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Writer
from backend_c.ir.loop_ir import Address, Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import (
    Write,
    as_type,
    exact_sum_of_products,
)
from backend_c.kernels.parts.contraction.factor_memory import right_factors
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction.fast_contraction import COLUMNS, ROWS, is_padded
from backend_c.kernels.parts.contraction.products import plain_product
from backend_c.kernels.parts.convolution.convolution_input import (
    Convolved,
    OrderedInput,
    with_long_rows,
)
from hlo.types import PRED, S32, ElementType

_REGION = 1 << 16  # elements of the input that a block copies, so that they stay in the L2 cache
_BLOCKS = 16  # threads need several each
_FIRST = (ix.constant(0), ix.constant(0), ix.constant(0))
_SHARING = 4  # rows of a tile at most, if the window is wide
_LEAST_TURNED = 8  # pixels and columns of a tile: fewer are no lanes
_FEWEST = 56  # pixels of a block: right factors come from the L2 cache once for all of them


class Tile(NamedTuple):
    """Locate the sums of a tile: the place of the first one, and the counts in each direction."""

    group: Expr
    image: Expr
    spatial: tuple[Expr, ...]  # the last two are a row of pixels and a pixel in it
    column: Expr
    counts: tuple[Expr, Expr, Expr]  # rows of pixels, pixels, columns


class Into(NamedTuple):
    """Locate the memory that sums are stored to; columns are contiguous."""

    array: Array
    offset: Expr
    row_pitch: int  # of rows of pixels
    pixel_pitch: int

    def row(self, row: Expr) -> Expr:
        """Return the offset of a row of pixels."""
        return ix.add(self.offset, ix.multiply(row, self.row_pitch))


class FastConvolution:
    """Write one convolution with spatial dimensions; ``types`` are those of sums and result."""

    strip_columns = COLUMNS

    def __init__(
        self,
        convolved: Convolved,
        factors: Factors,
        types: tuple[ElementType, ElementType],
        write: Write,
        scope: Scope,
    ) -> None:
        convolved = with_long_rows(convolved)
        self.convolved, self.factors, self.write, self.scope = convolved, factors, write, scope
        self.sums, self.result = types
        self.strides = self._result_strides()
        # A convolution along one dimension has one row of pixels.
        self.is_line = len(convolved.outputs) == 1
        *self.outer, self.height, self.width = (1,) * self.is_line + convolved.outputs
        self.block = self._rows_per_block()
        positions = (*(1 for _ in self.outer), self.block, self.width)
        blocks = -(-self.height // self.block)
        self.dims = convolved.batch_groups, convolved.images, *self.outer, blocks
        self.input = OrderedInput(
            convolved, self.sums, positions[self.is_line :], math.prod(self.dims), scope
        )
        self.groups, self.columns = convolved.feature_groups, factors.n

    def _result_strides(self) -> tuple[int, ...] | None:
        """Return the result's strides if sums may be stored in it directly; None if not."""
        write, dims = self.write, self.convolved.whole
        if not isinstance(write, Writer) or len(write.arrays) != 1 or write.epilogue is not None:
            return None
        strides = tuple(math.prod(dims[d + 1 :]) for d in range(len(dims)))
        feature = self.convolved.labels.output_feature
        in_columns = strides[feature] == 1 or dims[feature] == 1
        return strides if in_columns and write.arrays[0].element_type is self.sums else None

    def _rows_per_block(self) -> int:
        """Choose the number of rows of pixels in a block."""
        spatial = (*(1 for _ in self.outer), 1, self.width)[self.is_line :]
        row = math.prod(self.convolved.reach(spatial)) * self.convolved.features
        two = (*spatial[:-2], 2, self.width) if len(spatial) > 1 else spatial
        whole = (*spatial[:-2], self.height, self.width) if len(spatial) > 1 else spatial
        if math.prod(self.convolved.reach(whole)) * self.convolved.features <= 2 * row:
            return self.height  # a window as large as the input: more rows hardly read more
        others = self.convolved.images * self.convolved.batch_groups * math.prod(self.outer)
        # One row reads all rows of the window, each further one as many as the window moves on.
        # Along one dimension there is no second row: the difference is 0.
        step = (math.prod(self.convolved.reach(two)) * self.convolved.features - row) or row
        blocks = -(-self.height // max(1, 1 + (_REGION - row) // step))
        while others * blocks < _BLOCKS and self.height // (blocks + 1) * self.width >= _FEWEST:
            blocks += 1
        return -(-self.height // blocks)

    def emit(self) -> None:
        """Write the loop over blocks, which threads share."""
        scope, factors, convolved = self.scope, self.factors, self.convolved
        self.prepare()
        self.input.prepare()
        dims = self.dims
        strips: tuple[int, ...] = self.groups, -(-self.columns // self.strip_columns)
        cost = self.block * self.width * factors.n * factors.k * convolved.feature_groups
        # Strips of a block share the copy of its input, if it has one of its own.
        are_shared = self.input.is_copied_by_blocks or math.prod(dims) >= _BLOCKS
        if not are_shared:
            dims, strips, cost = (*dims, *strips), (), cost // math.prod(strips)
        with nest.outer(scope, dims, cost) as index:
            batch_group, image, *outer, block = place = index[: len(self.dims)]
            row = scope.bind(ix.multiply(block, self.block))
            spatial = (*outer, row, ix.constant(0))
            source = ix.add(ix.multiply(batch_group, convolved.images), image)
            number = ix.linearize(place, self.dims)
            first = spatial[self.is_line :]
            start = self.input.start(number, source, first)
            rows = scope.bind(ix.clamp(0, ix.subtract(self.height, row), self.block))
            with scope.over(strips) as inner:
                feature_group, strip = (*index[len(self.dims) :], *inner)
                group = batch_group if self.groups == 1 else feature_group
                column = scope.bind(ix.multiply(strip, self.strip_columns))
                left_over = ix.subtract(self.columns, column)
                columns = scope.bind(ix.clamp(0, left_over, self.strip_columns))
                features = convolved.features // self.groups
                left = ix.add(start.offset, ix.multiply(feature_group, features))
                counts = rows, ix.constant(self.width), columns
                tile = Tile(group, image, spatial, column, counts)
                self.strip(tile, Pointer(start.array, left))

    def prepare(self) -> None:
        """Write the packing of the right factors."""
        taps = [d.size for d in self.convolved.window.dimensions if d.size > 1]
        run = taps[-1] if taps and self.convolved.has_features_in_window else 1
        product = plain_product(self.sums)
        self.right = right_factors(self.factors, product, COLUMNS, self.scope, run)
        self.offsets = self.scope.table(np.array(self.input.offsets, np.int64))

    def strip(self, tile: Tile, left: Pointer) -> None:
        """Write a strip of columns of a block: directly into the result, or by tiles on the
        stack."""
        scope = self.scope
        if self.strides is not None:
            assert isinstance(self.write, Writer)
            offset = ix.linearize(self._index(tile), self.convolved.whole)
            steps = self.convolved.steps
            spatial = [self.strides[d] * steps[d][1] for d in self.convolved.labels.output_spatial]
            pitches = ([0] * self.is_line + spatial)[-2:]
            into = Into(self.write.arrays[0], offset, pitches[0], pitches[1])
            self.multiply(tile, left, into)
            self._repair(tile, into)
            return
        pixels = min(self.width, ROWS)
        rows = max(1, min(self.block, ROWS // pixels))
        if self.convolved.has_features_in_window:
            rows = min(self.block, _SHARING)  # they read the same part of the input
        pitch = min(self.columns, COLUMNS)
        sums = scope.local(self.sums, rows * pixels * pitch)
        into = Into(sums, ix.constant(0), pixels * pitch, pitch)
        with self.tiles(tile, left, (rows, pixels)) as (part, source):
            self.multiply(part, source, into)
            self._repair(part, into)
            self.write_results(part, into)

    @contextmanager
    def tiles(
        self, tile: Tile, left: Pointer, sizes: tuple[int, int]
    ) -> Iterator[tuple[Tile, Pointer]]:
        """Open loops over tiles of (rows of pixels, pixels) in a strip; yield each with its left
        factors.

        The last tile in each direction may be smaller.
        """
        scope, (rows, pixels) = self.scope, sizes
        row_pitch, pixel_pitch = self.pitches()
        with (
            scope.loop(-(-self.block // rows)) as y,
            scope.loop(-(-self.width // pixels)) as x,
        ):
            at = scope.bind(ix.multiply(y, rows)), scope.bind(ix.multiply(x, pixels))
            counts = (
                scope.bind(ix.clamp(0, ix.subtract(tile.counts[0], at[0]), rows)),
                scope.bind(ix.clamp(0, ix.subtract(self.width, at[1]), pixels)),
                tile.counts[2],
            )
            *outer, row, _ = tile.spatial
            part = tile._replace(spatial=(*outer, ix.add(row, at[0]), at[1]), counts=counts)
            moved = ix.add(ix.multiply(at[0], row_pitch), ix.multiply(at[1], pixel_pitch))
            yield part, Pointer(left.array, ix.add(left.offset, moved))

    def pitches(self) -> tuple[int, int]:
        """Return the pitches of left factors, from row to row of pixels and from pixel to pixel."""
        *_, row, pixel = (0, *self.input.position_pitches)
        return row, pixel

    def multiply(self, tile: Tile, left: Pointer, into: Into) -> None:
        """Call the inner kernel on a tile of pixels and a strip of columns."""
        row_pitch, pixel_pitch = self.pitches()
        self.scope.call(
            f"hlo_gemm_{self.sums}_segments",
            left,
            *map(ix.constant, (row_pitch, pixel_pitch, self.input.step_pitch)),
            Pointer(self.offsets, ix.constant(0)),
            *map(ix.constant, (len(self.input.offsets), self.input.length)),
            self.right.address(tile.group, tile.column),
            ix.constant(self.right.step_pitch),
            *tile.counts,
            Pointer(into.array, into.offset),
            *map(ix.constant, (into.row_pitch, into.pixel_pitch)),
        )

    def _index(self, tile: Tile, place: tuple[Expr, ...] = _FIRST) -> tuple[Expr, ...]:
        """Return the index of the result at a (row, pixel, column) of a tile."""
        labels, (row, pixel, j) = self.convolved.labels, place
        *outer, first_row, first_pixel = tile.spatial
        spatial = (*outer, ix.add(first_row, row), ix.add(first_pixel, pixel))[self.is_line :]
        index = {labels.output_batch: tile.image}
        index |= dict(zip(labels.output_spatial, spatial, strict=True))
        column = ix.add(tile.column, j)
        index[labels.output_feature] = ix.add(ix.multiply(tile.group, self.columns), column)
        steps = enumerate(self.convolved.steps)
        return tuple(ix.add(ix.multiply(index[d], step), first) for d, (first, step) in steps)

    def _repair(self, tile: Tile, into: Into) -> None:
        """Recompute sums that are not finite, from the factors that count.

        In the padding there is nothing; its zeros times infinity would be NaN.
        """
        if self.sums.is_integer or not is_padded(self.factors):
            return
        scope = self.scope
        rows, pixels, columns = tile.counts
        finite = scope.mutable(S32, Constant(S32, 1))
        with scope.loop(rows) as row:
            start = Pointer(into.array, into.row(row))
            pitch = ix.constant(into.pixel_pitch)
            function = f"hlo_gemm_{self.sums}_all_finite"
            scope.call(function, start, pixels, columns, pitch, Address(finite))
        with (
            scope.when(apply("compare-EQ", finite, Constant(S32, 0), type=PRED)),
            scope.over((rows, pixels, columns)) as (row, pixel, j),
        ):
            at = self.offset(into, row, pixel, j)
            is_finite = apply("is-finite", scope.load(into.array, at), type=PRED)
            with scope.when(apply("not", is_finite, type=PRED)):
                *outer, first_row, first_pixel = tile.spatial
                spatial = (*outer, ix.add(first_row, row), ix.add(first_pixel, pixel))
                m = self.convolved.row(tile.image, spatial[self.is_line :])
                column = ix.add(tile.column, j)
                # In a depthwise convolution the columns of a tile are those of several groups.
                group = ix.add(tile.group, ix.divide(column, self.factors.n))
                place = group, m, ix.modulo(column, self.factors.n)
                types = self.sums, self.sums
                exact = exact_sum_of_products(self.factors, types, self.sums, place, scope)
                scope.store(into.array, at, exact)

    def offset(self, into: Into, row: Expr, pixel: Expr, j: Expr) -> Expr:
        """Return the offset of the sum at a (row, pixel, column) of a tile."""
        return self.scope.bind(ix.add(into.row(row), ix.multiply(pixel, into.pixel_pitch), j))

    def write_results(self, tile: Tile, into: Into) -> None:
        """Write the epilogue of a tile; the result's innermost dimension is the lanes."""
        labels = self.convolved.labels
        rows, pixels, columns = tile.counts
        pixels_last = labels.output_spatial[-1] == len(self.convolved.dims) - 1
        inner = (columns, pixels) if pixels_last else (pixels, columns)
        with self.scope.loop(rows) as row:
            sums, start, pitches = into.array, into.row(row), (into.pixel_pitch, 1)
            if pixels_last and self._has_lanes(into):
                sums, start, pitches = self._turned(tile, into, start)
            with self.scope.loop(inner[0]) as outer, self.scope.loop(inner[1], "lanes") as lane:
                pixel, j = (lane, outer) if pixels_last else (outer, lane)
                places = (ix.multiply(i, pitch) for i, pitch in zip((pixel, j), pitches))
                offset = self.scope.bind(ix.add(start, *places))
                total = self.scope.bind(self.scope.load(sums, offset))
                index = self._index(tile, (row, pixel, j))
                if self.convolved.has_features_in_window:
                    index = index[:-1]
                self.write(index, (as_type(total, self.result),))

    def _has_lanes(self, into: Into) -> bool:
        """Return whether the sums of a tile on the stack have pixels and columns enough for vectors
        of either."""
        least = min(into.row_pitch // into.pixel_pitch, into.pixel_pitch)
        return least >= _LEAST_TURNED and self.scope.settings.has_lanes

    def _turned(self, tile: Tile, into: Into, start: Expr) -> tuple[Array, Expr, tuple[int, int]]:
        """Write a row of sums on the stack with pixels side by side, as they are stored; return
        where they are. What is computed of them could not load them in lanes."""
        (_, pixels, columns), most = tile.counts, into.row_pitch // into.pixel_pitch
        element_type, zero = into.array.element_type, ix.constant(0)
        turned = self.scope.local(element_type, into.row_pitch)
        self.scope.call(
            f"hlo_transpose_tile_{element_type.bits // 8}",
            Pointer(into.array, start),
            ix.constant(into.pixel_pitch),
            Pointer(turned, zero),
            ix.constant(most),
            pixels,
            columns,
        )
        return turned, zero, (1, most)
