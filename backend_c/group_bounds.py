"""Where the groups of a ragged dimension begin and end."""

from __future__ import annotations

import math
from collections.abc import Sequence

from backend_c import actual_sizes, nest
from backend_c import index as ix
from backend_c.element import Element
from backend_c.loop_ir import INDEX, Constant, Expr
from backend_c.scope import Scope, apply
from hlo.types import PRED, S64


class GroupBounds:
    """The running sums of group sizes, in workspace; for each index of the dimensions before the
    last one of the sizes."""

    def __init__(self, sizes: Element, scope: Scope) -> None:
        *self._outer, self.groups = sizes.shape.dims
        self.actual = sizes.size(sizes.shape.rank - 1)  # number of groups
        self._dims = sizes.shape.dims
        rows = math.prod(self._outer)
        self._scope = scope
        if 0 in self._dims:
            return
        self._ends = scope.scratch(S64, rows * self.groups, frozen=True)
        self._starts = scope.scratch(S64, rows * self.groups, frozen=True)
        with nest.outer(scope, (rows,), self.groups) as (row,):
            index = [scope.bind(i) for i in ix.delinearize(row, self._outer)]
            total = scope.mutable(S64, Constant(S64, 0))
            with scope.loop(self.groups) as group:
                place = ix.add(ix.multiply(row, self.groups), group)
                size = apply("convert", sizes.at(*index, group), type=S64)
                scope.store(self._starts, place, total)
                scope.assign(total, apply("add", total, size))
                scope.store(self._ends, place, total)

    def inside(self, prefix: Sequence[Expr], group: Expr, position: Expr) -> tuple[Expr, ...]:
        """The conditions under which a position belongs to a group. (Of none there is nothing to
        look at, not even in a loop without turns, which what it reads does not depend on.)"""
        if 0 in self._dims:
            return (Constant(PRED, False),)
        index = (*prefix, group) if self._outer else (group,)
        place = ix.linearize(index, self._dims)
        start, end = (
            apply("convert", self._scope.load(array, place), type=INDEX)
            for array in (self._starts, self._ends)
        )
        return (
            apply("compare-LE", start, position, type=PRED),
            apply("compare-LT", position, end, type=PRED),
            *actual_sizes.inside([group], [self.actual], [self.groups]),
        )
