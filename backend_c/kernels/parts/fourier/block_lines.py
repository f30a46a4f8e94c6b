"""Lay out lines of complex numbers in the shared memory of blocks, in two buffers
(hlo_block_fft.h)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Array, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.fourier.fourier_workspace import Buffers
from hlo.types import PRED, ElementType

_THREADS = 256
_MOST = 48 << 10  # bytes of shared memory of a block with several lines, so that four take turns
_MOST_OF_ONE = 96 << 10  # the same of one line, which would be two passes otherwise
_WANTED = 16 << 10  # bytes of a buffer, so that six blocks of a multiprocessor take turns
_BANKS = 128  # bytes that are in different banks
_SECTOR = 32  # bytes that memory moves at once
_BLOCKS = 264  # fewer leave multiprocessors idle


def have_room(numbers: int, lines: int, part: ElementType) -> bool:
    """Return whether two buffers of ``lines`` lines of numbers fit in shared memory."""
    most = _MOST_OF_ONE if lines == 1 else _MOST
    return 2 * _width(part) * lines * _pitch(numbers, lines, part) <= most


def half_a_sector(part: ElementType) -> int:
    """Return how many complex numbers are half of a memory transaction (sector)."""
    return max(1, _SECTOR // 2 // _width(part))


def _width(part: ElementType) -> int:
    """Return the bytes of a complex number."""
    return part.bits // 4


def _row(part: ElementType) -> int:
    """Return how many consecutive reals lie in different banks."""
    return _BANKS // (part.bits // 8)


def _pitch(numbers: int, lines: int, part: ElementType) -> int:
    """Return the distance of lines: padded so that they begin in banks as far apart as can be."""
    row = _row(part)
    # A number of padding after each row of banks: strides of powers of two do not meet in one bank.
    pitch = numbers + (numbers - 1) // row
    if lines == 1:
        return pitch
    apart = row // min(lines, row)
    return pitch + (apart - pitch) % row


@dataclass(frozen=True)
class Group:
    """Hold a group of lines: the number of the first one, its index, and the buffers."""

    first: Expr
    index: tuple[Expr, ...]
    buffers: Buffers


class BlockLines:
    """Lay out lines of ``numbers`` numbers along ``axis`` of arrays of ``dims``.

    A block has a group of ``lines`` neighbouring lines, ``pitch`` numbers apart. ``is_along``: the
    numbers of a line, not those of neighbouring lines, are contiguous in memory.
    """

    def __init__(
        self,
        scope: Scope,
        part: ElementType,
        dims: tuple[int, ...],
        axis: int,
        numbers: int,
        is_along: bool,
    ) -> None:
        self._scope, self._part, self._axis = scope, part, axis
        self._others = (*dims[:axis], *dims[axis + 1 :])
        self.count = math.prod(self._others)
        self.lines = self._lines(numbers, is_along)
        self.pitch = _pitch(numbers, self.lines, part)
        self._is_shared = have_room(numbers, self.lines, part)

    def _lines(self, numbers: int, is_along: bool) -> int:
        """Choose the lines of a block: a power of two, enough to occupy its threads.

        Enough blocks must be left for the GPU; where lines are neighbours in memory, there are
        enough for whole sectors.
        """
        width = _width(self._part)
        least = 1 if is_along else _SECTOR // width
        lines = 1
        while lines < self.count and have_room(numbers, 2 * lines, self._part):
            is_wanted = 2 * lines * numbers * width <= _WANTED
            if not (is_wanted and self.count // (2 * lines) >= _BLOCKS) and lines >= least:
                break
            lines *= 2
        return lines

    @contextmanager
    def groups(self) -> Iterator[Group]:
        """Open the loop over groups of lines; yield each, with buffers in shared memory or in
        scratch."""
        scope, part, size = self._scope, self._part, 2 * self.lines * self.pitch
        groups = -(-self.count // self.lines)
        if self._is_shared:
            with scope.blocks(groups, _THREADS) as group:
                first, second = (scope.shared(part, size) for _ in "12")
                yield self._group(group, Buffers(ix.constant(0), (first, second)))
            return
        workers = min(groups, _BLOCKS)
        first, second = (scope.scratch(part, size * workers) for _ in "12")
        with scope.blocks(workers, _THREADS) as worker:
            start = scope.bind(ix.multiply(worker, size))
            turns = ix.divide(ix.subtract(groups + workers - 1, worker), workers)
            with scope.loop(scope.bind(turns)) as turn:
                group = ix.clamp(0, ix.add(worker, ix.multiply(turn, workers)), groups - 1)
                yield self._group(group, Buffers(start, (first, second)))

    def _group(self, number: Expr, buffers: Buffers) -> Group:
        """Return group number ``number``."""
        first = self._scope.bind(ix.multiply(number, self.lines))
        index = ix.delinearize(first, self._others)
        return Group(first, tuple(map(self._scope.bind, index)), buffers)

    @contextmanager
    def each(self, numbers: int, *, is_along: bool) -> Iterator[tuple[Expr, Expr]]:
        """Open the loop of the threads over the numbers of all lines; yield (number, line).

        Neighbouring threads have neighbouring numbers of a line (``is_along``), or lines.
        """
        with nest.threads(self._scope, self.lines, numbers, int(is_along)) as (line, k):
            yield k, line

    def place(self, buffers: Buffers, k: Expr, line: Expr, part: int) -> tuple[Array, Expr]:
        """Return the array and offset of the real (0) or imaginary (1) part of a number."""
        own = ix.add(k, ix.divide(k, _row(self._part)), ix.multiply(line, self.pitch))
        return buffers.current, ix.add(buffers.start, own, part * self.lines * self.pitch)

    def index(self, group: Group, k: Expr, line: Expr) -> tuple[Expr, ...]:
        """Return the arrays' index of number k of a line; excess lines repeat the last one."""
        if self._others and self._others[-1] % self.lines == 0:  # a group does not leave it
            other = (*group.index[:-1], ix.add(group.index[-1], line))
        else:
            number = ix.clamp(0, ix.add(group.first, line), self.count - 1)
            other = ix.delinearize(self._scope.bind(number), self._others)
        return (*other[: self._axis], k, *other[self._axis :])

    @contextmanager
    def when_there(self, group: Group, line: Expr) -> Iterator[None]:
        """Open an ``if`` for lines that exist, or nothing if groups are whole."""
        if self.count % self.lines == 0:
            yield
            return
        number = ix.add(group.first, line)
        with self._scope.when(apply("compare-LT", number, ix.constant(self.count), type=PRED)):
            yield
