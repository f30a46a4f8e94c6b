"""Scatter sums of floats exactly: updates are grouped by target row, and each group added up once.

A *position* is the number of a row of updates; its *key* is the row of the result that it meets.
Positions are grouped by key (runtime/hlo_group.h, a stable radix sort), and every group is added
up by one thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import INDEX, Array, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.reduction.exact_lane_sums import Add, LaneSums, Over
from backend_c.kernels.parts.scatter.block_groups import Rows, grouped, has_groups
from hlo.types import PRED

_WIDTH = 64  # lanes whose totals stay in the first cache
_Index = tuple[Expr, ...]


@dataclass(frozen=True)
class _Group:
    """Describe one task: the positions of one key, and a strip of columns in lanes."""

    scope: Scope
    rows: Rows
    order: Array
    first: Expr  # of its positions, in ``order``
    count: Expr
    key: Expr
    column: Callable[[Expr], _Index]  # of a lane
    lanes: Expr

    @contextmanager
    def members(self) -> Iterator[Expr]:
        """Open a loop over the positions of the group."""
        with self.scope.loop(self.count) as member:
            place = ix.add(self.first, member)
            yield self.scope.bind(self.scope.load(self.order, place))

    def source(self, position: Expr, lane: Expr) -> _Index:
        """Return the index of an update at a position, in a lane."""
        return self.rows.source(position, self.column(lane))

    def target(self, lane: Expr) -> _Index:
        """Return the index of the result in a lane."""
        return self.rows.target(self.key, self.column(lane))


class GroupedUpdates:
    """Write the exact sum of each element of ``init`` and the updates scattered to it.

    Elements of the result without updates are not written.
    """

    def __init__(self, scope: Scope, rows: Rows, init: Element, update: Element) -> None:
        self._scope, self._rows = scope, rows
        self._init, self._update = init, update
        *outer, last = rows.columns or (1,)
        self._last, self._width = last, min(last, _WIDTH)
        self._inner = (*outer, -(-last // max(self._width, 1)))

    def emit(self, write: Writer) -> None:
        """Write the grouping, and a parallel loop over groups and parts of rows."""
        rows, scope = self._rows, self._scope
        row = math.prod(rows.columns)
        if not rows.positions or not row:
            return
        keys, order, starts, number = self._grouped()
        # A task is one group and one strip of its columns, so that few groups of long rows share
        # threads, too.
        tasks = scope.bind(ix.multiply(number, math.prod(self._inner)))
        with scope.loop(tasks, nest.loop_kind(scope, 2 * rows.positions * row)) as task:
            group = self._group(task, keys, order, starts)
            if keys is not None:
                self._add(group, write)
                return
            # Groups of all keys: no update may meet one.
            with scope.when(apply("compare-GT", group.count, ix.constant(0), type=PRED)):
                self._add(group, write)

    def _grouped(self) -> tuple[Array | None, Array, Array, Expr]:
        """Write the grouping; return (keys, sorted positions, starts, number) of the groups.

        Keys are None if every key has a group, be it empty.
        """
        rows, scope, zero = self._rows, self._scope, ix.constant(0)
        if has_groups(rows, scope):
            return None, *grouped(rows, scope), ix.constant(rows.targets)
        lengths = rows.positions, rows.positions, rows.positions + 1, 1
        keys, *found = (scope.scratch(INDEX, length, frozen=True) for length in lengths)
        with nest.outer(scope, (rows.positions,), 8) as (position,):
            scope.store(keys, position, rows.key(position))
        order, starts, groups = found
        scope.call(
            "hlo_group",
            Pointer(keys, zero),
            ix.constant(rows.positions),
            ix.constant(rows.targets),
            *(Pointer(array, zero) for array in found),
        )
        return keys, order, starts, scope.bind(scope.load(groups, zero))

    def _group(self, task: Expr, keys: Array | None, order: Array, starts: Array) -> _Group:
        """Return the group and the strip of columns of task number ``task``."""
        scope = self._scope
        # The leading 1 stands for the number of groups, which is known at run time only.
        number, *outer, part = map(scope.bind, ix.delinearize(task, (1, *self._inner)))
        first = scope.bind(scope.load(starts, number))
        count = ix.subtract(scope.load(starts, ix.add(number, 1)), first)
        key = number
        if keys is not None:
            key = scope.bind(scope.load(keys, scope.load(order, first)))
        start = ix.multiply(part, self._width)

        def column(lane: Expr) -> _Index:
            return (*outer, ix.add(start, lane)) if self._rows.columns else ()

        lanes = ix.clamp(0, ix.subtract(self._last, start), self._width)
        return _Group(
            scope, self._rows, order, first, scope.bind(count), key, column, scope.bind(lanes)
        )

    def _add(self, group: _Group, write: Writer) -> None:
        """Write the exact sum of a group."""
        init, update = self._init, self._update

        def addends(over: Over, add: Add) -> None:
            with group.members() as position, over(None) as lane:
                add(lane, update.at(*group.source(position, lane)), None)

        def start(lane: Expr) -> Expr:
            return init.at(*group.target(lane))

        # The init is one more addend of the error bound.
        count = ix.add(group.count, 1)
        sums = LaneSums(self._scope, start, group.lanes, self._width, count, addends)
        element_type = init.shape.element_type
        sums.emit(element_type, lambda lane, value: write(group.target(lane), (value,)))
