"""Share factorisations among the threads of a block: panels, squares and tiles, for Cholesky
factors and triangular systems (runtime/hlo_block_factor.h).

Both go over panels of 32 rows of a lower triangle: the square on the diagonal, then what it makes
known, then all products of that, by tiles of 64 rows and columns. Complex numbers are squares of
real ones, as in :mod:`backend_c.kernels.parts.contraction.factor_panels`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.factor_panels import compare
from hlo.types import S32, ElementType

THREADS = 256  # of a block
PANEL = 32  # HLO_BLOCK_PANEL
PITCH = PANEL + 1  # HLO_BLOCK_PITCH
SIDE = 64  # HLO_BLOCK_SIDE
# As PITCH: an odd pitch puts neighbouring rows of a column into different banks.
STEP = SIDE + 1  # HLO_BLOCK_STEP
LINES = 128  # rows, or right-hand sides, that a block solves for


class Plane(NamedTuple):
    """Locate a matrix of real numbers in memory: its first one, the strides of rows and columns."""

    array: Array
    start: Expr
    row: int
    column: int

    def at(self, row: Expr, column: Expr) -> Expr:
        """Return the offset of a number."""
        return ix.add(self.start, ix.multiply(row, self.row), ix.multiply(column, self.column))

    @property
    def transposed(self) -> Plane:
        """Return the transposed matrix, in the same memory."""
        return self._replace(row=self.column, column=self.row)


def is_first_thread(scope: Scope) -> Expr:
    """Return whether the running thread is the first one of its block."""
    return compare("EQ", scope.own_thread()[0], ix.constant(0))


def square(
    scope: Scope, sums: ElementType, order: int, first: Expr, read: Callable[[Expr, Expr], Expr]
) -> Array:
    """Copy a diagonal square into shared memory, padded with the identity beyond the last row.

    ``read`` maps a row and column of the whole matrix, clamped into it, to a number. Above the
    diagonal are zeros.
    """
    array = scope.shared(sums, PANEL * PITCH)
    with nest.threads(scope, PANEL, PANEL, 1) as (i, j):
        row, column = (ix.clamp(0, ix.add(first, x), order - 1) for x in (i, j))
        is_there = compare("LT", ix.add(first, i), ix.constant(order))
        is_read = apply("and", compare("LE", j, i), is_there)
        # The identity factors into itself, and changes nothing that is solved with it.
        one, zero = (Constant(sums, value) for value in (1.0, 0.0))
        other = apply("select", compare("EQ", i, j), one, zero, type=sums)
        value = apply("select", is_read, read(row, column), other, type=sums)
        scope.store(array, ix.add(ix.multiply(i, PITCH), j), value)
    return array


class Square(NamedTuple):
    """Describe a triangular square in shared memory.

    ``parts`` is the number of reals of an element, ``unit`` whether the diagonal counts as 1.
    """

    corner: Pointer
    parts: int = 1
    unit: bool = False


def solve(scope: Scope, sums: ElementType, own: Square, x: Plane, sizes: tuple[Expr, Expr]) -> None:
    """Solve with a square in place, for vectors that are the rows of ``x``, at most LINES.

    ``sizes`` is (number of vectors, steps). A thread has a vector; vectors that are not interleaved
    in memory are copied through shared memory, so that accesses are coalesced.
    """
    if abs(x.row) == 1:
        _solve(scope, sums, own, x, sizes)
        return
    copy = Plane(scope.shared(sums, LINES * PITCH), ix.constant(0), PITCH, 1)
    _move(scope, x, copy, sizes)
    scope.barrier()
    _solve(scope, sums, own, copy, sizes)
    scope.barrier()
    _move(scope, copy, x, sizes)


def _solve(
    scope: Scope, sums: ElementType, own: Square, x: Plane, sizes: tuple[Expr, Expr]
) -> None:
    """Call the runtime to solve with a square, a thread for each vector."""
    flags = ix.constant(own.parts), Constant(S32, int(own.unit))
    into, (count, steps) = Pointer(x.array, x.start), sizes
    ways = ix.constant(x.row), ix.constant(x.column)
    name = f"hlo_block_factor_solve_{sums}"
    scope.call(name, own.corner, *flags, into, count, *ways, steps)


def _move(scope: Scope, source: Plane, target: Plane, sizes: tuple[Expr, Expr]) -> None:
    """Copy vectors between two planes; neighbouring threads have neighbouring steps."""
    with nest.threads(scope, LINES, PANEL, 1) as place:
        is_there = [compare("LT", at, size) for at, size in zip(place, sizes, strict=True)]
        with scope.when(apply("and", *is_there)):
            value = scope.load(source.array, source.at(*place))
            scope.store(target.array, target.at(*place), value)


class Products(NamedTuple):
    """Describe the products of a tile, left[line][step] · right[line][step].

    ``counts`` are the lines of each side that exist, from the tile's first on.
    """

    left: Plane
    right: Plane
    counts: tuple[Expr, Expr]


def subtract(scope: Scope, sums: ElementType, products: Products, target: Plane) -> None:
    """Subtract a tile's products, sums over the 32 steps of a panel, from ``target``."""
    copies = []
    sides = (products.left, products.right)
    for side, count in zip(sides, products.counts, strict=True):
        copy = scope.shared(sums, PANEL * STEP)
        with nest.threads(scope, SIDE, PANEL, 0 if abs(side.row) == 1 else 1) as (line, step):
            known = ix.clamp(0, line, ix.subtract(count, 1))
            is_there = compare("LT", line, count)
            value = scope.load(side.array, side.at(known, step))
            kept = apply("select", is_there, value, Constant(sums, 0.0), type=sums)
            scope.store(copy, ix.add(ix.multiply(step, STEP), line), kept)
        copies.append(Pointer(copy, ix.constant(0)))
    scope.barrier()
    rows, columns = products.counts
    corner, way = Pointer(target.array, target.start), (target.row, target.column)
    if abs(target.row) == 1:  # neighbouring threads have neighbouring columns
        copies.reverse()
        rows, columns, way = columns, rows, way[::-1]
    strides = map(ix.constant, way)
    scope.call(f"hlo_block_factor_subtract_{sums}", *copies, corner, *strides, rows, columns)
