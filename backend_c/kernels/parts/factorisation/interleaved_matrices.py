"""Factorise and solve many small matrices in fast mode, one per lane (runtime/hlo_factor_lanes.h).

As many as 64 bytes have elements are interleaved, by transposing them as rows of a matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.factor_panels import (
    Numbers,
    Result,
    System,
    blocks,
    compare,
    numbers_of,
    rest,
)
from hlo.types import S32, ElementType

_LARGEST = 32  # order: panels take less time for larger ones
_AT_ONCE = 256  # numbers of a matrix that are interleaved together
_ON_STACK = 1 << 14  # bytes
_Index = tuple[Expr, ...]


def matrices_interleaved(sums: ElementType) -> int:
    """Return the number of matrices that are interleaved: one per lane of 64 bytes."""
    return 512 // sums.bits


def are_small_and_many(order: int, count: int, sums: ElementType) -> bool:
    """Return whether matrices are too small for tiles, and many enough to fill a quarter of the
    lanes."""
    return order <= _LARGEST and count >= matrices_interleaved(sums) // 4


class _Group(NamedTuple):
    """Describe group ``number`` of interleaved matrices, of equal dims, from a batch."""

    numbers: Numbers
    dims: tuple[int, int]
    batch: tuple[int, ...]
    number: Expr
    is_square: bool = False  # of which each element is [re -im; im re]

    @property
    def row(self) -> int:
        """Return the real numbers in a row of one matrix."""
        parts = self.numbers.parts
        return self.dims[1] * (parts * parts if self.is_square else parts)

    @property
    def size(self) -> int:
        """Return the real numbers of all interleaved matrices."""
        return self.dims[0] * self.row * matrices_interleaved(self.numbers.sums)

    def first(self) -> Expr:
        """Return the batch number of the first matrix of the group."""
        return ix.multiply(self.number, matrices_interleaved(self.numbers.sums))


def _memory(group: _Group, groups: int, scope: Scope) -> Pointer:
    """Return memory for a group's interleaved numbers: on the stack if they are few, else
    scratch."""
    sums = group.numbers.sums
    if group.size * sums.bits // 8 <= _ON_STACK:
        return Pointer(scope.local(sums, group.size), ix.constant(0))
    array = scope.scratch(sums, group.size * groups)
    return Pointer(array, ix.multiply(group.number, group.size))


class _Rows:
    """Interleave and deinterleave rows of matrices, some at a time, through a buffer."""

    def __init__(self, group: _Group, memory: Pointer, scope: Scope) -> None:
        self._group, self._memory, self._scope = group, memory, scope
        self._some = min(group.dims[0], max(1, _AT_ONCE // group.row))
        self._pitch = self._some * group.row
        self._lanes = matrices_interleaved(group.numbers.sums)
        self._buffer = scope.local(group.numbers.sums, self._lanes * self._pitch)
        self._transpose = f"hlo_transpose_tile_{group.numbers.sums.bits // 8}"

    def pack(self, operand: Element) -> None:
        """Write the interleaved numbers; lanes beyond the batch repeat its last matrix."""
        scope, group = self._scope, self._group
        last = math.prod(group.batch) - 1
        with scope.loop(blocks(group.dims[0], self._some)) as part:
            first = scope.bind(ix.multiply(part, self._some))
            rows = scope.bind(rest(group.dims[0], first, self._some))
            with scope.loop(self._lanes) as lane:
                matrix = ix.clamp(0, ix.add(group.first(), lane), last)
                batch = tuple(scope.bind(i) for i in ix.delinearize(matrix, group.batch))
                with scope.loop(rows) as i, scope.loop(group.dims[1], "lanes") as j:
                    row = ix.add(first, i)
                    value = scope.bind(operand.at(*batch, row, j))
                    if group.is_square:
                        value = group.numbers.with_real_diagonal(value, compare("EQ", row, j))
                    for place, number in self._places(value).items():
                        scope.store(self._buffer, self._at(lane, i, j, place), number)
            numbers = ix.multiply(rows, group.row)
            scope.call(
                self._transpose,
                Pointer(self._buffer, ix.constant(0)),
                ix.constant(self._pitch),
                self._row(first),
                *map(ix.constant, (self._lanes, self._lanes)),
                numbers,
            )

    def unpack(self, emit: Callable[[Expr, _Index, Expr], None]) -> None:
        """Call ``emit`` for each element, with its matrix's number in the group and its index."""
        scope, group, parts = self._scope, self._group, self._group.numbers.parts
        count = scope.bind(rest(math.prod(group.batch), group.first(), self._lanes))
        with scope.loop(blocks(group.dims[0], self._some)) as part:
            first = scope.bind(ix.multiply(part, self._some))
            rows = scope.bind(rest(group.dims[0], first, self._some))
            scope.call(
                self._transpose,
                self._row(first),
                ix.constant(self._lanes),
                Pointer(self._buffer, ix.constant(0)),
                ix.constant(self._pitch),
                ix.multiply(rows, group.row),
                ix.constant(self._lanes),
            )
            with scope.loop(count) as lane:
                matrix = ix.add(group.first(), lane)
                batch = tuple(scope.bind(i) for i in ix.delinearize(matrix, group.batch))
                with scope.loop(rows) as i, scope.loop(group.dims[1], "lanes") as j:
                    places = [self._at(lane, i, j, (part, 0)) for part in range(parts)]
                    found = [scope.bind(scope.load(self._buffer, place)) for place in places]
                    value = group.numbers.element(found)
                    emit(lane, (*batch, ix.add(first, i), j), value)

    def _places(self, value: Expr) -> dict[tuple[int, int], Expr]:
        """Return the real numbers of an element by (row, column) within it."""
        if self._group.is_square:
            return self._group.numbers.real_matrix(value)
        return {(0, part): number for part, number in enumerate(self._group.numbers.of(value))}

    def _at(self, lane: Expr, row: Expr, column: Expr, place: tuple[int, int]) -> Expr:
        """Return the offset of a real number in the buffer, where matrices are rows."""
        parts = self._group.numbers.parts
        down = place[0] * self._group.dims[1] * parts
        offset = ix.add(ix.multiply(row, self._group.row), ix.multiply(column, parts), down)
        return ix.add(ix.multiply(lane, self._pitch), offset, place[1])

    def _row(self, row: Expr) -> Pointer:
        """Return the address of a row's interleaved numbers."""
        offset = ix.multiply(row, self._group.row * self._lanes)
        return Pointer(self._memory.array, ix.add(self._memory.offset, offset))


