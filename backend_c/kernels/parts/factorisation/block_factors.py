"""Share factorisations among blocks of threads: what Cholesky factors and triangular systems have
in common (runtime/hlo_block_factor.h).

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
STEP = SIDE + 1  # HLO_BLOCK_STEP
LINES = 128  # rows, or right-hand sides, that a block solves for


class Plane(NamedTuple):
    """Say where the numbers of a matrix are: its first one, and how far rows and columns are
    apart."""

    array: Array
    start: Expr
    row: int
    column: int

    def at(self, row: Expr, column: Expr) -> Expr:
        """Return the offset of a number."""
        return ix.add(self.start, ix.multiply(row, self.row), ix.multiply(column, self.column))

    @property
    def transposed(self) -> Plane:
        """Return the same with rows for columns."""
        return self._replace(row=self.column, column=self.row)


def is_first_thread(scope: Scope) -> Expr:
    """Return whether the running thread is the first one of its block."""
    return compare("EQ", scope.own_thread()[0], ix.constant(0))


def square(
    scope: Scope, sums: ElementType, order: int, first: Expr, read: Callable[[Expr, Expr], Expr]
) -> Array:
    """Write a square of the diagonal to shared memory, the identity behind the last row.

    ``read`` maps row and column of the whole, which are there, to a number; above the diagonal are
    zeros.
    """
    array = scope.shared(sums, PANEL * PITCH)
    with nest.threads(scope, PANEL, PANEL, 1) as (i, j):
        row, column = (ix.clamp(0, ix.add(first, x), order - 1) for x in (i, j))
        is_there = compare("LT", ix.add(first, i), ix.constant(order))
        is_read = apply("and", compare("LE", j, i), is_there)
        one, zero = (Constant(sums, value) for value in (1.0, 0.0))
        other = apply("select", compare("EQ", i, j), one, zero, type=sums)
        value = apply("select", is_read, read(row, column), other, type=sums)
        scope.store(array, ix.add(ix.multiply(i, PITCH), j), value)
    return array


class Square(NamedTuple):
    """Describe a square in shared memory: of how many numbers an element is made, and whether its
    diagonal counts as 1."""

    corner: Pointer
    parts: int = 1
    unit: bool = False


def solve(scope: Scope, sums: ElementType, own: Square, x: Plane, sizes: tuple[Expr, Expr]) -> None:
    """Write the solution of a square for vectors in their place, the rows of ``x``, at most LINES.

    ``sizes``: how many they are, and their steps. A thread has a vector: those that are not
    neighbours in memory come to shared memory and go back by whole lines.
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
    """Write the call of the runtime's solution."""
    flags = ix.constant(own.parts), Constant(S32, int(own.unit))
    into, (count, steps) = Pointer(x.array, x.start), sizes
    ways = ix.constant(x.row), ix.constant(x.column)
    name = f"hlo_block_factor_solve_{sums}"
    scope.call(name, own.corner, *flags, into, count, *ways, steps)


def _move(scope: Scope, source: Plane, target: Plane, sizes: tuple[Expr, Expr]) -> None:
    """Write the copy of vectors, neighbouring threads neighbouring steps."""
    with nest.threads(scope, LINES, PANEL, 1) as place:
        is_there = [compare("LT", at, size) for at, size in zip(place, sizes, strict=True)]
        with scope.when(apply("and", *is_there)):
            value = scope.load(source.array, source.at(*place))
            scope.store(target.array, target.at(*place), value)


class Products(NamedTuple):
    """Describe the products of a tile: of ``left[line][step]``, and of right ones, each of whose
    lines there are so many from the tile's first on."""

    left: Plane
    right: Plane
    counts: tuple[Expr, Expr]


def subtract(scope: Scope, sums: ElementType, products: Products, target: Plane) -> None:
    """Write the subtraction of a tile's sums of 32 products from the numbers at ``target``."""
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
