"""Write exact prefix sums along columns: neighbouring columns are the lanes.

Each column has a pair of f64 with a bound (:mod:`.exact_prefix_sum`). One with a step whose
rounding that leaves in doubt is added up again, by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from backend_c.ir.element import widened
from backend_c.ir.loop_ir import Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.reduction.exact_prefix_sum import rounded_pair
from hlo.types import F64, PRED, ElementType

WIDTH = 64  # columns that are added up together

_ZERO, _ONE = Constant(F64, 0.0), Constant(F64, 1.0)


@dataclass(frozen=True)
class ColumnPrefixSums:
    """Describe scans of ``columns`` neighbouring columns, at most WIDTH: ``init``, then ``before``
    addends, then one for each of ``steps`` steps where its condition holds.

    ``addend_before(number, column)`` and ``addend(step, column)`` return addends, ``where(step)``
    opens a block that runs if a step brings one.
    """

    scope: Scope
    init: Expr
    columns: Expr
    before: int
    steps: int
    addend_before: Callable[[Expr, Expr], Expr]
    addend: Callable[[Expr, Expr], Expr]
    where: Callable[[Expr], AbstractContextManager[None]]

    def emit(
        self, write: Callable[[Expr, Expr, Expr], None], again: Callable[[Expr], None]
    ) -> None:
        """Write the loops: ``write(step, column, value)`` writes a sum so far, rounded once,
        ``again(column)`` all those of a column anew."""
        scope = self.scope
        pair = [scope.local(F64, WIDTH) for _ in range(3)]
        doubts = scope.local(F64, WIDTH)
        with scope.loop(self.columns, "lanes") as column:
            starts = widened(self.init), _ZERO, _ZERO, _ZERO
            for array, start in zip((*pair, doubts), starts, strict=True):
                scope.store(array, column, start)
        with scope.loop(self.before) as number, scope.loop(self.columns, "lanes") as column:
            self._add(pair, column, self.addend_before(number, column))
        with scope.loop(self.steps) as step:
            with self.where(step), scope.loop(self.columns, "lanes") as column:
                self._add(pair, column, self.addend(step, column))
            with scope.loop(self.columns, "lanes") as column:
                write(step, column, self._rounded(pair, doubts, column))
        with scope.loop(self.columns) as column:
            doubt = scope.load(doubts, column)
            with scope.when(apply("compare-NE", doubt, _ZERO, type=PRED)):
                again(column)

    def _add(self, pair: list[Array], column: Expr, value: Expr) -> None:
        """Write the addition of a value to a column's pair."""
        places = [Pointer(array, column) for array in pair]
        self.scope.call("hlo_dd_add_measured", *places, self.scope.bind(widened(value)))

    def _rounded(self, pair: list[Array], doubts: Array, column: Expr) -> Expr:
        """Write a column's rounding, and note it if it is in doubt; return it."""
        scope, element_type = self.scope, self._type
        loaded = [scope.bind(scope.load(array, column)) for array in pair]
        result, decided = rounded_pair(scope, element_type, loaded, self.before + self.steps + 1)
        before = scope.load(doubts, column)
        scope.store(doubts, column, apply("select", decided, before, _ONE, type=F64))
        return result

    @property
    def _type(self) -> ElementType:
        return self.init.type
