"""Write Cholesky factors in fast mode: blocks of columns, on tiles of products (hlo_factor.h).

A complex matrix of order n is a real one of order 2 n, each element [re -im; im re]; the factor of
that is made of the same squares, for diagonals of factors are real.
"""

from __future__ import annotations

import math

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.factor_panels import (
    AREA,
    BLOCK,
    TILE,
    WIDTH,
    Result,
    blocks,
    compare,
    fill,
    negated,
    numbers_of,
    rest,
    transpose,
)
from backend_c.kernels.parts.factorisation.block_cholesky import BlockCholesky
from backend_c.kernels.parts.factorisation.interleaved_matrices import (
    are_small_and_many,
    interleaved_cholesky,
)
from hlo.types import PRED, S32

_MANY = 8  # matrices: threads take one each, and share none


def fast_cholesky(
    operand: Element, lower: bool, write: Writer, result: Result, scope: Scope
) -> Array:
    """Write the Cholesky factors of a batch of matrices, and all elements of the first result.

    Returns an array with the info of each matrix: 0, or 1 + the first column without a factor.
    """
    if nest.has_blocks(scope):
        return BlockCholesky(operand, scope, lower=lower).emit(write, result)
    *batch, size, _ = operand.shape.dims
    numbers = numbers_of(operand.shape.element_type)
    if are_small_and_many(size * numbers.parts, math.prod(batch), numbers.sums):
        return interleaved_cholesky(operand, lower, write, result, scope)
    return _BlockedCholesky(operand, scope, lower=lower).emit(write, result)


