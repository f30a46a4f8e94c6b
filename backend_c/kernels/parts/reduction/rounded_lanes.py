"""Round sums of neighbouring results once, each by its error bound.

The sums of all lanes are rounded in vectors. Where the bound leaves a rounding in doubt, the lane's
addends are added up again in a superaccumulator. See runtime/hlo_exact_sum.h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from backend_c.ir.loop_ir import Array, Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.reduction.exact_sum import decide_rounding
from hlo.types import F64, PRED, ElementType

_NO_DOUBT, _DOUBT = Constant(F64, 0.0), Constant(F64, 1.0)


class BoundedSums(NamedTuple):
    """Hold sums of ``lanes`` lanes: f64 totals from ``init(lane)`` on; ``magnitude(lane)``, the sum
    of magnitudes, or 0 where the total is exact; the number of roundings that an addend went
    through."""

    totals: Array
    magnitude: Callable[[Expr], Expr]
    roundings: Expr
    init: Callable[[Expr], Expr]
    lanes: Expr


def rounded_lanes(
    scope: Scope, element_type: ElementType, sums: BoundedSums, exact: Callable[[Expr], Expr]
) -> Array:
    """Return an array of the sums, rounded to a type; ``exact(lane)`` writes a sum in doubt."""
    elements = sums.totals.elements
    results = scope.local(element_type, elements)
    doubts = scope.local(F64, elements)  # as wide as what it comes from, for the vectors
    in_doubt = scope.mutable(F64, _NO_DOUBT)
    with scope.loop(sums.lanes, "lanes", (in_doubt,)) as lane:
        parts = scope.load(sums.totals, lane), sums.magnitude(lane), sums.roundings
        result, decided = decide_rounding(scope, element_type, sums.init(lane), parts)
        doubt = scope.bind(apply("select", decided, _NO_DOUBT, _DOUBT, type=F64))
        scope.store(doubts, lane, doubt)
        scope.store(results, lane, result)
        scope.assign(in_doubt, apply("add", in_doubt, doubt))
    with (
        scope.when(_is_set(in_doubt)),
        scope.loop(sums.lanes, "independent") as lane,
        scope.when(_is_set(scope.load(doubts, lane))),
    ):
        scope.store(results, lane, exact(lane))
    return results


def _is_set(doubt: Expr) -> Expr:
    return apply("compare-NE", doubt, _NO_DOUBT, type=PRED)
