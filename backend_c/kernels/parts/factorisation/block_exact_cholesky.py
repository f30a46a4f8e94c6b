"""Write exact Cholesky factors for blocks of threads (left-looking, column by column).

All rows of a column are independent: their exact dots with the pivot's row first, then, behind a
barrier, the quotients. A block factorises a small matrix; of a larger one each column is two
launches, whose rows all threads share. The factor is made where the result is; pivots are kept
until the end, when their roots are taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.factor_panels import compare
from backend_c.kernels.parts.factorisation.cholesky_and_substitution import (
    ROUTINES,
    as_entry,
    number,
    over,
    real_part,
    row_dot,
)
from hlo.types import PRED, S32

_THREADS = 256  # of the block of a small matrix
_SMALL = 192  # rows, whose dots a block has computed in the time of two launches


class ExactBlockCholesky:
    """Write the exact Cholesky factors of a batch of matrices, of which one triangle is read."""

    def __init__(self, operand: Element, scope: Scope, *, lower: bool, write: Writer) -> None:
        self._operand, self._scope, self._lower, self._write = operand, scope, lower, write
        *batch, self._size, _ = operand.shape.dims
        self._batch, self._count = tuple(batch), math.prod(batch)
        self._factor: Array = write.arrays[0]
        self._type = operand.shape.element_type
        self._failed = scope.scratch(S32, self._count)

    def emit(self, *, keeps_other: bool) -> Array:
        """Write the factors; return the array of info: 0, or 1 + the first column without a factor.

        The other triangle is 0, or NaN where there is no factor; with ``keeps_other`` it is the
        operand's.
        """
        scope, dims = self._scope, (self._count, self._size, self._size)
        with nest.flat(scope, (self._count,)) as (matrix,):
            scope.store(self._failed, matrix, Constant(S32, 0))
        with nest.flat(scope, dims) as (matrix, row, column):
            index = (*ix.delinearize(matrix, self._batch), row, column)
            self._write.some((0,), index, (self._operand.at(*index),))
        if self._size <= _SMALL:
            with scope.blocks(self._count, _THREADS) as matrix, scope.loop(self._size) as j:
                for act in (self._subtract, self._divide):
                    with scope.loop(self._size, "threads") as i, self._below(i, j):
                        act(matrix, i, j)
                    scope.barrier()
        else:
            with scope.loop(self._size, "launches") as j:
                for act in (self._subtract, self._divide):
                    with self._all_rows() as (matrix, i), self._below(i, j):
                        act(matrix, i, j)
        with nest.flat(scope, dims) as (matrix, row, column):
            self._finish(matrix, row, column, keeps_other=keeps_other)
        return self._failed

    @contextmanager
    def _all_rows(self) -> Iterator[tuple[Expr, Expr]]:
        """Open the loop of all threads over the rows of all matrices."""
        scope, dims = self._scope, (self._count, self._size)
        with scope.loop(math.prod(dims), "parallel lanes") as place:
            matrix, row = map(scope.bind, ix.delinearize(place, dims))
            yield matrix, row

    def _below(self, i: Expr, j: Expr) -> AbstractContextManager[None]:
        """Open an ``if`` for rows on and below the diagonal of column ``j``."""
        return self._scope.when(compare("LE", j, i))

    def _place(self, matrix: Expr) -> Callable[[Expr, Expr], Expr]:
        """Return the map from (row, column) of a lower factor to its offset."""
        size = self._size

        def place(row: Expr, column: Expr) -> Expr:
            at = (row, column) if self._lower else (column, row)
            return ix.linearize((matrix, *at), (self._count, size, size))

        return place

    def _subtract(self, matrix: Expr, i: Expr, j: Expr) -> None:
        """Write a_ij - dot of rows i and j before column j."""
        scope, place = self._scope, self._place(matrix)
        target = scope.bind(place(i, j))
        if self._type in ROUTINES:
            none = ix.constant(0)
            rows = (Pointer(self._factor, place(row, none)) for row in (i, j))
            step = ix.constant(1 if self._lower else self._size)
            name = f"hlo_cholesky_subtract_{self._type}"
            scope.call(name, *rows, step, j, Pointer(self._factor, target))
            return
        dot = row_dot(self._factor, place, (i, j), scope)
        own = scope.load(self._factor, target)
        scope.store(self._factor, target, scope.bind(apply("subtract", own, dot)))

    def _divide(self, matrix: Expr, i: Expr, j: Expr) -> None:
        """Write the division by the pivot's root; for the pivot itself, the info if it is not
        positive."""
        scope, place = self._scope, self._place(matrix)
        pivot = scope.bind(real_part(scope.load(self._factor, scope.bind(place(j, j)))))
        is_pivot = scope.bind(compare("EQ", i, j))
        with scope.when(is_pivot):
            before = scope.bind(scope.load(self._failed, matrix))
            is_positive = apply("compare-GT", pivot, Constant(pivot.type, 0.0), type=PRED)
            is_first = apply("and", _not(is_positive), compare("EQ", before, Constant(S32, 0)))
            column = apply("convert", ix.add(j, 1), type=S32)
            kept = apply("select", is_first, column, before, type=S32)
            scope.store(self._failed, matrix, kept)
        # The pivot stays as it is: threads of other rows read it, before this one or after it.
        with scope.when(_not(is_pivot)):
            target = scope.bind(place(i, j))
            own = scope.bind(scope.load(self._factor, target))
            scope.store(self._factor, target, over(own, scope.bind(apply("sqrt", pivot))))

    def _finish(self, matrix: Expr, row: Expr, column: Expr, *, keeps_other: bool) -> None:
        """Write an element of the result."""
        scope = self._scope
        index = (*ix.delinearize(matrix, self._batch), row, column)
        place = ix.linearize((matrix, row, column), (self._count, self._size, self._size))
        own = scope.bind(scope.load(self._factor, scope.bind(place)))
        root = as_entry(apply("sqrt", real_part(own)), self._type)
        value = apply("select", compare("EQ", row, column), root, own, type=self._type)
        is_failed = _not(compare("EQ", scope.load(self._failed, matrix), Constant(S32, 0)))
        is_failed = scope.bind(is_failed)
        nothing = number(self._type, float("nan"))
        value = apply("select", is_failed, nothing, value, type=self._type)
        other: Expr = own
        if not keeps_other:
            zero = number(self._type, 0.0)
            other = apply("select", is_failed, nothing, zero, type=self._type)
        is_there = compare("LE", *((column, row) if self._lower else (row, column)))
        kept = apply("select", is_there, value, other, type=self._type)
        self._write.some((0,), index, (kept,))


def _not(condition: Expr) -> Expr:
    """Return the negation of a condition."""
    return apply("not", condition, type=PRED)
