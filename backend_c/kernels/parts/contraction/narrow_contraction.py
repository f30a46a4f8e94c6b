"""Write contractions of f32 and narrower factors that would leave most of a register tile empty.

A product of two vectors, or of a matrix and a few, is one sum for each result: products are exact
in f64, and are added up beside their magnitudes; where the error bound does not decide the
rounding, the sum is added again in a superaccumulator. Nothing is packed, so it takes no workspace.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from backend_c.elemental.data_movement import all_of
from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Address, Constant, Expr, Variable
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import (
    Types,
    Write,
    exact_sum_of_products,
    masked,
)
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction.strided_access import (
    has_batches_side_by_side,
    has_lines_side_by_side,
)
from backend_c.kernels.parts.contraction.tiled_contraction import COLUMNS, padded_results
from backend_c.kernels.parts.reduction.exact_lane_sums import Add, LaneSums, Over
from backend_c.kernels.parts.reduction.exact_sum import decide_rounding
from hlo.types import F64, PRED, ElementType

# A product costs a tile a third of what it costs here, and packing is a tile's besides.
_WASTE = 4
_WIDTH = 64  # neighbouring results that are added up together
# A longer sum is added up in blocks: the bound of one f64 sum leaves too many roundings in doubt.
_LONG, _BLOCK = 1 << 13, 1 << 12

_Place = tuple[Expr, Expr, Expr]


def is_narrow(factors: Factors) -> bool:
    """Return whether tiles of the result would be mostly empty."""
    return padded_results(factors) >= _WASTE * factors.m * factors.n


class NarrowContraction:
    """Write one exact contraction with few rows or columns, sum by sum, without packing."""

    def __init__(
        self, factors: Factors, types: Types, result: ElementType, write: Write, scope: Scope
    ) -> None:
        self._factors, self._types, self._result = factors, types, result
        self._write, self._scope = write, scope

    def emit(self) -> None:
        """Write all loops: results in lanes where their factors lie side by side, else steps."""
        factors = self._factors
        batch, m, n, k = factors.batch, factors.m, factors.n, factors.k
        rows = has_lines_side_by_side(factors.lhs, (batch, m, k), self._scope)
        columns = has_lines_side_by_side(factors.rhs, (batch, n, k), self._scope)
        if n >= m and n >= COLUMNS and columns:
            self._in_lanes(n, (batch, m), lambda b, row, lane: (b, row, lane))
        elif m > n and m >= COLUMNS and rows:
            self._in_lanes(m, (batch, n), lambda b, column, lane: (b, lane, column))
        # Such as a depthwise convolution, of f32[N,H,W,C]: a group is a batch for each of C.
        elif batch >= COLUMNS and self._has_batches_side_by_side():
            self._in_lanes(batch, (m, n), lambda row, column, lane: (lane, row, column))
        else:
            with nest.outer(self._scope, (batch, m, n), k) as (b, row, column):
                self._write(factors.place(b, row, column), (self._sum((b, row, column)),))

    def _has_batches_side_by_side(self) -> bool:
        factors, scope = self._factors, self._scope
        sides = ((factors.lhs, factors.m), (factors.rhs, factors.n))
        return all(
            has_batches_side_by_side(read, (factors.batch, lines, factors.k), scope)
            for read, lines in sides
        )

    def _product(self, place: _Place, step: Expr) -> Expr:
        """Return a product in f64, zero where a factor does not count."""
        b, m, n = place
        sides = self._factors.lhs(b, m, step), self._factors.rhs(b, n, step)
        wide = [apply("widen", masked(*side), type=F64) for side in sides]
        return self._scope.bind(apply("multiply", *wide))

    def _sum(self, place: _Place) -> Expr:
        """Write the sum of one result; return it rounded once."""
        scope, k = self._scope, self._factors.k
        dims = self._factors.k_dims or (k,)
        if k >= _LONG:
            return self._in_blocks(dims, place)
        total, magnitude = (scope.mutable(F64, Constant(F64, 0.0)) for _ in range(2))
        with scope.over(dims, (total, magnitude)) as steps:
            self._add(total, magnitude, self._product(place, ix.linearize(steps, dims)))
        return self._rounded(total, magnitude, k + 1, place)

    def _in_blocks(self, dims: Sequence[int], place: _Place) -> Expr:
        """Write a long sum in blocks: each in f64, their totals in double-double."""
        scope = self._scope
        outer, inner = list[int](), list(dims)
        while len(inner) > 1 and math.prod(inner) > _BLOCK:
            outer.append(inner.pop(0))
        length = min(inner[0], _BLOCK)
        total, low, magnitude = (scope.mutable(F64, Constant(F64, 0.0)) for _ in range(3))
        with scope.over((*outer, -(-inner[0] // length))) as (*above, number):
            part, size = (scope.mutable(F64, Constant(F64, 0.0)) for _ in range(2))
            start = scope.bind(ix.multiply(number, length))
            left = ix.clamp(0, ix.subtract(inner[0], start), length)
            with scope.over((left, *inner[1:]), (part, size)) as (first, *rest):
                step = ix.linearize((*above, ix.add(start, first), *rest), dims)
                self._add(part, size, self._product(place, step))
            scope.call("hlo_dd_add", Address(total), Address(low), part)
            scope.assign(magnitude, apply("add", magnitude, size))
        scope.assign(total, apply("add", total, low))
        # 8 more roundings: of the magnitudes, and of the pair to one double.
        return self._rounded(total, magnitude, length * math.prod(inner[1:]) + 8, place)

    def _add(self, total: Variable, magnitude: Variable, product: Expr) -> None:
        """Write the addition of a product to a total, and of its magnitude to the other one."""
        self._scope.assign(total, apply("add", total, product))
        self._scope.assign(magnitude, apply("add", magnitude, apply("abs", product)))

    def _rounded(self, total: Expr, magnitude: Expr, count: int, place: _Place) -> Expr:
        """Return a total rounded once: by its bound, or added up again."""
        scope = self._scope
        sums = total, magnitude, ix.constant(count)
        zero = Constant(self._result, 0.0)  # a dot starts at +0
        result, decided = decide_rounding(scope, self._result, zero, sums)
        with scope.when(apply("not", decided, type=PRED)):
            scope.assign(result, self._again(place))
        return result

    def _again(self, place: _Place) -> Expr:
        """Recompute a sum in a superaccumulator."""
        return exact_sum_of_products(self._factors, self._types, self._result, place, self._scope)

    def _in_lanes(
        self, extent: int, others: tuple[int, int], place: Callable[[Expr, Expr, Expr], _Place]
    ) -> None:
        """Write sums with neighbouring results in lanes.

        ``place`` maps two indices that the lanes share, of extents ``others``, and that of the lane
        to (batch, row, column).
        """
        scope, factors = self._scope, self._factors
        width = min(extent, _WIDTH)
        k_dims = factors.k_dims or (factors.k,)
        strips = nest.strips(scope, (*others, extent), width, factors.k * width)
        with strips as ((one, other), first, count):

            def at(lane: Expr) -> _Place:
                return place(one, other, ix.clamp(0, ix.add(first, lane), extent - 1))

            def addends(over: Over, add: Add) -> None:
                with scope.over(k_dims) as steps, over(None) as lane:
                    add(lane, *self._counted_product(at(lane), ix.linearize(steps, k_dims)))

            sums = LaneSums(
                scope,
                lambda lane: Constant(self._result, 0.0),  # a dot starts at +0
                count,
                width,
                ix.constant(factors.k + 1),
                addends,
            )
            sums.emit(
                self._result, lambda lane, value: self._write(factors.place(*at(lane)), (value,))
            )

    def _counted_product(self, place: _Place, step: Expr) -> tuple[Expr, Expr | None]:
        """Return a product in f64, and the condition under which it counts, if there is one."""
        b, m, n = place
        left, right = self._factors.lhs(b, m, step), self._factors.rhs(b, n, step)
        wide = [apply("widen", value, type=F64) for value, _ in (left, right)]
        conditions = (*left[1], *right[1])
        product = self._scope.bind(apply("multiply", *wide))
        return product, all_of(conditions) if conditions else None
