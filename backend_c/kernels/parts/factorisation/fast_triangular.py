"""Write solutions of triangular systems in fast mode, on tiles of products (hlo_factor.h).

The vectors x of T x = b (:mod:`.triangular_solve`) are the lanes of panels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.contraction.contraction_loops import as_type
from backend_c.kernels.parts.contraction.factor_panels import (
    AREA,
    BLOCK,
    WIDTH,
    System,
    blocks,
    negated,
    numbers_of,
    rest,
    transpose,
)
from backend_c.kernels.parts.factorisation.block_triangular import BlockTriangularSolve
from backend_c.kernels.parts.factorisation.interleaved_matrices import (
    are_small_and_many,
    interleaved_solve,
)
from backend_c.kernels.parts.factorisation.triangular_solve import TriangularSolve
from hlo.types import S32

_FEW = 4  # tasks: threads share the blocks of each
_FEW_VECTORS = 4  # for which reading the matrix once for each takes less time than panels do
_LONG = 512  # steps that make blocks enough to share


@dataclass(frozen=True, slots=True)
class _Left:
    """Locate the matrices T: strides of matrices, of blocks of 64 rows, of rows and of steps."""

    array: Array
    start: int
    matrix: int
    block: int
    row: int
    step: int

    def at(self, matrix: Expr, block: Expr | int, step: Expr | int) -> Pointer:
        """Return the address of a step of the first row of a block."""
        block, step = (ix.constant(x) if isinstance(x, int) else x for x in (block, step))
        places = ix.multiply(block, self.block), ix.multiply(step, self.step)
        return Pointer(self.array, ix.add(ix.multiply(matrix, self.matrix), *places, self.start))


def fast_triangular_solve(
    a: Element, b: Element, system: System, write: Writer, scope: Scope
) -> None:
    """Write the solutions of a batch of systems, by the method that suits their number and size."""
    if nest.has_blocks(scope):
        BlockTriangularSolve(a, b, system, write, scope).emit()
        return
    batch, size, vectors = system.extents(b.shape.dims)
    numbers, count = numbers_of(b.shape.element_type), math.prod(batch)
    is_small = are_small_and_many(size, count, numbers.sums) and vectors < WIDTH
    if is_small and numbers.parts == 1:
        interleaved_solve(a, b, system, write, scope)
    elif vectors <= _FEW_VECTORS and numbers.parts == 1:
        _solve_vectors(a, b, system, write, scope)
    else:
        _BlockedSolve(a, b, system, write, scope).emit()


def _solve_vectors(a: Element, b: Element, system: System, write: Writer, scope: Scope) -> None:
    """Write the solutions of real systems with a few right-hand sides, one vector at a time."""
    batch, size, vectors = system.extents(b.shape.dims)
    count, sums = math.prod(batch), numbers_of(b.shape.element_type).sums
    matrices = a.array
    if matrices is None or matrices.memory is not None or matrices.element_type is not sums:
        matrices = scope.scratch(sums, a.shape.elements, frozen=True)
        with nest.flat(scope, a.shape.dims) as index:
            scope.store(matrices, ix.linearize(index, a.shape.dims), as_type(a.at(*index), sums))
    x = scope.scratch(sums, b.shape.elements)

    def place(index: tuple[Expr, ...]) -> Expr:
        """Return the offset in x, where vectors are contiguous, of an element of b."""
        return ix.linearize(
            (*index[:-2], *(index[:-3:-1] if system.left_side else index[-2:])),
            (*batch, vectors, size),
        )

    with nest.flat(scope, b.shape.dims) as index:
        scope.store(x, place(index), as_type(b.at(*index), sums))
    with nest.outer(scope, (count, vectors), size * size // 2) as (matrix, vector):
        number = ix.add(ix.multiply(matrix, vectors), vector)
        flags = system.is_across, system.is_forward, system.unit
        scope.call(
            f"hlo_factor_{sums}_vector",
            Pointer(matrices, ix.multiply(matrix, size * size)),
            *(ix.constant(size), ix.constant(size)),
            *(Constant(S32, int(flag)) for flag in flags),
            Pointer(x, ix.multiply(number, size)),
        )
    with nest.flat(scope, b.shape.dims) as index:
        write(index, (as_type(scope.load(x, place(index)), b.shape.element_type),))


class _BlockedSolve(TriangularSolve):
    """Write the solutions of a batch of systems with many right-hand sides, in panels."""

    def __init__(self, a: Element, b: Element, system: System, write: Writer, scope: Scope) -> None:
        super().__init__(a, b, system, write, scope)
        self._units = blocks(self._vectors)
        self._panel = blocks(self._order) * AREA
        panels = self._count * self._units * self._panel
        self._panels = scope.scratch(self._sums, panels)

    def emit(self) -> None:
        """Write the panels, their solution, and the results."""
        left = self._in_place() or self._packed()
        self._move(is_packing=True)
        tasks = blocks(self._vectors, WIDTH)
        if self._count * tasks < _FEW and self._order >= _LONG:
            self._solve_shared(left, tasks)
        else:
            self._solve(left, tasks)
        self._move(is_packing=False)

    # The matrix

    def _in_place(self) -> _Left | None:
        """Return T in the operand's memory; None if it is computed, or if its rows are columns
        there."""
        array, n = self._numbers_in_memory(), self._size
        if array is None or self._system.is_across:
            return None
        if self._system.is_forward:
            return _Left(array, 0, n * n, BLOCK * n, n, 1)
        return _Left(array, n * n - 1, n * n, -BLOCK * n, -n, -1)

    def _packed(self) -> _Left:
        """Write T to scratch: row-major, or blocks of 64 rows column-major if T is a transpose."""
        scope, n, numbers = self._scope, self._order, self._numbers
        total = blocks(n) * BLOCK * n
        array = scope.scratch(numbers.sums, self._count * total)
        is_across = self._system.is_across
        left = (
            _Left(array, 0, total, BLOCK * n, 1, BLOCK)
            if is_across
            else _Left(array, 0, total, BLOCK * n, n, 1)
        )
        edge = numbers.edge
        with nest.outer(scope, (self._count, blocks(n)), BLOCK * n) as (matrix, block):
            first = scope.bind(ix.multiply(block, edge))
            rows = scope.bind(rest(self._size, first, edge))
            end = scope.bind(ix.add(first, rows))
            start = scope.bind(left.at(matrix, block, 0).offset)
            extents = (end, rows) if is_across else (rows, end)
            with scope.loop(extents[0]) as i, scope.loop(extents[1], "lanes") as j:
                row, step = (j, i) if is_across else (i, j)
                value = scope.bind(self._entry(matrix, ix.add(first, row), step))
                for (p, q), number in numbers.real_matrix(value).items():
                    rows_down = ix.multiply(ix.add(ix.multiply(row, numbers.parts), p), left.row)
                    along = ix.multiply(ix.add(ix.multiply(step, numbers.parts), q), left.step)
                    scope.store(array, ix.add(start, rows_down, along), number)
        return left

    # The vectors

    def _panel_at(self, matrix: Expr, unit: Expr, step: Expr | int) -> Expr:
        step = ix.constant(step) if isinstance(step, int) else step
        number = ix.add(ix.multiply(matrix, self._units), unit)
        return ix.add(ix.multiply(number, self._panel), ix.multiply(step, BLOCK))

    def _move(self, *, is_packing: bool) -> None:
        """Copy the right-hand sides to panels, padded with zeros, or the results from panels.

        Vectors that are rows are transposed on the way.
        """
        scope, numbers, is_left = self._scope, self._numbers, self._system.left_side
        dims, parts = (self._count, self._units, blocks(self._order)), range(numbers.parts)
        with nest.outer(scope, dims, AREA) as (matrix, unit, block):
            firsts = [scope.bind(ix.multiply(*x)) for x in ((block, numbers.edge), (unit, BLOCK))]
            counts = [
                scope.bind(rest(extent, first, size))
                for extent, first, size in zip(
                    (self._size, self._vectors), firsts, (numbers.edge, BLOCK), strict=True
                )
            ]
            offset = self._panel_at(matrix, unit, ix.multiply(block, BLOCK))
            panel = place = Pointer(self._panels, scope.bind(offset))
            if not is_left:
                place = Pointer(scope.local(numbers.sums, AREA), ix.constant(0))
                if not is_packing:
                    transpose(panel, place, scope)
            if is_packing:
                self._fill(place, counts[1])
            # Rows and columns of the operand are steps and lanes, or the other way round.
            order = (0, 1) if is_left else (1, 0)
            with scope.loop(counts[order[0]]) as i, scope.loop(counts[order[1]], "lanes") as j:
                step, lane = (i, j) if is_left else (j, i)
                at = self._along(ix.add(firsts[0], step)), ix.add(firsts[1], lane)
                index = *ix.delinearize(matrix, self._batch), at[order[0]], at[order[1]]
                numbered = [ix.add(ix.multiply(step, numbers.parts), p) for p in parts]
                places = [ix.add(place.offset, self._in_block(x, lane)) for x in numbered]
                if is_packing:
                    value = scope.bind(self._b.at(*index))
                    for number, target in zip(numbers.of(value), places, strict=True):
                        scope.store(place.array, target, number)
                else:
                    found = [negated(scope.bind(scope.load(place.array, x))) for x in places]
                    self._write(index, (numbers.element(found),))
            if is_packing and not is_left:
                transpose(place, panel, scope)

    def _in_block(self, step: Expr, lane: Expr) -> Expr:
        """Return the offset of a number in a block that has not been transposed."""
        row, column = (step, lane) if self._system.left_side else (lane, step)
        return ix.add(ix.multiply(row, BLOCK), column)

    def _fill(self, block: Pointer, lanes: Expr) -> None:
        """Write zeros to the lanes of a block without a vector."""
        scope = self._scope
        if self._vectors % BLOCK == 0:
            return
        with scope.loop(BLOCK) as step, scope.loop(ix.subtract(BLOCK, lanes), "lanes") as lane:
            at = ix.add(block.offset, self._in_block(step, ix.add(lanes, lane)))
            scope.store(block.array, at, Constant(self._numbers.sums, 0.0))

    # The solution

    def _solve(self, left: _Left, tasks: int) -> None:
        """Write the parallel loop over tasks: strips of lanes, solved alone."""
        scope = self._scope
        with nest.outer(scope, (self._count, tasks), WIDTH * self._order**2 // 2) as (matrix, task):
            scope.call(
                f"hlo_factor_{self._numbers.sums}_solve",
                left.at(matrix, 0, 0),
                *map(ix.constant, (left.block, left.row, left.step, self._order)),
                *self._flags(),
                self._strip(matrix, task, 0),
                ix.constant(WIDTH),
            )

    def _solve_shared(self, left: _Left, tasks: int) -> None:
        """Write the solution block by block; threads share the updates of all later blocks."""
        scope, last = self._scope, blocks(self._order) - 1
        pitches = [ix.constant(x) for x in (left.row, left.step)]
        sums = self._numbers.sums

        def rows(block: Expr) -> Expr:
            return scope.bind(rest(self._order, ix.multiply(block, BLOCK), BLOCK))

        def solved(matrix: Expr, block: Expr) -> None:
            with scope.loop(tasks) as task:
                step = ix.multiply(block, BLOCK)
                corner, into = left.at(matrix, block, step), self._strip(matrix, task, step)
                given = corner, *pitches, rows(block), *self._flags(), into, ix.constant(WIDTH)
                scope.call(f"hlo_factor_{sums}_block", *given)

        kind = nest.loop_kind(scope, tasks * WIDTH * BLOCK * self._order // 2)
        with scope.loop(self._count) as matrix:
            with scope.loop(last) as block:
                solved(matrix, block)
                shares = scope.bind(ix.multiply(ix.subtract(last, block), tasks))
                with scope.loop(shares, kind) as share:
                    target = scope.bind(ix.add(block, ix.divide(share, tasks), 1))
                    task, step = ix.modulo(share, tasks), ix.multiply(block, BLOCK)
                    scope.call(
                        f"hlo_factor_{sums}_add",
                        left.at(matrix, target, step),
                        *pitches,
                        rows(target),
                        ix.constant(BLOCK),
                        self._strip(matrix, task, step),
                        self._strip(matrix, task, ix.multiply(target, BLOCK)),
                        ix.constant(WIDTH),
                    )
            solved(matrix, ix.constant(last))

    def _flags(self) -> tuple[Expr, Expr]:
        return ix.constant(self._numbers.parts), Constant(S32, int(self._system.unit))

    def _strip(self, matrix: Expr, task: Expr, step: Expr | int) -> Pointer:
        """Return the address of a step in a task's strip of lanes."""
        unit, half = ix.divide(task, BLOCK // WIDTH), ix.modulo(task, BLOCK // WIDTH)
        place = self._panel_at(matrix, unit, step)
        return Pointer(self._panels, ix.add(place, ix.multiply(half, WIDTH)))
