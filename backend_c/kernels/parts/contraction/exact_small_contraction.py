"""Multiply small matrices of f32 and narrower factors exactly, without packing.

Products are exact in f64. Each row of sums is added up in f64, columns in lanes, beside the sums of
magnitudes, which give the error bound; the sums of a block of rows are then rounded together
(:mod:`backend_c.kernels.parts.reduction.rounded_lanes`). Register tiles would be half empty, and
their panels are packed in twice the time of the products.
"""

from __future__ import annotations

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import (
    Types,
    Write,
    exact_sum_of_products,
)
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction.finished_rows import write_rows
from backend_c.kernels.parts.contraction.row_sums import Rows, RowSums, blocks_of_rows
from backend_c.kernels.parts.contraction.small_contraction import is_small
from backend_c.kernels.parts.contraction.tiled_contraction import COLUMNS, padded_results
from backend_c.kernels.parts.reduction.rounded_lanes import BoundedSums, rounded_lanes
from hlo.types import F64, ElementType

_ELEMENTS = 512  # of a block of rows: its sums, magnitudes and results stay in the L1 cache


def is_small_for_tiles(factors: Factors, types: Types, scope: Scope) -> bool:
    """Return whether matrices are small, and fill at most two thirds of their register tiles."""
    results = factors.m * factors.n
    is_empty = factors.n < COLUMNS and 2 * padded_results(factors) >= 3 * results
    return is_empty and scope.settings.has_lanes and is_small(factors, types)


class ExactSmallContraction:
    """Write one exact contraction of small matrices of factors of ``types``."""

    def __init__(
        self, factors: Factors, types: Types, result: ElementType, write: Write, scope: Scope
    ) -> None:
        self._factors, self._types, self._result = factors, types, result
        self._write, self._scope = write, scope
        self._width = min(factors.m, max(1, _ELEMENTS // factors.n))
        addends = (lambda product: product, lambda product: apply("abs", product))
        self._sums = RowSums(factors, F64, self._width, scope, addends)

    def emit(self) -> None:
        """Write the loops over blocks of rows: sums, rounding, results."""
        scope, factors, columns = self._scope, self._factors, self._factors.n
        with blocks_of_rows(scope, factors, self._width) as rows:
            totals, magnitudes = (scope.local(F64, self._sums.elements) for _ in range(2))

            def keep(row: Expr, n: Expr, total: Expr, magnitude: Expr) -> None:
                place = ix.add(ix.multiply(row, columns), n)
                scope.store(totals, place, total)
                scope.store(magnitudes, place, magnitude)

            self._sums.add_up(rows, keep)
            sums = BoundedSums(
                totals,
                lambda lane: scope.load(magnitudes, lane),
                ix.constant(factors.k + 1),
                lambda lane: Constant(self._result, 0.0),  # a dot starts at +0
                ix.multiply(rows.number, columns),
            )
            results = rounded_lanes(scope, self._result, sums, lambda lane: self._exact(rows, lane))

            def store(row: Expr, n: Expr, number: Expr) -> None:
                place = factors.place(rows.batch, ix.add(rows.first, row), n)
                self._write(place, (scope.bind(scope.load(results, number)),))

            write_rows(scope, rows.number, self._width, columns, store)

    def _exact(self, rows: Rows, lane: Expr) -> Expr:
        """Return the sum of a lane in a superaccumulator."""
        columns = self._factors.n
        row, column = ix.divide(lane, columns), ix.modulo(lane, columns)
        place = rows.batch, self._scope.bind(ix.add(rows.first, row)), self._scope.bind(column)
        return exact_sum_of_products(self._factors, self._types, self._result, place, self._scope)
