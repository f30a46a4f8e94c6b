"""Write Fourier transforms in the type of the result (fast mode): runtime/hlo_fft_fast.h.

Transforms along a dimension are taken as many at a time as 64 bytes have numbers, side by side in
workspace: neighbours along the last dimension, or, where that is the one transformed, neighbouring
rows, transposed on the way in and out. A thread has workspace of its own. A long transform of n =
n1 n2 numbers is one along each dimension of a matrix, with roots of unity between (Bailey's four
steps, "FFTs in external or hierarchical memory", 1990); one of a large prime is a convolution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, zero
from backend_c.ir.loop_ir import INDEX, Apply, Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.fourier.fourier_plan import (
    Chirp,
    chirp,
    interleaved_roots,
    is_smooth,
    radices,
)
from backend_c.kernels.parts.fourier.fourier_workspace import Buffers, Lines
from backend_c.kernels.parts.fourier.real_fourier import Parts, halve_spectrum, spectrum_of_signal
from hlo.types import F32, F64, PRED, ElementType

_BYTES = 64  # of the lanes
_WORKERS = 16  # at most so many threads have workspace
_CHUNK = 64  # elements of rows that are transposed together
_NAMES = {F32: "float", F64: "double"}
_Index = tuple[Expr, ...]
# Maps the real and the imaginary part of a result, and its index, to what is stored.
Value = Callable[[Expr, Expr, _Index], Expr]


def lanes(part: ElementType) -> int:
    """Return how many transforms lie side by side."""
    return _BYTES // (part.bits // 8)


@dataclass(frozen=True)
class Target:
    """Say where results go: to an array of ``dims``.

    ``exchanged``: in memory this dimension and the next have changed places.
    """

    array: Array
    dims: tuple[int, ...]
    value: Value
    exchanged: int | None = None

    def offset(self, index: _Index) -> Expr:
        """Return the offset of a result."""
        if self.exchanged is None:
            return ix.linearize(index, self.dims)
        d, order = self.exchanged, list(range(len(self.dims)))
        order[d : d + 2] = d + 1, d
        return ix.linearize([index[d] for d in order], [self.dims[d] for d in order])


@dataclass
class Pass:
    """Describe transforms of ``length`` numbers along ``axis`` of ``source``, a reader.

    ``is_inverse`` exchanges real and imaginary parts. ``is_half``: of a real signal's spectrum the
    source has the first half; it is mirrored, X[n - k] = conj(X[k]), and the constant and, for even
    lengths, the middle coefficient count as real. ``has_signal``: the source (of an inverse
    transform the target) are real signals of twice the length, pairs of numbers read as complex
    ones; the other side is the first half of their spectra.
    """

    scope: Scope
    part: ElementType
    source: Element
    axis: int
    length: int
    target: Target
    is_inverse: bool
    is_half: bool = False
    has_signal: bool = False
    width: int = field(init=False)
    chirp: Chirp | None = field(init=False)

    def __post_init__(self) -> None:
        self.width = lanes(self.part)
        self.chirp = None if is_smooth(self.length) else chirp(self.length)

    # Loops over blocks of lanes

    @property
    def _is_last(self) -> bool:
        """Return whether the last dimension is transformed, so that lanes are rows."""
        return self.axis == len(self.target.dims) - 1

    def _extents(self) -> tuple[tuple[int, ...], int]:
        """Return the outer dimensions, and the extent of the one that lanes run along."""
        dims = self.target.dims
        if self._is_last and self.target.exchanged is None:
            return (), math.prod(dims[:-1])
        if self._is_last:
            return dims[:-2], dims[-2]
        return (*dims[: self.axis], *dims[self.axis + 1 : -1]), dims[-1]

    def emit(self) -> None:
        """Write all transforms."""
        scope, (outer, along) = self.scope, self._extents()
        numbers = self.chirp.length if self.chirp else self.length
        # One more for the last coefficient of half a spectrum.
        size = 2 * (numbers + self.has_signal) * self.width
        blocks = math.prod(outer) * -(-along // self.width)
        most = min(blocks, _WORKERS)
        work = 8 * blocks * size
        is_shared = most > 1 and nest.loop_kind(scope, work) == "parallel"
        values, spare = (scope.scratch(self.part, size * (most if is_shared else 1)) for _ in "12")
        tables = self._tables(numbers)
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
                if self.has_signal and self.is_inverse:
                    self._halve(buffers, tables["signal"])
                self._transform(buffers, tables, numbers)
                self._write(lines, buffers, for_rows, tables)

    @contextmanager
    def _share(self, worker: Expr, workers: Expr, blocks: int) -> Iterator[Expr]:
        """Open the loop over a worker's share of the blocks."""
        if ix.value_of(workers) == 1:
            with self.scope.loop(blocks) as block:
                yield block
            return
        ends = (ix.multiply(number, blocks) for number in (worker, ix.add(worker, 1)))
        first, end = (self.scope.bind(Apply("divide", (place, workers), INDEX)) for place in ends)
        with self.scope.loop(self.scope.bind(ix.subtract(end, first))) as number:
            yield self.scope.bind(ix.clamp(0, ix.add(first, number), blocks - 1))

    # Transforms

    def _tables(self, numbers: int) -> dict[str, Array]:
        """Add the constants of the transforms to the kernel."""
        dtype = self.part.numpy
        tables = {
            "roots": interleaved_roots(numbers).astype(dtype),
            "radices": np.array(radices(numbers) or (1,), np.int32),
        }
        if self.has_signal:
            tables["signal"] = interleaved_roots(2 * self.length)[: 2 * self.length + 2].astype(
                dtype
            )
        if self.chirp:
            tables["factors"] = self.chirp.factors.astype(dtype)
            tables["spectrum"] = self.chirp.spectrum.astype(dtype)
        return {name: self.scope.table(table) for name, table in tables.items()}

    def _transform(self, buffers: Buffers, tables: dict[str, Array], numbers: int) -> None:
        """Write the transform of a block; for a convolution, forth and back."""
        if self.chirp is None:
            self._stages(buffers, tables, numbers)
            return
        self._multiply(buffers, tables["factors"], self.length, is_exchanged=False)
        with self.scope.loop((numbers - self.length) * 2 * self.width, "lanes") as rest:
            place = ix.add(buffers.start, 2 * self.width * self.length, rest)
            self.scope.store(buffers.current, place, Constant(self.part, 0.0))
        self._stages(buffers, tables, numbers)
        self._multiply(buffers, tables["spectrum"], numbers, is_exchanged=True)
        self._stages(buffers, tables, numbers)
        # Back from the inverse transform: parts are exchanged once more.
        self._multiply(buffers, tables["factors"], self.length, is_exchanged=False, swaps=True)

    def _stages(self, buffers: Buffers, tables: dict[str, Array], numbers: int) -> None:
        """Write the call of the stages of a smooth transform."""
        start, stages = ix.constant(0), len(radices(numbers))
        self.scope.call(
            f"hlo_fft_lanes_{_NAMES[self.part]}",
            *(Pointer(array, buffers.start) for array in buffers.both),
            Pointer(tables["roots"], start),
            Pointer(tables["radices"], start),
            ix.constant(stages),
            ix.constant(numbers),
        )
        buffers.advance(stages)

    def _multiply(
        self,
        buffers: Buffers,
        factors: Array,
        numbers: int,
        *,
        is_exchanged: bool,
        swaps: bool = False,
    ) -> None:
        """Write the products of all numbers with factors; exchange the parts after, or before."""
        scope, array = self.scope, buffers.current
        with scope.loop(numbers) as k:
            c, d = (scope.bind(scope.load(factors, ix.add(ix.multiply(k, 2), i))) for i in (0, 1))
            with scope.loop(self.width, "lanes") as lane:
                places = [self._at(buffers.start, k, lane, i) for i in (0, 1)]
                a, b = (scope.bind(scope.load(array, place)) for place in places)
                if swaps:
                    a, b = b, a
                real = apply("subtract", apply("multiply", a, c), apply("multiply", b, d))
                imag = apply("add", apply("multiply", a, d), apply("multiply", b, c))
                made = [scope.bind(real), scope.bind(imag)]
                for place, value in zip(places, reversed(made) if is_exchanged else made):
                    scope.store(array, place, value)

    def _at(self, start: Expr, k: Expr, lane: Expr, part: int) -> Expr:
        """Return the offset of the real or the imaginary part of a number in workspace."""
        return ix.add(start, ix.multiply(k, 2 * self.width), part * self.width, lane)

    # Reading and writing

    def _row_copy(self) -> Array | None:
        """Declare the array that chunks of rows are transposed into, and out of."""
        if not self._is_last:
            return None
        source = self.source.shape.element_type
        wider = max(source, self.target.array.element_type, key=lambda t: t.bits)
        copy = self.scope.local(wider, _CHUNK * self.width)
        # Lanes beyond the last row hold zeros, or rows of before: nothing of them is written.
        with self.scope.loop(_CHUNK * self.width, "lanes") as place:
            self.scope.store(copy, place, zero(wider))
        return copy

    def _index(self, lines: Lines, k: Expr, lane: Expr) -> _Index:
        """Return the index of number k of a lane, in the source and the target."""
        line = ix.add(lines.first, lane)
        if self._is_last and self.target.exchanged is None:
            return (*ix.delinearize(line, self.target.dims[:-1]), k)
        if self._is_last:
            return (*lines.outer, line, k)
        return (*lines.outer[: self.axis], k, *lines.outer[self.axis :], line)

    def _line(self, lines: Lines) -> Expr:
        """Return the number of the first row."""
        outer, along = self._extents()
        return ix.linearize((*lines.outer, lines.first), (*outer, along))

    def _read(self, lines: Lines, buffers: Buffers, copy: Array | None) -> None:
        """Write the reading of the numbers of all lanes."""
        scope, source = self.scope, self.source
        places = self.length // 2 + 1 if self.is_half else self.length
        places += self.has_signal and self.is_inverse
        is_copied = copy is not None and copy.element_type is source.shape.element_type
        if copy is None or source.array is None or not is_copied:
            with scope.loop(places) as k, scope.loop(lines.count, "lanes") as lane:
                self._put(buffers, k, lane, source.at(*self._index(lines, k, lane)))
            return
        row = source.shape.dims[-1]
        with self._chunks(places) as (first, count):
            offset = ix.add(ix.multiply(self._line(lines), row), first)
            self._transpose(_pointer(source.array, offset), row, Pointer(copy, ix.constant(0)),
                            self.width, (lines.count, count))  # fmt: skip
            with scope.loop(count) as k, scope.loop(self.width, "lanes") as lane:
                place = ix.add(ix.multiply(k, self.width), lane)
                self._put(buffers, ix.add(first, k), lane, scope.load(copy, place))

    def _put(self, buffers: Buffers, k: Expr, lane: Expr, value: Expr) -> None:
        """Write a number to workspace, and its mirror image."""
        scope, none = self.scope, Constant(self.part, 0.0)
        real: Expr = value
        imag: Expr = none
        if value.type.is_complex:
            named = scope.bind(value)
            real, imag = (apply(name, named, type=self.part) for name in ("real", "imag"))
        if not self.is_half:
            self._store(buffers, k, lane, real, imag)
            return
        ends = [0, self.length // 2] if self.length % 2 == 0 else [0]
        is_end = [apply("compare-EQ", k, ix.constant(end), type=PRED) for end in ends]
        real_only = is_end[0] if len(is_end) == 1 else apply("or", *is_end)
        own = scope.bind(apply("select", real_only, none, imag, type=self.part))
        real = scope.bind(real)
        # Those that mirror themselves are written twice, the same both times.
        mirrored = ix.modulo(ix.subtract(self.length, k), self.length)
        self._store(buffers, mirrored, lane, real, apply("negate", own))
        self._store(buffers, k, lane, real, own)

    def _store(self, buffers: Buffers, k: Expr, lane: Expr, real: Expr, imag: Expr) -> None:
        """Write both parts, exchanged for the inverse transform."""
        parts = (imag, real) if self.is_inverse else (real, imag)
        for number, part in enumerate(parts):
            self.scope.store(buffers.current, self._at(buffers.start, k, lane, number), part)

    def _load(self, buffers: Buffers, k: Expr, lane: Expr) -> Parts:
        """Return the parts of a number in workspace, which are exchanged for the inverse."""
        places = (self._at(buffers.start, k, lane, number) for number in (0, 1))
        parts = [self.scope.bind(self.scope.load(buffers.current, place)) for place in places]
        return Parts(*reversed(parts)) if self.is_inverse else Parts(*parts)

    def _halve(self, buffers: Buffers, roots: Array) -> None:
        """Write the spectra of signals as those of half as many complex numbers."""
        scope, half = self.scope, self.length
        with scope.loop(half // 2 + 1) as k, scope.loop(self.width, "lanes") as lane:

            def load(number: Expr) -> Parts:
                real, imag = self._load(buffers, number, lane)
                ends = (apply("compare-EQ", number, ix.constant(end), type=PRED)
                        for end in (0, half))  # fmt: skip
                is_end = apply("or", *ends)
                none = Constant(self.part, 0.0)
                return Parts(real, scope.bind(apply("select", is_end, none, imag, type=self.part)))

            def store(number: Expr, parts: Parts) -> None:
                self._store(buffers, number, lane, *parts)

            halve_spectrum(scope, (load, store), roots, half, k)

    def _write(
        self, lines: Lines, buffers: Buffers, copy: Array | None, tables: dict[str, Array]
    ) -> None:
        """Write the results of all lanes."""
        scope, target = self.scope, self.target
        places = target.dims[self.axis]

        def value(k: Expr, lane: Expr) -> Expr:
            def load(number: Expr) -> Parts:
                return self._load(buffers, number, lane)

            if self.has_signal and not self.is_inverse:
                parts = spectrum_of_signal(scope, load, tables["signal"], self.length, k)
            else:
                parts = load(k)
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
        """Open a loop over chunks of rows; yield the first place and the number of places."""
        with self.scope.loop(-(-places // _CHUNK)) as chunk:
            first = self.scope.bind(ix.multiply(chunk, _CHUNK))
            count = self.scope.bind(ix.clamp(0, ix.subtract(places, first), _CHUNK))
            yield first, count

    def _transpose(
        self, source: Pointer, pitch: int, into: Pointer, into_pitch: int, sizes: tuple[Expr, Expr]
    ) -> None:
        """Write the transposition of rows and columns."""
        width = source.array.element_type.bits // 8
        pitches = ix.constant(pitch), ix.constant(into_pitch)
        self.scope.call(f"hlo_transpose_tile_{width}", source, pitches[0], into, pitches[1], *sizes)


def _pointer(array: Array, offset: Expr) -> Pointer:
    """Return the address of an element, in a view of real numbers as complex ones, too."""
    return Pointer(array, ix.multiply(offset, 2) if array.memory is not None else offset)
