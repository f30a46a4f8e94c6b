"""Write Fourier transforms in the type of the result (fast mode): runtime/hlo_fft_fast.h.

Transforms along a dimension are taken as many at a time as 64 bytes have numbers, side by side in
workspace: neighbours along the last dimension, or, where that is the one transformed, neighbouring
rows, transposed on the way in and out. A thread has workspace of its own. A long transform of n =
n1 n2 numbers is one along each dimension of a matrix, with roots of unity between (Bailey's four
steps, "FFTs in external or hierarchical memory", 1990); one of a large prime is a convolution.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import zero
from backend_c.ir.loop_ir import INDEX, Apply, Array, Constant, Expr, Pointer
from backend_c.kernels.parts.fourier.fourier_pass import (
    NAMES,
    Index,
    Numbers,
    Pass,
    PassWriter,
    complex_at,
)
from backend_c.kernels.parts.fourier.fourier_plan import radices
from backend_c.kernels.parts.fourier.fourier_workspace import Buffers, Lines
from hlo.types import ElementType

_BYTES = 64  # of the lanes
_WORKERS = 16  # at most so many threads have workspace
_CHUNK = 64  # elements of rows that are transposed together


def lanes(part: ElementType) -> int:
    """Return how many transforms are interleaved: 64 bytes of reals."""
    return _BYTES // (part.bits // 8)


class LanePass(PassWriter):
    """Write a pass on a processor: transforms side by side are the lanes."""

    def __init__(self, of: Pass) -> None:
        super().__init__(of)
        self.width = lanes(of.part)

    # Loops over blocks of lanes

    def _extents(self) -> tuple[tuple[int, ...], int]:
        """Return the outer dimensions, and the extent of the one that lanes run along.

        Of transforms along the last dimension lanes are rows.
        """
        of, dims = self.of, self.of.target.dims
        if of.is_last and of.target.exchanged is None:
            return (), math.prod(dims[:-1])
        if of.is_last:
            return dims[:-2], dims[-2]
        return (*dims[: of.axis], *dims[of.axis + 1 : -1]), dims[-1]

    def emit(self) -> None:
        """Write all transforms."""
        of, scope, (outer, along) = self.of, self.of.scope, self._extents()
        # One more for the last coefficient of half a spectrum.
        size = 2 * (of.numbers + of.has_signal) * self.width
        blocks = math.prod(outer) * -(-along // self.width)
        most = min(blocks, _WORKERS)
        work = 8 * blocks * size
        is_shared = most > 1 and nest.loop_kind(scope, work) == "parallel"
        values, spare = (scope.scratch(of.part, size * (most if is_shared else 1)) for _ in "12")
        tables = of.tables()
        tables["radices"] = scope.table(np.array(radices(of.numbers) or (1,), np.int32))
        workers: Expr = ix.constant(1)
        if is_shared:
            workers = scope.bind(ix.clamp(1, Apply("workers", (), INDEX), most))
        with scope.loop(workers, "parallel" if is_shared else "serial") as worker:
            start = scope.bind(ix.multiply(worker, size))
            buffers = Buffers(start, (values, spare))
            for_rows = self._row_copy()
            with self._share(worker, workers, blocks) as block:
                *place, number = ix.delinearize(block, (*outer, -(-along // self.width)))
                outer_index = tuple(map(scope.bind, place))
                first = scope.bind(ix.multiply(number, self.width))
                count = scope.bind(ix.clamp(0, ix.subtract(along, first), self.width))
                lines = Lines(outer_index, first, count)
                buffers.restart()
                self._read(lines, buffers, for_rows)
                if of.has_signal and of.is_inverse:
                    self._halve(buffers, tables["signal"])
                self.transform(buffers, tables)
                self._write(lines, buffers, for_rows, tables)

    @contextmanager
    def _share(self, worker: Expr, workers: Expr, blocks: int) -> Iterator[Expr]:
        """Open the loop over a worker's share of the blocks."""
        scope = self.of.scope
        if ix.value_of(workers) == 1:
            with scope.loop(blocks) as block:
                yield block
            return
        first, end = map(scope.bind, ix.share(worker, workers, blocks))
        with scope.loop(scope.bind(ix.subtract(end, first))) as number:
            yield scope.bind(ix.clamp(0, ix.add(first, number), blocks - 1))

    # Transforms

    def _meet(self) -> None:
        """Write no barrier: a thread shares its workspace with no other."""

    def _clear(self, buffers: Buffers) -> None:
        of, scope = self.of, self.of.scope
        with scope.loop((of.numbers - of.length) * 2 * self.width, "lanes") as rest:
            place = ix.add(buffers.start, 2 * self.width * of.length, rest)
            scope.store(buffers.current, place, Constant(of.part, 0.0))

    def _stages(self, buffers: Buffers, tables: dict[str, Array]) -> None:
        start, stages = ix.constant(0), len(radices(self.of.numbers))
        self.of.scope.call(
            f"hlo_fft_lanes_{NAMES[self.of.part]}",
            *(Pointer(array, buffers.start) for array in buffers.both),
            Pointer(tables["roots"], start),
            Pointer(tables["radices"], start),
            ix.constant(stages),
            ix.constant(self.of.numbers),
        )
        buffers.advance(stages)

    def _multiply(
        self,
        buffers: Buffers,
        factors: Array,
        numbers: int,
        *,
        is_exchanged: bool = False,
        swaps: bool = False,
    ) -> None:
        scope, ours = self.of.scope, self._numbers(buffers)
        with scope.loop(numbers) as k:
            factor = complex_at(scope, factors, k)
            with scope.loop(self.width, "lanes") as lane:
                ours.multiply(k, lane, factor, is_exchanged=is_exchanged, swaps=swaps)

    def _numbers(self, buffers: Buffers) -> Numbers:
        """Return the accessor of numbers in workspace."""
        array, start = buffers.current, buffers.start

        def place(k: Expr, lane: Expr, part: int) -> tuple[Array, Expr]:
            at = ix.add(start, ix.multiply(k, 2 * self.width), part * self.width, lane)
            return array, at

        return Numbers(self.of, place)

    # Reading and writing

    def _row_copy(self) -> Array | None:
        """Declare the array through which chunks of rows are transposed; None if columns are
        lanes."""
        of, scope = self.of, self.of.scope
        if not of.is_last:
            return None
        source = of.source.shape.element_type
        # Tiles are moved as they are: a side of another type (a real signal in or out) is read or
        # written one by one.
        wider = max(source, of.target.array.element_type, key=lambda t: t.bits)
        copy = scope.local(wider, _CHUNK * self.width)
        # Lanes beyond the last row hold zeros, or rows of before: nothing of them is written.
        with scope.loop(_CHUNK * self.width, "lanes") as place:
            scope.store(copy, place, zero(wider))
        return copy

    def _index(self, lines: Lines, k: Expr, lane: Expr) -> Index:
        """Return the arrays' index of number k of a lane."""
        of, line = self.of, ix.add(lines.first, lane)
        if of.is_last and of.target.exchanged is None:
            return (*ix.delinearize(line, of.target.dims[:-1]), k)
        if of.is_last:
            return (*lines.outer, line, k)
        return (*lines.outer[: of.axis], k, *lines.outer[of.axis :], line)

    def _line(self, lines: Lines) -> Expr:
        """Return the row-major number of the block's first row."""
        outer, along = self._extents()
        return ix.linearize((*lines.outer, lines.first), (*outer, along))

    def _read(self, lines: Lines, buffers: Buffers, copy: Array | None) -> None:
        """Write the loads of all lanes' numbers into workspace."""
        scope, source, places = self.of.scope, self.of.source, self.of.places_read
        numbers = self._numbers(buffers)
        is_copied = copy is not None and copy.element_type is source.shape.element_type
        if copy is None or source.array is None or not is_copied:
            with scope.loop(places) as k, scope.loop(lines.count, "lanes") as lane:
                numbers.put(k, lane, source.at(*self._index(lines, k, lane)))
            return
        row = source.shape.dims[-1]
        with self._chunks(places) as (first, count):
            offset = ix.add(ix.multiply(self._line(lines), row), first)
            self._transpose(_pointer(source.array, offset), row, Pointer(copy, ix.constant(0)),
                            self.width, (lines.count, count))  # fmt: skip
            with scope.loop(count) as k, scope.loop(self.width, "lanes") as lane:
                place = ix.add(ix.multiply(k, self.width), lane)
                numbers.put(ix.add(first, k), lane, scope.load(copy, place))

    def _halve(self, buffers: Buffers, roots: Array) -> None:
        """Turn spectra of real signals into those of half as many complex numbers, in place."""
        scope, numbers = self.of.scope, self._numbers(buffers)
        with scope.loop(self.of.length // 2 + 1) as k, scope.loop(self.width, "lanes") as lane:
            numbers.halve(k, lane, roots)

    def _write(
        self, lines: Lines, buffers: Buffers, copy: Array | None, tables: dict[str, Array]
    ) -> None:
        """Write the stores of all lanes' results."""
        scope, target, numbers = self.of.scope, self.of.target, self._numbers(buffers)
        places = target.dims[self.of.axis]

        def value(k: Expr, lane: Expr) -> Expr:
            parts = numbers.result(k, lane, tables)
            return target.value(*parts, self._index(lines, k, lane))

        is_copied = copy is not None and copy.element_type is target.array.element_type
        if copy is None or target.exchanged is not None or not is_copied:
            with scope.loop(places) as k, scope.loop(lines.count, "lanes") as lane:
                offset = target.offset(self._index(lines, k, lane))
                scope.store(target.array, offset, value(k, lane))
            return
        row = target.dims[-1]
        with self._chunks(places) as (first, count):
            with scope.loop(count) as k, scope.loop(self.width, "lanes") as lane:
                place = ix.add(ix.multiply(k, self.width), lane)
                scope.store(copy, place, value(ix.add(first, k), lane))
            offset = ix.add(ix.multiply(self._line(lines), row), first)
            self._transpose(Pointer(copy, ix.constant(0)), self.width,
                            _pointer(target.array, offset), row, (count, lines.count))  # fmt: skip

    @contextmanager
    def _chunks(self, places: int) -> Iterator[tuple[Expr, Expr]]:
        """Open a loop over chunks of a row's elements; yield the first one and their number."""
        with self.of.scope.loop(-(-places // _CHUNK)) as chunk:
            first = self.of.scope.bind(ix.multiply(chunk, _CHUNK))
            count = self.of.scope.bind(ix.clamp(0, ix.subtract(places, first), _CHUNK))
            yield first, count

    def _transpose(
        self, source: Pointer, pitch: int, into: Pointer, into_pitch: int, sizes: tuple[Expr, Expr]
    ) -> None:
        """Call the runtime to transpose a tile of rows and columns."""
        width = source.array.element_type.bits // 8
        pitches = ix.constant(pitch), ix.constant(into_pitch)
        self.of.scope.call(
            f"hlo_transpose_tile_{width}", source, pitches[0], into, pitches[1], *sizes
        )


def _pointer(array: Array, offset: Expr) -> Pointer:
    """Return the address of a complex element, also in a view of real numbers as complex ones."""
    return Pointer(array, ix.multiply(offset, 2) if array.memory is not None else offset)
