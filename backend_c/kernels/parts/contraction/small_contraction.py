"""Multiply small matrices in fast mode, and say which are small.

Results that are not stored as they are summed are computed of a block of rows at a time
(:mod:`backend_c.kernels.parts.contraction.finished_rows`).
"""

from __future__ import annotations

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.contraction.contraction_loops import Write, as_type
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction.finished_rows import write_rows
from backend_c.kernels.parts.contraction.row_sums import (
    LEAST,
    MANY,
    VECTOR,
    Rows,
    RowSums,
    blocks_of_rows,
)
from backend_c.kernels.parts.contraction.strided_access import factor_strides, result_array
from hlo.passes.prologues import FEW_VECTORS
from hlo.types import ElementType

_COLUMNS, _STEPS = 16, 32  # at most: above, tiles of sums are faster
_FEW_COLUMNS, _FEW_STEPS = 8, 20  # one or the other at most, of many rows
_ROWS = 64  # of a share of a thread


def is_small(factors: Factors, types: tuple[ElementType, ElementType]) -> bool:
    """Return whether columns and steps are few, and factors in memory, with columns as vectors, or
    so many rows that the right factors are copied."""
    has_many = factors.m >= MANY
    is_large = has_many and factors.n > _FEW_COLUMNS and factors.k > _FEW_STEPS
    if factors.n > _COLUMNS or factors.k > _STEPS or is_large:
        return False
    left = factor_strides(factors.lhs, (factors.batch, factors.m, factors.k), types[0])
    right = factor_strides(factors.rhs, (factors.batch, factors.n, factors.k), types[1])
    if left is None or right is None:
        return False
    # Rows that lie side by side are lanes of the sums with a few vectors.
    if has_many and left.line == 1 and factors.n <= FEW_VECTORS:
        return False
    return right.line == 1 or (has_many and factors.n > 1)


class SmallContraction:
    """Write one contraction of small matrices; ``types`` are those of sums and result."""

    def __init__(
        self,
        factors: Factors,
        types: tuple[ElementType, ElementType],
        write: Write,
        scope: Scope,
    ) -> None:
        self._factors, self._write, self._scope = factors, write, scope
        self._types = types
        self._width = min(factors.m, _ROWS)
        self._sums = RowSums(factors, types[0], self._width, scope)

    def emit(self) -> None:
        """Write the loops over blocks of rows."""
        with blocks_of_rows(self._scope, self._factors, self._width) as rows:
            if self._is_stored:
                self._sums.add_up(rows, lambda row, n, total: self._store(rows, row, n, total))
            else:
                self._keep(rows)

    @property
    def _is_stored(self) -> bool:
        """Return whether results are stored as soon as their sums are known: as they are, or as
        whole vectors that take no longer to compute than to keep."""
        factors, (sums, result) = self._factors, self._types
        is_whole = factors.n % VECTOR == 0 and factors.k < LEAST and sums is result
        is_as_it_is = result_array(self._write, factors, sums) is not None
        is_direct = is_whole or is_as_it_is or self._scope.is_inside_element
        return is_direct and self._sums.lanes == factors.n

    def _keep(self, rows: Rows) -> None:
        """Write the sums of a block of rows to the stack, then their results."""
        scope, columns = self._scope, self._factors.n
        totals = scope.local(self._types[0], self._sums.elements)

        def keep(row: Expr, n: Expr, total: Expr) -> None:
            scope.store(totals, ix.add(ix.multiply(row, columns), n), total)

        def store(row: Expr, n: Expr, number: Expr) -> None:
            self._store(rows, row, n, scope.bind(scope.load(totals, number)))

        self._sums.add_up(rows, keep)
        write_rows(scope, rows.number, self._width, columns, store)

    def _store(self, rows: Rows, row: Expr, n: Expr, total: Expr) -> None:
        """Write one result, of a row of a block."""
        place = self._factors.place(rows.batch, ix.add(rows.first, row), n)
        self._write(place, (as_type(total, self._types[1]),))
