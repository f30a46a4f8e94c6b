"""Write Cholesky factors in fast mode by blocks of threads: runtime/hlo_block_factor.h.

A block factorises a matrix that fits in shared memory. A larger one is factorised by panels
(right-looking), in two launches each: all blocks factorise the square on the diagonal, and solve
for some rows below it; then each subtracts the products of a tile of what is right of them.
"""

from __future__ import annotations

import math

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.gpu import STATIC_SHARED
from backend_c.ir.loop_ir import Address, Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.factor_panels import (
    Result,
    blocks,
    compare,
    numbers_of,
)
from backend_c.kernels.parts.factorisation.block_factors import (
    LINES,
    PANEL,
    PITCH,
    SIDE,
    THREADS,
    Plane,
    Products,
    Square,
    is_first_thread,
    solve,
    square,
    subtract,
)
from hlo.types import S32

_FEW = 16  # rows, for which a warp is enough


class BlockCholesky:
    """Write the Cholesky factors of a batch of matrices, of which one triangle is read.

    Real numbers are in the order of the operand; an upper triangle is read as a lower one,
    transposed.
    """

    def __init__(self, operand: Element, scope: Scope, *, lower: bool) -> None:
        self._operand, self._scope, self._lower = operand, scope, lower
        *batch, self._size, _ = operand.shape.dims
        self._batch, self._count = tuple(batch), math.prod(batch)
        self._numbers = numbers_of(operand.shape.element_type)
        self._sums = self._numbers.sums
        self._order = self._size * self._numbers.parts
        self._panels = blocks(self._order, PANEL)
        self._failed = scope.scratch(S32, self._count)

    def emit(self, write: Writer, result: Result) -> Array:
        """Write the factors, and all elements of the first result.

        Returns an array with the info of each matrix: 0, or 1 + the first column without a factor.
        """
        pitch = self._order | 1  # rows begin in different banks
        if self._order * pitch * (self._sums.bits // 8) <= STATIC_SHARED:
            self._at_once(pitch, write, result)
            return self._failed
        scope, order = self._scope, self._order
        matrices = scope.scratch(self._sums, self._count * order * order)
        squares = scope.scratch(self._sums, self._count * self._panels * PANEL * PANEL)
        self._pack(matrices)
        with scope.loop(self._panels, "launches") as number:
            first = scope.bind(ix.multiply(number, PANEL))
            below = scope.bind(ix.clamp(0, ix.subtract(order - PANEL, first), order))
            self._panel(matrices, squares, number, first, below)
            self._subtract(matrices, first, below)
        self._unpack((matrices, squares), write, result)
        return self._failed

    # Elements and their numbers

    def _at(self, matrix: Expr, row: Expr, column: Expr) -> tuple[Expr, ...]:
        return (*ix.delinearize(matrix, self._batch), row, column)

    def _is_read(self, row: Expr, column: Expr) -> Expr:
        """Return whether an element is in the triangle that is read."""
        return compare("LE", *((column, row) if self._lower else (row, column)))

    def _place(self, row: Expr, column: Expr, part: tuple[int, int]) -> tuple[Expr, Expr]:
        """Return (row, column) of a real number of an element, in the order of the operand."""
        parts = self._numbers.parts
        return (
            ix.add(ix.multiply(row, parts), part[0]),
            ix.add(ix.multiply(column, parts), part[1]),
        )

    def _plane(self, array: Array, start: Expr, pitch: int) -> Plane:
        """Return a matrix in memory as a lower triangle, transposed if the operand's is an upper
        one."""
        return Plane(array, start, *((pitch, 1) if self._lower else (1, pitch)))

    def _read(self, plane: Plane, matrix: Expr, row: Expr, column: Expr) -> None:
        """Store the real numbers of an element of the operand, if it is in the triangle."""
        scope, numbers = self._scope, self._numbers
        with scope.when(self._is_read(row, column)):
            value = scope.bind(self._operand.at(*self._at(matrix, row, column)))
            for part, number in numbers.real_matrix(value).items():
                kept: Expr = number
                if part[0] != part[1]:
                    zero, is_real = Constant(self._sums, 0.0), compare("EQ", row, column)
                    kept = apply("select", is_real, zero, kept, type=self._sums)
                place = self._place(row, column, part)
                scope.store(plane.array, plane.at(*self._ordered(place)), kept)

    def _ordered(self, place: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
        """Return the place in the lower triangle of one in the operand's order."""
        return place if self._lower else place[::-1]

    def _written(
        self, index: tuple[Expr, ...], found: list[Expr], failed: Expr, result: Result
    ) -> Expr:
        """Return an element of the result, given its real numbers ``found`` and the matrix's
        info."""
        row, column = index[-2:]
        numbers = self._numbers
        value = numbers.with_real_diagonal(numbers.element(found), compare("EQ", row, column))
        stored = [result(index, x, failed) for x in (value, None)]
        return apply("select", self._is_read(row, column), *stored, type=stored[0].type)

    # At once

    def _at_once(self, pitch: int, write: Writer, result: Result) -> None:
        """Write the factors of matrices that fit in shared memory, a block for each."""
        scope, size, sums = self._scope, self._size, self._sums
        threads = 32 if self._order <= _FEW else THREADS
        with scope.blocks(self._count, threads) as matrix:
            plane = self._plane(scope.shared(sums, self._order * pitch), ix.constant(0), pitch)
            if not self._lower:  # the runtime has rows in their order
                plane = plane.transposed
            with nest.threads(scope, size, size, 1) as (row, column):
                self._read(plane, matrix, row, column)
            scope.barrier()
            failed = scope.mutable(S32, Constant(S32, 0))
            order = ix.constant(self._order), ix.constant(pitch)
            name = f"hlo_block_factor_cholesky_{sums}"
            scope.call(name, Pointer(plane.array, ix.constant(0)), *order, Address(failed))
            with nest.threads(scope, size, size, 1) as (row, column):
                found = []
                for part in range(self._numbers.parts):
                    # Those of the other triangle are not there: nobody sees what is read instead.
                    is_read = scope.bind(self._is_read(row, column))
                    at = plane.at(*self._ordered(self._place(row, column, (part, 0))))
                    known = apply("select", is_read, at, ix.constant(0), type=at.type)
                    found.append(scope.bind(scope.load(plane.array, scope.bind(known))))
                index = self._at(matrix, row, column)
                write.some((0,), index, (self._written(index, found, failed, result),))
            with scope.when(is_first_thread(scope)):
                scope.store(self._failed, matrix, failed)
            scope.barrier()

    # Panel by panel

    def _of(self, matrices: Array, matrix: Expr) -> Plane:
        """Return matrix number ``matrix`` in memory as a lower triangle."""
        start = self._scope.bind(ix.multiply(matrix, self._order * self._order))
        return self._plane(matrices, start, self._order)

    def _pack(self, matrices: Array) -> None:
        """Write the real numbers of all matrices to memory."""
        with nest.flat(self._scope, (self._count, self._size, self._size)) as (matrix, *at):
            self._read(self._of(matrices, matrix), matrix, at[0], at[1])

    def _panel(
        self, matrices: Array, squares: Array, number: Expr, first: Expr, below: Expr
    ) -> None:
        """Factorise a panel from row ``first`` on, with ``below`` rows under its square.

        The factor of the square goes to an array of its own, for all blocks read the square.
        """
        scope, order, sums = self._scope, self._order, self._sums
        groups = max(1, blocks(order - PANEL, LINES))
        with scope.blocks(self._count * groups, LINES) as block:
            matrix, group = map(scope.bind, ix.delinearize(block, (self._count, groups)))
            before = scope.bind(ix.multiply(group, LINES))
            is_first = compare("EQ", group, ix.constant(0))
            # The last panel has no rows below: the first group still factorises its square.
            with scope.when(apply("or", is_first, compare("LT", before, below))):
                plane = self._of(matrices, matrix)

                def read(row: Expr, column: Expr) -> Expr:
                    return scope.load(plane.array, plane.at(row, column))

                array = square(scope, sums, order, first, read)
                scope.barrier()
                failed = scope.mutable(S32, Constant(S32, 0))
                sizes = ix.constant(PANEL), ix.constant(PITCH)
                name = f"hlo_block_factor_cholesky_{sums}"
                scope.call(name, Pointer(array, ix.constant(0)), *sizes, Address(failed))
                with scope.when(is_first):
                    self._keep(array, squares, (matrix, number))
                    self._note(failed, matrix, first)
                row = ix.add(first, before, PANEL)
                rows = plane._replace(start=scope.bind(plane.at(row, first)))
                count = scope.bind(ix.clamp(0, ix.subtract(below, before), LINES))
                corner = Square(Pointer(array, ix.constant(0)))
                solve(scope, sums, corner, rows, (count, ix.constant(PANEL)))
                scope.barrier()

    def _keep(self, array: Array, squares: Array, place: tuple[Expr, Expr]) -> None:
        """Copy the factor of a square from shared memory to ``squares``."""
        scope = self._scope
        with nest.threads(scope, PANEL, PANEL, 1) as (i, j):
            number = ix.linearize((*place, i, j), (self._count, self._panels, PANEL, PANEL))
            scope.store(squares, number, scope.load(array, ix.add(ix.multiply(i, PITCH), j)))

    def _note(self, failed: Expr, matrix: Expr, first: Expr) -> None:
        """Update a matrix's info: the first column without a factor, in this panel or an earlier
        one."""
        scope, none = self._scope, Constant(S32, 0)
        with scope.when(is_first_thread(scope)):
            column = apply("convert", first, type=S32)
            own = apply("add", failed, column)
            found = apply("select", compare("EQ", failed, none), none, own, type=S32)
            before = scope.bind(scope.load(self._failed, matrix))
            known = apply("or", compare("EQ", first, ix.constant(0)), compare("EQ", before, none))
            scope.store(self._failed, matrix, apply("select", known, found, before, type=S32))

    def _subtract(self, matrices: Array, first: Expr, below: Expr) -> None:
        """Write the trailing update: subtract the products of a panel's rows, tile by tile."""
        scope = self._scope
        tiles = blocks(self._order - PANEL, SIDE)
        with scope.blocks(self._count * tiles * tiles, THREADS) as block:
            matrix, *tile = map(scope.bind, ix.delinearize(block, (self._count, tiles, tiles)))
            before = [scope.bind(ix.multiply(x, SIDE)) for x in tile]
            # Tiles right of the diagonal are of the triangle that nothing needs.
            is_there = compare("LT", before[0], below), compare("LE", tile[1], tile[0])
            with scope.when(apply("and", *is_there)):
                plane = self._of(matrices, matrix)
                rows = [scope.bind(ix.add(first, x, PANEL)) for x in before]
                sides = [plane._replace(start=scope.bind(plane.at(x, first))) for x in rows]
                counts = [scope.bind(ix.clamp(0, ix.subtract(below, x), SIDE)) for x in before]
                target = plane._replace(start=scope.bind(plane.at(rows[0], rows[1])))
                products = Products(sides[0], sides[1], (counts[0], counts[1]))
                subtract(scope, self._sums, products, target)
                scope.barrier()

    def _unpack(self, arrays: tuple[Array, Array], write: Writer, result: Result) -> None:
        """Write all elements of the first result."""
        scope, (matrices, squares) = self._scope, arrays
        with nest.flat(scope, (self._count, self._size, self._size)) as (matrix, *at):
            plane = self._of(matrices, matrix)
            found = []
            for part in range(self._numbers.parts):
                row, column = map(scope.bind, self._ordered(self._place(at[0], at[1], (part, 0))))
                panels = [ix.divide(x, PANEL) for x in (row, column)]
                own = [ix.modulo(x, PANEL) for x in (row, column)]
                dims = self._count, self._panels, PANEL, PANEL
                kept = scope.load(squares, ix.linearize((matrix, panels[0], *own), dims))
                other = scope.load(plane.array, plane.at(row, column))
                is_kept = compare("EQ", panels[0], panels[1])
                found.append(scope.bind(apply("select", is_kept, kept, other, type=self._sums)))
            failed = scope.bind(scope.load(self._failed, matrix))
            index = self._at(matrix, at[0], at[1])
            write.some((0,), index, (self._written(index, found, failed, result),))