class _BlockedCholesky:
    """Write the Cholesky factors of a batch of matrices by blocks of columns, in panels of 64
    lanes."""

    def __init__(self, operand: Element, scope: Scope, *, lower: bool) -> None:
        self._operand, self._scope, self._lower = operand, scope, lower
        *batch, self._size, _ = operand.shape.dims
        self._batch, self._count = tuple(batch), math.prod(batch)
        self._numbers = numbers_of(operand.shape.element_type)
        order = self._size * self._numbers.parts
        self._order = blocks(order, TILE) * TILE
        self._is_ragged = order % BLOCK != 0
        self._blocks = blocks(order)
        self._panel = self._blocks * AREA
        self._panels = scope.scratch(self._numbers.sums, self._count * self._blocks * self._panel)
        self._failed = scope.scratch(S32, self._count)

    def emit(self, write: Writer, result: Result) -> Array:
        """Write the packing, the factorisation, and all elements of the first result.

        Returns an array with the info of each matrix: 0, or 1 + the first column without a factor.
        """
        self._pack()
        self._factorise()
        self._unpack(write, result)
        return self._failed

    # A block of a factor is that of lanes (rows of the lower factor) and steps (its columns).

    def _start(self, matrix: Expr, lanes: Expr, steps: Expr) -> Expr:
        number = ix.add(ix.multiply(matrix, self._blocks), lanes)
        return ix.add(ix.multiply(number, self._panel), ix.multiply(steps, AREA))

    def _pack(self) -> None:
        """Write the negated matrices to panels, padded with an identity to whole tiles."""
        scope, dims = self._scope, (self._count, self._blocks, self._blocks)
        with nest.outer(scope, dims, AREA) as (matrix, lanes, steps):
            is_first = compare("EQ", ix.add(lanes, steps), ix.constant(0))
            with scope.when(is_first):
                scope.store(self._failed, matrix, Constant(S32, 0))
            with scope.when(compare("LE", steps, lanes)):
                self._pack_block(matrix, lanes, steps)

    def _pack_block(self, matrix: Expr, lanes: Expr, steps: Expr) -> None:
        """Write one block of a panel; a lower triangle is transposed on the way."""
        scope, numbers, edge = self._scope, self._numbers, self._numbers.edge
        target = Pointer(self._panels, scope.bind(self._start(matrix, lanes, steps)))
        array, start = target.array, target.offset
        if self._lower:
            array, start = scope.local(numbers.sums, AREA), ix.constant(0)
        if self._is_ragged:
            fill(array, start, scope.bind(compare("EQ", lanes, steps)), scope)
        # Of the operand, rows and columns; of the panel, lanes and steps (or steps and lanes).
        firsts = [scope.bind(ix.multiply(x, edge)) for x in (lanes, steps)]
        if not self._lower:
            firsts.reverse()
        counts = [rest(self._size, first, edge) for first in firsts]
        pitch = numbers.parts * BLOCK, numbers.parts
        with scope.loop(counts[0]) as i, scope.loop(counts[1], "lanes") as j:
            row, column = ix.add(firsts[0], i), ix.add(firsts[1], j)
            at = ix.add(start, ix.multiply(i, pitch[0]), ix.multiply(j, pitch[1]))
            value = scope.bind(self._operand.at(*self._index(matrix), row, column))
            # Element (i, j) of the operand is [re -im; im re] at (i, j) of a lower factor; of an
            # upper one its conjugate is at (j, i), which is the same square.
            for (p, q), number in numbers.real_matrix(value).items():
                kept: Expr = negated(number)
                if p != q:
                    zero = Constant(numbers.sums, 0.0)
                    is_real = compare("EQ", row, column)
                    kept = apply("select", is_real, zero, kept, type=numbers.sums)
                scope.store(array, ix.add(at, p * BLOCK + q), kept)
        if self._lower:
            transpose(Pointer(array, start), target, scope)

    def _factorise(self) -> None:
        """Write the factorisations: threads take a matrix each, or share the strips of one."""
        scope = self._scope
        work = max(self._order**3 // 6, 1)
        if self._count >= _MANY or nest.loop_kind(scope, work // self._blocks) == "serial":
            with nest.outer(scope, (self._count,), work) as (matrix,):
                self._factorise_one(matrix, "serial")
        else:
            with scope.loop(self._count) as matrix:
                self._factorise_one(matrix, "parallel")

    def _factorise_one(self, matrix: Expr, kind: str) -> None:
        """Write the factorisation of one matrix; ``kind`` is that of the loop over its strips."""
        scope, last = self._scope, self._blocks - 1
        order = ix.constant(self._order)
        panels = Pointer(self._panels, scope.bind(self._start(matrix, *[ix.constant(0)] * 2)))
        failed = Pointer(self._failed, matrix)
        function = f"hlo_factor_{self._numbers.sums}_cholesky"
        with scope.loop(last) as number:
            scope.call(f"{function}_block", panels, order, number, failed)
            lanes = ix.subtract(self._order - BLOCK, ix.multiply(number, BLOCK))
            strips = scope.bind(ix.divide(ix.add(lanes, WIDTH - 1), WIDTH))
            with scope.loop(strips, kind) as strip:
                scope.call(f"{function}_strip", panels, order, number, strip)
        scope.call(f"{function}_block", panels, order, ix.constant(last), failed)

    def _unpack(self, write: Writer, result: Result) -> None:
        """Write the elements of the first result from the panels."""
        scope, edge = self._scope, self._numbers.edge
        dims = (self._count, self._blocks, self._blocks)
        with nest.outer(scope, dims, AREA) as (matrix, *numbers):
            lanes, steps = numbers if self._lower else numbers[::-1]
            firsts = [scope.bind(ix.multiply(number, edge)) for number in numbers]
            counts = [scope.bind(rest(self._size, first, edge)) for first in firsts]
            failed = scope.bind(scope.load(self._failed, matrix))
            batch = self._index(matrix)
            is_inside = scope.bind(compare("LE", steps, lanes))
            with scope.when(is_inside):
                array, start = self._rows(self._start(matrix, lanes, steps))
                with scope.loop(counts[0]) as i, scope.loop(counts[1], "lanes") as j:
                    row, column = ix.add(firsts[0], i), ix.add(firsts[1], j)
                    index = (*batch, row, column)
                    at = ix.add(start, ix.multiply(i, self._numbers.parts * BLOCK))
                    at = ix.add(at, ix.multiply(j, self._numbers.parts))
                    value = self._element(array, at, compare("EQ", row, column))
                    low, high = (column, row) if self._lower else (row, column)
                    stored = [result(index, x, failed) for x in (value, None)]
                    is_there = compare("LE", low, high)
                    kept = apply("select", is_there, *stored, type=stored[0].type)
                    write.some((0,), index, (kept,))
            with (
                scope.when(apply("not", is_inside, type=PRED)),
                scope.loop(counts[0]) as i,
                scope.loop(counts[1], "lanes") as j,
            ):
                index = (*batch, ix.add(firsts[0], i), ix.add(firsts[1], j))
                write.some((0,), index, (result(index, None, failed),))

    def _rows(self, start: Expr) -> tuple[Array, Expr]:
        """Return a block of the factor in the row order of the result, transposed if need be."""
        if not self._lower:
            return self._panels, self._scope.bind(start)
        array = self._scope.local(self._numbers.sums, AREA)
        corner = Pointer(array, ix.constant(0))
        transpose(Pointer(self._panels, start), corner, self._scope)
        return array, corner.offset

    def _element(self, array: Array, place: Expr, is_diagonal: Expr) -> Expr:
        """Return an element of the factor, which is real on the diagonal."""
        numbers, scope = self._numbers, self._scope
        places = [ix.add(place, part * BLOCK) for part in range(numbers.parts)]
        found = [negated(scope.bind(scope.load(array, at))) for at in places]
        return numbers.with_real_diagonal(numbers.element(found), is_diagonal)

    def _index(self, matrix: Expr) -> tuple[Expr, ...]:
        return ix.delinearize(matrix, self._batch)
