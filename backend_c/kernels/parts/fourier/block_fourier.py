"""Write passes of fast Fourier transforms for blocks of threads (runtime/hlo_block_fft.h).

A block has a line, or several neighbouring ones, in shared memory twice: each stage goes from one
buffer to the other, its butterflies shared by the threads. Along the last dimension neighbouring
threads read neighbouring numbers of a line, along others those of neighbouring lines. What has no
room there, and cannot be split into two passes that have, is in memory, still by all threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.fourier.fourier_pass import NAMES, Index, Numbers, Pass, complex_at
from backend_c.kernels.parts.fourier.fourier_plan import (
    convolution_length,
    is_smooth,
    radices,
    similar_factors,
)
from hlo.types import PRED, ElementType

_THREADS = 256
_MOST = 48 << 10  # bytes of static shared memory of a block
_WANTED = 16 << 10  # bytes of a buffer, so that six blocks of a multiprocessor take turns
_BANKS = 128  # bytes that are in different banks
_SECTOR = 32  # bytes that memory moves at once
_BLOCKS = 264  # fewer leave multiprocessors idle
_BUTTERFLIES = (2, 3, 4, 5, 8)  # radices with a function of their own


def has_blocks(scope: Scope) -> bool:
    """Return whether blocks of threads transform."""
    return scope.settings.has_blocks and scope.is_outermost


def block_factors(length: int, part: ElementType, *, is_last: bool) -> tuple[int, int] | None:
    """Return the factors that a transform is split into, if it has no room in shared memory.

    None, too, if factors have none. Those along other dimensions than the last have room if there
    is some for as many lines as are half of what memory moves at once.
    """
    lines = 1 if is_last else max(1, _SECTOR // 2 // _width(part))
    if _fits(length, lines, part):
        return None
    for first, second in similar_factors(length):
        if first > 1 and _fits(first, lines, part) and _fits(second, lines, part):
            return first, second
    return None


def _fits(length: int, lines: int, part: ElementType) -> bool:
    """Return whether two buffers of lines have room in shared memory."""
    return 2 * _buffer(length, lines, part) <= _MOST


def _buffer(length: int, lines: int, part: ElementType) -> int:
    """Return the bytes of a buffer of lines, with the last coefficient of half a spectrum."""
    numbers = length if is_smooth(length) else convolution_length(length)
    return _width(part) * lines * _pitch(numbers + 1, lines, part)


def _width(part: ElementType) -> int:
    """Return the bytes of a complex number."""
    return part.bits // 4


def _row(part: ElementType) -> int:
    """Return how many parts of numbers are in different banks."""
    return _BANKS // (part.bits // 8)


def _pitch(numbers: int, lines: int, part: ElementType) -> int:
    """Return the distance of lines: neighbouring ones begin in banks as far apart as can be."""
    row = _row(part)
    pitch = numbers + (numbers - 1) // row
    if lines == 1:
        return pitch
    apart = row // min(lines, row)
    return pitch + (apart - pitch) % row


@dataclass(frozen=True)
class _Buffers:
    """Hold the two buffers of a group, and where its part of them starts."""

    arrays: tuple[Array, Array]
    start: Expr


@dataclass
class BlockPass:
    """Write a pass by blocks of threads, each of which has some neighbouring lines."""

    of: Pass
    lines: int = field(init=False)  # of a block
    is_shared: bool = field(init=False)  # whether they have room in shared memory
    pitch: int = field(init=False)
    _at: int = field(init=False, default=0)  # the buffer that has the numbers

    def __post_init__(self) -> None:
        of = self.of
        # One more for the last coefficient of half a spectrum.
        places = of.numbers + of.has_signal
        self.lines = self._lines_of_block(places)
        self.pitch = _pitch(places, self.lines, of.part)
        self.is_shared = self._has_room(places, self.lines)

    def _has_room(self, places: int, lines: int) -> bool:
        """Return whether two buffers of lines have room in shared memory."""
        part = self.of.part
        return 2 * _width(part) * lines * _pitch(places, lines, part) <= _MOST

    def _lines_of_block(self, places: int) -> int:
        """Return how many lines a block has: a power of two, enough for its threads if there are
        as many blocks as keep the GPU busy, or for whole sectors of memory where lines are
        neighbours there."""
        width, count = _width(self.of.part), math.prod(self._others)
        least = 1 if self._is_along else _SECTOR // width
        lines = 1
        while lines < count and self._has_room(places, 2 * lines):
            is_wanted = 2 * lines * places * width <= _WANTED and count // (2 * lines) >= _BLOCKS
            if not is_wanted and lines >= least:
                break
            lines *= 2
        return lines

    @property
    def _is_along(self) -> bool:
        """Return whether neighbouring numbers of a line are neighbours in memory, both ways."""
        return self.of.is_last and self.of.target.exchanged is None

    @property
    def _others(self) -> tuple[int, ...]:
        """Return the dimensions that number the lines."""
        dims = self.of.target.dims
        return (*dims[: self.of.axis], *dims[self.of.axis + 1 :])

    def emit(self) -> None:
        """Write all transforms."""
        of, scope = self.of, self.of.scope
        count = math.prod(self._others)
        groups = -(-count // self.lines)
        tables = of.tables()
        with self._groups(groups) as (group, buffers):
            first = scope.bind(ix.multiply(group, self.lines))
            place = tuple(map(scope.bind, ix.delinearize(first, self._others)))
            self._at = 0
            self._read(first, place, buffers)
            scope.barrier()
            if of.has_signal and of.is_inverse:
                with self._each(of.length // 2 + 1, is_along=True) as (k, line):
                    self._numbers(buffers).halve(k, line, tables["signal"])
                scope.barrier()
            self._transform(buffers, tables)
            self._write(first, place, buffers, tables)
            scope.barrier()

    @contextmanager
    def _groups(self, groups: int) -> Iterator[tuple[Expr, _Buffers]]:
        """Open the loop over groups of lines; yield the group's number and its buffers."""
        scope, part, size = self.of.scope, self.of.part, 2 * self.lines * self.pitch
        if self.is_shared:
            with scope.blocks(groups, _THREADS) as group:
                first, second = (scope.shared(part, size) for _ in "12")
                yield group, _Buffers((first, second), ix.constant(0))
            return
        workers = min(groups, _BLOCKS)
        first, second = (scope.scratch(part, size * workers) for _ in "12")
        with scope.blocks(workers, _THREADS) as worker:
            start = scope.bind(ix.multiply(worker, size))
            turns = ix.divide(ix.subtract(groups + workers - 1, worker), workers)
            with scope.loop(scope.bind(turns)) as turn:
                group = ix.add(worker, ix.multiply(turn, workers))
                yield ix.clamp(0, group, groups - 1), _Buffers((first, second), start)

    @contextmanager
    def _each(self, numbers: int, *, is_along: bool) -> Iterator[tuple[Expr, Expr]]:
        """Open the loop of the threads over numbers of all lines; yield number and line.

        Neighbouring threads have neighbouring numbers of a line (``is_along``), or lines.
        """
        scope, sizes = self.of.scope, (numbers, self.lines)
        with scope.loop(numbers * self.lines, "threads") as i:
            if is_along:
                line, k = map(scope.bind, ix.delinearize(i, sizes[::-1]))
            else:
                k, line = map(scope.bind, ix.delinearize(i, sizes))
            yield k, line

    # Transforms

    def _transform(self, buffers: _Buffers, tables: dict[str, Array]) -> None:
        """Write the transform of a group; for a convolution, forth and back."""
        of, scope = self.of, self.of.scope
        if of.chirp is None:
            self._stages(buffers, tables["roots"])
            return
        self._multiply(buffers, tables["factors"], of.length, is_exchanged=False)
        with self._each(of.numbers - of.length, is_along=True) as (k, line):
            for part in (0, 1):
                place = self._numbers(buffers).place(ix.add(k, of.length), line, part)
                scope.store(*place, Constant(of.part, 0.0))
        scope.barrier()
        self._stages(buffers, tables["roots"])
        self._multiply(buffers, tables["spectrum"], of.numbers, is_exchanged=True)
        scope.barrier()
        self._stages(buffers, tables["roots"])
        # Back from the inverse transform: parts are exchanged once more.
        self._multiply(buffers, tables["factors"], of.length, is_exchanged=False, swaps=True)
        scope.barrier()

    def _stages(self, buffers: _Buffers, roots: Array) -> None:
        """Write the stages of a smooth transform."""
        of, combined = self.of, 1
        for radix in radices(of.numbers):
            count = of.numbers // combined // radix
            has_own = radix in _BUTTERFLIES
            sizes = combined, count, self.lines, self.pitch, *(() if has_own else (radix,))
            of.scope.call(
                f"hlo_block_fft_{NAMES[of.part]}_{radix if has_own else 'any'}",
                Pointer(buffers.arrays[self._at], buffers.start),
                Pointer(buffers.arrays[1 - self._at], buffers.start),
                Pointer(roots, ix.constant(0)),
                *map(ix.constant, sizes),
            )
            of.scope.barrier()
            self._at = 1 - self._at
            combined *= radix

    def _multiply(
        self,
        buffers: _Buffers,
        factors: Array,
        numbers: int,
        *,
        is_exchanged: bool,
        swaps: bool = False,
    ) -> None:
        """Write the products of all numbers with factors; exchange the parts after, or before."""
        with self._each(numbers, is_along=True) as (k, line):
            factor = complex_at(self.of.scope, factors, k)
            ours = self._numbers(buffers)
            ours.multiply(k, line, factor, is_exchanged=is_exchanged, swaps=swaps)

    def _numbers(self, buffers: _Buffers) -> Numbers:
        """Return the numbers in workspace."""
        array, row = buffers.arrays[self._at], _row(self.of.part)

        def place(k: Expr, line: Expr, part: int) -> tuple[Array, Expr]:
            own = ix.add(k, ix.divide(k, row), ix.multiply(line, self.pitch))
            return array, ix.add(buffers.start, own, part * self.lines * self.pitch)

        return Numbers(self.of, place)

    # Reading and writing

    def _index(self, first: Expr, place: Index, k: Expr, line: Expr) -> Index:
        """Return the index of number k of a line, in the source and the target."""
        if self._others and self._others[-1] % self.lines == 0:  # lines of a group do not leave it
            other = (*place[:-1], ix.add(place[-1], line))
        else:
            number = ix.clamp(0, ix.add(first, line), math.prod(self._others) - 1)
            other = ix.delinearize(self.of.scope.bind(number), self._others)
        return (*other[: self.of.axis], k, *other[self.of.axis :])

    def _read(self, first: Expr, place: Index, buffers: _Buffers) -> None:
        """Write the reading of all lines; those behind the last one are the last one again."""
        numbers = self._numbers(buffers)
        with self._each(self.of.places_read, is_along=self.of.is_last) as (k, line):
            numbers.put(k, line, self.of.source.at(*self._index(first, place, k, line)))

    def _write(
        self, first: Expr, place: Index, buffers: _Buffers, tables: dict[str, Array]
    ) -> None:
        """Write the results of all lines."""
        of, scope = self.of, self.of.scope
        count, numbers = math.prod(self._others), self._numbers(buffers)

        def store(k: Expr, line: Expr) -> None:
            index = self._index(first, place, k, line)
            value = of.target.value(*numbers.result(k, line, tables), index)
            self._store(of.target.array, of.target.offset(index), value)

        with self._each(of.target.dims[of.axis], is_along=self._is_along) as (k, line):
            if count % self.lines == 0:
                store(k, line)
                return
            is_there = apply("compare-LT", ix.add(first, line), ix.constant(count), type=PRED)
            with scope.when(is_there):
                store(k, line)

    def _store(self, array: Array, offset: Expr, value: Expr) -> None:
        """Write an element, of a view of real numbers as complex ones both numbers."""
        scope = self.of.scope
        if array.memory is None:
            scope.store(array, offset, value)
            return
        numbers, pair = Array(array.name, array.memory, 2 * array.elements), scope.bind(value)
        for number, name in enumerate(("real", "imag")):
            place = ix.add(ix.multiply(offset, 2), number)
            scope.store(numbers, place, apply(name, pair, type=array.memory))
