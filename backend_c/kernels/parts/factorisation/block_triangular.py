"""Write solutions of triangular systems in fast mode by blocks of threads.

Every system is T x = b (:mod:`.triangular_solve`). A block solves systems of few rows for some
right-hand sides in shared memory. Larger ones are solved by panels of 32 rows, in two launches
each: a thread for each right-hand side solves the square on the diagonal
(runtime/hlo_block_factor.h), then blocks subtract its products, by tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Expr, Pointer
from backend_c.ir.scope import apply
from backend_c.kernels.parts.contraction.factor_panels import blocks, compare
from backend_c.kernels.parts.factorisation.block_factors import (
    LINES,
    PANEL,
    SIDE,
    THREADS,
    Plane,
    Products,
    Square,
    solve,
    square,
    subtract,
)
from backend_c.kernels.parts.factorisation.triangular_solve import TriangularSolve

_AT_ONCE = 128  # rows, of which 32 right-hand sides of f64 leave room in shared memory
_TOGETHER = 32  # right-hand sides of a block that solves at once
_NONE = ix.constant(0)
_Right = Callable[[Expr], Plane]  # from a system's number, its right-hand sides, which are rows


class BlockTriangularSolve(TriangularSolve):
    """Write the solutions of a batch of systems by blocks of threads."""

    def emit(self) -> None:
        """Write all solutions."""
        left = self._in_place() or self._packed()
        if self._order <= _AT_ONCE:
            self._at_once(left)
        else:
            self._by_panels(left)

    # The matrix

    def _in_place(self) -> Plane | None:
        """Return the first T in the operand's memory; None if it has to be computed or
        converted."""
        array, n, system = self._numbers_in_memory(), self._size, self._system
        if array is None:
            return None
        sign, start = (1, 0) if system.is_forward else (-1, n * n - 1)
        ways = (1, n) if system.is_across else (n, 1)
        return Plane(array, ix.constant(start), sign * ways[0], sign * ways[1])

    def _packed(self) -> Plane:
        """Write the real numbers of all T to scratch, by rows; return the first T."""
        scope, n, numbers = self._scope, self._order, self._numbers
        array = scope.scratch(self._sums, self._count * n * n)
        dims = self._count, self._size, self._size
        with nest.flat(scope, dims) as (matrix, row, step), scope.when(compare("LE", step, row)):
            value = scope.bind(self._entry(matrix, row, step))
            for (p, q), number in numbers.real_matrix(value).items():
                at = ix.add(ix.multiply(row, numbers.parts), p)
                along = ix.add(ix.multiply(step, numbers.parts), q)
                scope.store(array, ix.linearize((matrix, at, along), (self._count, n, n)), number)
        return Plane(array, ix.constant(0), n, 1)

    def _of(self, left: Plane, matrix: Expr) -> Plane:
        """Return the T of matrix number ``matrix``."""
        start = ix.add(left.start, ix.multiply(matrix, self._order * self._order))
        return left._replace(start=self._scope.bind(start))

    def _square(self, left: Plane, first: Expr) -> Pointer:
        """Copy the diagonal square at row ``first`` into shared memory."""

        def read(row: Expr, column: Expr) -> Expr:
            return self._scope.load(left.array, left.at(row, column))

        made = square(self._scope, self._sums, self._order, first, read)
        return Pointer(made, ix.constant(0))

    def _solve(self, corner: Pointer, x: Plane, first: Expr, count: Expr) -> None:
        """Solve with the square at ``first`` for ``count`` right-hand sides, the rows of ``x``."""
        scope, system = self._scope, self._system
        steps = scope.bind(ix.clamp(0, ix.subtract(self._order, first), PANEL))
        own = Square(corner, self._numbers.parts, system.unit)
        x = x._replace(start=scope.bind(x.at(_NONE, first)))
        solve(scope, self._sums, own, x, (scope.bind(count), steps))

    # Right-hand sides

    def _index(self, matrix: Expr, vector: Expr, step: Expr) -> tuple[Expr, ...]:
        """Return the index of an element in b, and in the result."""
        at = self._along(step), vector
        order = at if self._system.left_side else at[::-1]
        return (*ix.delinearize(matrix, self._batch), *order)

    def _read(self, x: Plane, matrix: Expr, vectors: tuple[Expr, Expr], step: Expr) -> None:
        """Copy an element of b into ``x``; ``vectors`` is its vector's number in b and in ``x``."""
        scope, numbers = self._scope, self._numbers
        value = scope.bind(self._b.at(*self._index(matrix, vectors[0], step)))
        for part, number in enumerate(numbers.of(value)):
            place = ix.add(ix.multiply(step, numbers.parts), part)
            scope.store(x.array, x.at(vectors[1], place), number)

    def _store(self, x: Plane, matrix: Expr, vectors: tuple[Expr, Expr], step: Expr) -> None:
        """Write an element of the result."""
        scope, parts = self._scope, self._numbers.parts
        places = [ix.add(ix.multiply(step, parts), part) for part in range(parts)]
        found = [scope.bind(scope.load(x.array, x.at(vectors[1], place))) for place in places]
        self._write(self._index(matrix, vectors[0], step), (self._numbers.element(found),))

    # At once

    def _at_once(self, left: Plane) -> None:
        """Solve systems of few rows in shared memory, some right-hand sides per block."""
        scope, order, total = self._scope, self._order, self._vectors
        lines = min(_TOGETHER, total)
        groups, pitch = blocks(total, lines), lines | 1
        threads = THREADS if order > PANEL else 32
        near = 0 if self._system.left_side else 1
        with scope.blocks(self._count * groups, threads) as block:
            matrix, group = map(scope.bind, ix.delinearize(block, (self._count, groups)))
            before = scope.bind(ix.multiply(group, lines))
            own = self._of(left, matrix)
            x = Plane(scope.shared(self._sums, order * pitch), _NONE, 1, pitch)
            with nest.threads(scope, lines, self._size, near) as (line, step):
                vector = ix.clamp(0, ix.add(before, line), total - 1)
                self._read(x, matrix, (vector, line), step)
            with scope.loop(blocks(order, PANEL)) as number:
                first = scope.bind(ix.multiply(number, PANEL))
                corner = self._square(own, first)
                scope.barrier()
                self._solve(corner, x, first, ix.constant(lines))
                scope.barrier()
                self._subtract_rows(own, x, first, lines)
                scope.barrier()
            with nest.threads(scope, lines, self._size, near) as (line, step):
                vector = ix.add(before, line)
                with scope.when(compare("LT", vector, ix.constant(total))):
                    self._store(x, matrix, (vector, line), step)
            scope.barrier()

    def _subtract_rows(self, left: Plane, x: Plane, first: Expr, lines: int) -> None:
        """Subtract the products of a panel from the rows after it, in shared memory."""
        scope, order = self._scope, self._order
        if order <= PANEL:
            return
        below = ix.clamp(0, ix.subtract(order - PANEL, first), order)
        with scope.loop(scope.bind(ix.multiply(below, lines)), "threads") as number:
            after, line = map(scope.bind, ix.delinearize(number, (order, lines)))
            row = scope.bind(ix.clamp(0, ix.add(first, after, PANEL), order - 1))
            place = scope.bind(x.at(line, row))
            rest = scope.mutable(self._sums, scope.load(x.array, place))
            with scope.loop(PANEL) as s:
                step = scope.bind(ix.clamp(0, ix.add(first, s), order - 1))
                factor = scope.load(left.array, left.at(row, step))
                product = apply("multiply", factor, scope.load(x.array, x.at(line, step)))
                scope.assign(rest, apply("subtract", rest, product))
            scope.store(x.array, place, rest)

    # By panels

    def _by_panels(self, left: Plane) -> None:
        """Solve larger systems panel by panel, two launches each."""
        scope, order, total = self._scope, self._order, self._vectors
        array = scope.scratch(self._sums, self._count * order * total)
        ways = (1, total) if self._system.left_side else (order, 1)
        dims = (self._size, total) if self._system.left_side else (total, self._size)

        def right(matrix: Expr) -> Plane:
            return Plane(array, scope.bind(ix.multiply(matrix, order * total)), *ways)

        for is_packing in (True, False):
            with nest.flat(scope, (self._count, *dims)) as (matrix, *at):
                step, vector = at if self._system.left_side else at[::-1]
                move = self._read if is_packing else self._store
                move(right(matrix), matrix, (vector, vector), step)
            if not is_packing:
                return
            with scope.loop(blocks(order, PANEL), "launches") as number:
                first = scope.bind(ix.multiply(number, PANEL))
                self._solve_panel(left, right, first)
                self._subtract_tiles(left, right, first)

    def _solve_panel(self, left: Plane, right: _Right, first: Expr) -> None:
        """Write the launch that solves with the diagonal square of every system."""
        scope, groups = self._scope, blocks(self._vectors, LINES)
        with scope.blocks(self._count * groups, LINES) as block:
            matrix, group = map(scope.bind, ix.delinearize(block, (self._count, groups)))
            before = scope.bind(ix.multiply(group, LINES))
            corner = self._square(self._of(left, matrix), first)
            scope.barrier()
            x = right(matrix)
            x = x._replace(start=scope.bind(x.at(before, _NONE)))
            self._solve(corner, x, first, ix.clamp(0, ix.subtract(self._vectors, before), LINES))
            scope.barrier()

    def _subtract_tiles(self, left: Plane, right: _Right, first: Expr) -> None:
        """Write the launch that subtracts the products of a panel from later rows, tile by tile."""
        scope = self._scope
        below = scope.bind(ix.clamp(0, ix.subtract(self._order - PANEL, first), self._order))
        dims = self._count, blocks(self._order - PANEL, SIDE), blocks(self._vectors, SIDE)
        with scope.blocks(math.prod(dims), THREADS) as block:
            matrix, *tile = map(scope.bind, ix.delinearize(block, dims))
            before = [scope.bind(ix.multiply(x, SIDE)) for x in tile]
            with scope.when(compare("LT", before[0], below)):
                own, x = self._of(left, matrix), right(matrix)
                row = scope.bind(ix.add(first, before[0], PANEL))
                counts = (
                    scope.bind(ix.clamp(0, ix.subtract(below, before[0]), SIDE)),
                    scope.bind(ix.clamp(0, ix.subtract(self._vectors, before[1]), SIDE)),
                )
                lhs = own._replace(start=scope.bind(own.at(row, first)))
                rhs = x._replace(start=scope.bind(x.at(before[1], first)))
                target = x.transposed._replace(start=scope.bind(x.at(before[1], row)))
                subtract(scope, self._sums, Products(lhs, rhs, counts), target)
                scope.barrier()
