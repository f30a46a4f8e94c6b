"""Compute where the groups of a ragged dimension begin and end: prefix sums of their sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from backend_c.ir import bounded_elements, nest
from backend_c.ir import index as ix
from backend_c.ir.element import Element, array_reader
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import Scope, apply
from hlo.types import PRED, S64, U64, ArrayShape


class GroupBounds:
    """Hold the start and end positions of groups in workspace, a row per index of outer dims."""

    def __init__(self, sizes: Element, scope: Scope) -> None:
        *self._outer, self.groups = sizes.shape.dims
        self.actual = sizes.size(sizes.shape.rank - 1)  # number of groups
        rows = math.prod(self._outer)
        ends, starts = (scope.scratch(S64, rows * self.groups, frozen=True) for _ in range(2))
        shape = ArrayShape(S64, sizes.shape.dims)
        self._starts, self._ends = array_reader(starts, shape), array_reader(ends, shape)
        with nest.outer(scope, (rows,), self.groups) as (row,):
            index = [scope.bind(i) for i in ix.delinearize(row, self._outer)]
            total = scope.mutable(S64, Constant(S64, 0))
            with scope.loop(self.groups) as group:
                place = ix.add(ix.multiply(row, self.groups), group)
                size = scope.bind(_as_s64(sizes.at(*index, group)))
                scope.store(starts, place, total)
                # A size below zero moves the next group back, over the one before: both count
                # there.
                scope.assign(total, _saturated_sum(total, size, scope))
                scope.store(ends, place, total)

    def inside(self, prefix: Sequence[Expr], group: Expr, position: Expr) -> tuple[Expr, ...]:
        """Return the conditions under which a position belongs to a group."""
        index = (*prefix, group) if self._outer else (group,)
        start, end = (bounds.at(*index) for bounds in (self._starts, self._ends))
        place = apply("convert", position, type=S64)  # bounds may be beyond a narrow index
        return (
            apply("compare-LE", start, place, type=PRED),
            apply("compare-LT", place, end, type=PRED),
            *bounded_elements.inside([group], [self.actual], [self.groups]),
        )


def _as_s64(size: Expr) -> Expr:
    """Convert a size to s64, saturating."""
    if size.type is U64:
        size = apply("minimum", size, Constant(U64, 2**63 - 1))
    return apply("convert", size, type=S64)


def _saturated_sum(total: Expr, size: Expr, scope: Scope) -> Expr:
    """Add a size of a group, or return the largest number of s64 if the sum is beyond."""
    whole = scope.bind(apply("add", total, size))
    wraps = apply(
        "and",
        apply("compare-GT", size, Constant(S64, 0), type=PRED),
        apply("compare-LT", whole, total, type=PRED),
    )
    return apply("select", wraps, Constant(S64, 2**63 - 1), whole, type=S64)