def interleaved_cholesky(
    operand: Element, lower: bool, write: Writer, result: Result, scope: Scope
) -> Array:
    """Write the Cholesky factors of a batch of small matrices.

    Returns an array with the info of each matrix: 0, or 1 + the first column without a factor.
    """
    *batch, size, _ = operand.shape.dims
    numbers, count = numbers_of(operand.shape.element_type), math.prod(batch)
    order, lanes = size * numbers.parts, matrices_interleaved(numbers.sums)
    groups = blocks(count, lanes)
    failed = scope.scratch(S32, groups * lanes)
    with nest.outer(scope, (groups,), lanes * order**3 // 6) as (number,):
        group = _Group(numbers, (size, size), tuple(batch), number, is_square=True)
        memory = _memory(group, groups, scope)
        rows = _Rows(group, memory, scope)
        rows.pack(operand)
        strides = (order, 1) if lower else (1, order)
        into = Pointer(failed, group.first())
        function = f"hlo_factor_{numbers.sums}_cholesky_lanes"
        scope.call(function, memory, *map(ix.constant, (order, *strides)), into)

        def emit(lane: Expr, index: _Index, value: Expr) -> None:
            row, column = index[-2:]
            low, high = (column, row) if lower else (row, column)
            info = scope.bind(scope.load(failed, ix.add(group.first(), lane)))
            value = numbers.with_real_diagonal(value, compare("EQ", row, column))
            stored = [result(index, x, info) for x in (value, None)]
            kept = apply("select", compare("LE", low, high), *stored, type=stored[0].type)
            write.some((0,), index, (kept,))

        rows.unpack(emit)
    return failed


def interleaved_solve(a: Element, b: Element, system: System, write: Writer, scope: Scope) -> None:
    """Write the solutions of a batch of small real systems, in place of right-hand sides."""
    batch, size, vectors = system.extents(b.shape.dims)
    rows, columns = b.shape.dims[-2:]
    numbers, count = numbers_of(b.shape.element_type), math.prod(batch)
    lanes = matrices_interleaved(numbers.sums)
    groups, work = blocks(count, lanes), lanes * size * size * vectors // 2
    # Steps of the matrix and of the vectors; from their other ends, backwards.
    strides = (1, size) if system.is_across else (size, 1)
    step, following = (columns, 1) if system.left_side else (1, columns)
    ends = 0, 0
    if not system.is_forward:
        # Read from the last element on, a triangle that is solved backwards is one solved forwards.
        ends = (size * size - 1) * lanes, (size - 1) * step * lanes
        strides, step = (-strides[0], -strides[1]), -step
    with nest.outer(scope, (groups,), work) as (number,):
        left, right = (
            _Group(numbers, dims, batch, number) for dims in ((size, size), (rows, columns))
        )
        matrices, sides = (_memory(group, groups, scope) for group in (left, right))
        _Rows(left, matrices, scope).pack(a)
        moved = _Rows(right, sides, scope)
        moved.pack(b)
        scope.call(
            f"hlo_factor_{numbers.sums}_solve_lanes",
            Pointer(matrices.array, ix.add(matrices.offset, ends[0])),
            *map(ix.constant, (*strides, size)),
            Constant(S32, int(system.unit)),
            Pointer(sides.array, ix.add(sides.offset, ends[1])),
            *map(ix.constant, (step, following, vectors)),
        )
        moved.unpack(lambda lane, index, value: write(index, (value,)))
