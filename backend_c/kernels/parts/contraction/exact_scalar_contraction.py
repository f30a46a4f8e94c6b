"""Write exact products of matrices of f32 and narrower factors for a target without lanes.

Each sum is added up in f64, where the products are exact, beside the sum of their magnitudes. Where
the error bound of that leaves the rounding in doubt, it is added up again in a superaccumulator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Constant, Expr, Variable
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import (
    Types,
    Write,
    exact_sum_of_products,
)
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction.scalar_contraction import Pair, Place, ScalarContraction
from backend_c.kernels.parts.reduction.exact_sum import decide_rounding
from hlo.types import F64, PRED, ElementType

_ZERO = Constant(F64, 0.0)


class ExactScalarContraction(ScalarContraction):
    """Write one contraction of factors of ``types``, one sum at a time.

    Double precision in software takes so long that loads shared by neighbouring sums do not matter.
    """

    def __init__(
        self, factors: Factors, types: Types, result: ElementType, write: Write, scope: Scope
    ) -> None:
        super().__init__(factors, (F64, result), write, scope)
        self._types = types

    def side_by_side(self, extent: int) -> Iterator[list[Expr]]:
        """Open the loop over ``extent`` numbers; yield one at a time."""
        with self.scope.loop(extent) as number:
            yield [number]

    def totals(self, places: Sequence[Place]) -> list[Variable]:
        """Declare the sum of products, and that of their magnitudes."""
        return [self.scope.mutable(F64, _ZERO), self.scope.mutable(F64, _ZERO)]

    def step(self, places: Sequence[Place], totals: Sequence[Variable], pair: Pair) -> None:
        """Write the addition of a product to both sums."""
        scope, (total, magnitude) = self.scope, totals
        left, right = (apply("widen", factor, type=F64) for factor in pair(places[0]))
        product = scope.bind(apply("multiply", scope.bind(left), scope.bind(right)))
        scope.assign(total, apply("add", total, product))
        scope.assign(magnitude, apply("add", magnitude, apply("abs", product)))

    def store(self, places: Sequence[Place], totals: Sequence[Variable]) -> None:
        """Write the sum to its place, rounded once."""
        scope, (total, magnitude), (place,) = self.scope, totals, places
        sums = total, magnitude, ix.constant(self.factors.k + 1)
        result, is_decided = decide_rounding(scope, self.result, _ZERO, sums)
        with scope.when(apply("not", is_decided, type=PRED)):
            exact = exact_sum_of_products(self.factors, self._types, self.result, place, scope)
            scope.assign(result, exact)
        self.write(self.factors.place(*place), (result,))
