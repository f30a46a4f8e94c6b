"""Compute where the groups of a ragged dimension begin and end: prefix sums of their sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from backend_c.ir import bounded_elements, nest
from backend_c.ir import index as ix
from backend_c.ir.element import Element, array_reader
from backend_c.ir.loop_ir import INDEX, Constant, Expr
from backend_c.ir.scope import Scope, apply
from hlo.types import PRED, S64, ArrayShape


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
                size = apply("convert", sizes.at(*index, group), type=S64)
                scope.store(starts, place, total)
                # A size below zero moves the next group back, over the one before: both count
                # there.
                scope.assign(total, apply("add", total, size))
                scope.store(ends, place, total)

    def inside(self, prefix: Sequence[Expr], group: Expr, position: Expr) -> tuple[Expr, ...]:
        """Return the conditions under which a position belongs to a group."""
        index = (*prefix, group) if self._outer else (group,)
        start, end = (
            apply("convert", bounds.at(*index), type=INDEX) for bounds in (self._starts, self._ends)
        )
        return (
            apply("compare-LE", start, position, type=PRED),
            apply("compare-LT", position, end, type=PRED),
            *bounded_elements.inside([group], [self.actual], [self.groups]),
        )
