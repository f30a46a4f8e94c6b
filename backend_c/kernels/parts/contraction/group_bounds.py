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

_HALF = 32  # bits
_LOW = (1 << _HALF) - 1
_FAR = 1 << 30  # upper halves of this size are beyond the positions of any array


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
            total = _WideSum(scope)
            with scope.loop(self.groups) as group:
                place = ix.add(ix.multiply(row, self.groups), group)
                size = scope.bind(sizes.at(*index, group))
                scope.store(starts, place, total.clamped())
                # A size below zero moves the next group back, over the one before: both count
                # there.
                total.add(size)
                scope.store(ends, place, total.clamped())

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


class _WideSum:
    """Hold a sum of integers of up to 64 bits, which may be beyond all of them: the sum of their
    upper halves and that of the lower ones, which are not negative."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._high, self._low = (scope.mutable(S64, Constant(S64, 0)) for _ in range(2))

    def add(self, size: Expr) -> None:
        """Add an integer."""
        is_signed = size.type is not U64
        wide = self._scope.bind(apply("convert", size, type=S64 if is_signed else U64))
        shift = "shift-right-arithmetic" if is_signed else "shift-right-logical"
        high = apply(shift, wide, Constant(wide.type, _HALF))
        low = apply("and", wide, Constant(wide.type, _LOW))
        parts = (apply("convert", part, type=S64) for part in (high, low))
        for total, part in zip((self._high, self._low), parts, strict=True):
            self._scope.assign(total, apply("add", total, part))

    def clamped(self) -> Expr:
        """Return the sum, or what is beyond all positions on its side."""
        carried = apply("shift-right-arithmetic", self._low, Constant(S64, _HALF))
        high = apply("add", self._high, carried)
        near = apply("clamp", Constant(S64, -_FAR), high, Constant(S64, _FAR))
        upper = apply("shift-left", near, Constant(S64, _HALF))
        return apply("or", upper, apply("and", self._low, Constant(S64, _LOW)))
