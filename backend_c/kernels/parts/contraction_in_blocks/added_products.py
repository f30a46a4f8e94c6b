"""Accumulate products in registers of one thread, for each kind of sum."""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir.element import zero
from backend_c.ir.loop_ir import Expr, Variable
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import as_type, masked
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction_in_blocks.block_products import MAGNITUDES, BlockProduct
from backend_c.kernels.parts.contraction_in_blocks.block_tiles import Place
from hlo.types import PRED


class AddedProducts:
    """Write a sum of products, one step at a time, in as many variables as the kind of sum has
    parts."""

    def __init__(self, factors: Factors, product: BlockProduct, scope: Scope) -> None:
        self._factors, self._product, self._scope = factors, product, scope

    def zeros(self) -> list[Variable]:
        """Declare the parts of an empty sum."""
        kind = self._product.sums
        return [self._scope.mutable(kind, zero(kind)) for _ in range(self._product.parts)]

    def add(self, sums: Sequence[Variable], place: Place, step: Expr, *there: Expr) -> None:
        """Write the addition of one step's product, if ``there`` and the factors' conditions
        hold."""
        scope, product = self._scope, self._product
        b, m, n = place
        (left, some), (right, others) = self._factors.lhs(b, m, step), self._factors.rhs(b, n, step)
        conditions = tuple(map(scope.bind, dict.fromkeys((*some, *others, *there))))
        factors = [
            scope.bind(as_type(scope.bind(value), kind))
            for value, kind in zip((left, right), product.factors, strict=True)
        ]
        total = sums[0]
        if product is MAGNITUDES:
            value = scope.bind(masked(apply("multiply", *factors), conditions))
            scope.assign(total, apply("add", total, value))
            scope.assign(sums[1], apply("add", sums[1], apply("abs", value)))
            return
        if product.sums is PRED:
            more = apply("or", total, apply("and", *factors))
        elif product.sums.is_float:
            more = apply("multiply-add", *factors, total)
        else:
            more = apply("add", total, apply("multiply", *factors))
        # The total is selected, not a factor: zero times infinity is NaN.
        for condition in conditions:
            more = apply("select", condition, more, total, type=product.sums)
        scope.assign(total, more)

    def added(self, some: Expr, others: Expr) -> Expr:
        """Combine a part of two partial sums."""
        return apply(self._product.addition, some, others)
