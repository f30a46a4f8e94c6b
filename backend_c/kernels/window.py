"""Write reduce-window and select-and-scatter: windows that slide over arrays.

Padding and the holes of base dilation are skipped: reads are clamped, and what they give counts
only under a condition. Neighbouring results along the last dimension are the lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from backend_c.elemental.data_movement import all_of
from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.bounded_elements import inside
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import INDEX, Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.convolution.small_windows import have_few_taps, write_small
from backend_c.kernels.parts.convolution.window_positions import Windows
from backend_c.kernels.parts.reduction.combiner import Combiner, apply_combiner
from backend_c.kernels.parts.reduction.cumulative_sums import CumulativeSums
from backend_c.kernels.parts.reduction.exact_lane_sums import Add, LaneSums, Over, lanes_of
from backend_c.kernels.parts.reduction.monoids import Monoid, monoid_of
from backend_c.kernels.parts.reduction.prefix_scan import PrefixScan
from backend_c.kernels.parts.reduction.running_window import Growth, growth
from backend_c.kernels.parts.reduction.short_scans import are_short, write_short_scans
from backend_c.kernels.parts.reduction.window_lanes import tap_lanes
from backend_c.kernels.parts.scatter.block_groups import Rows, has_groups
from backend_c.kernels.parts.scatter.block_groups import fold as grouped_fold
from backend_c.kernels.parts.scatter.grouped_updates import GroupedUpdates
from backend_c.kernels.parts.scatter.ordered_updates import OrderedUpdates, is_fold, is_in, shares
from backend_c.kernels.parts.scatter.overlapping_windows import write_overlapping
from backend_c.kernels.parts.scatter.tiled_windows import are_tiles, write_tiles
from hlo.attributes import Window
from hlo.opcodes import MONOID, ROUNDS, having
from hlo.types import F64, PRED, ArrayShape

__all__ = ["reduce_window", "select_and_scatter"]

_WIDTH = 64  # lanes whose totals stay in the first cache
_SHORT = 16  # elements of a window, of which many an exact sum is a tie between two results
# From so many elements on, a window that grows is added up as one running sum. Rounding that at
# each position costs as much as so many additions in lanes.
_RUNNING = 64
# Additions to a state of f32, at most: the errors of a few are those of a reduction in lanes, those
# of many add up.
_MOST_ADDITIONS = 64
_ORDERED = having(MONOID | ROUNDS)  # their order matters to floats
_Index = tuple[Expr, ...]


def reduce_window(
    *operands: Element,
    to_apply: Combiner,
    window: Window = Window(),  # noqa: B008  (frozen)
    write: Writer,
    block: Scope,
) -> None:
    """result[o] = fold of to_apply over the operand's window at o, from init, in row-major order.

    Five ways: where windows only grow (cumulative sums), a prefix scan by a monoid, of short rows
    in lanes, or a running fold in one pass; exact sums in lanes; else the fold in lanes, of sums in
    ``fast``, too.
    """
    arity = len(operands) // 2
    inputs, inits = operands[:arity], operands[arity:]
    windows = Windows(block, inputs[0], window.dimensions, write.shapes[0].dims)
    for number in range(arity):
        write.sizes(number, windows.sizes())
    if 0 in windows.positions:
        return
    element_type = inputs[0].shape.element_type
    monoid = to_apply.monoid if arity == 1 else None
    of_floats = element_type.is_inexact
    # min and max of floats, and any monoid of integers, give the same bits in every order.
    is_ordered = monoid is None or (of_floats and monoid in _ORDERED)
    is_sum = of_floats and monoid == "add"
    growing = None
    reordered = monoid_of(monoid, element_type, is_fast=block.settings.is_fast)
    if not inputs[0].sizes:
        # Suffixes (jnp.cumsum with reverse=True) are folded from the last element on, against the
        # order.
        backwards = is_sum or not is_ordered or reordered is not None
        growing = growth(window.dimensions, inputs[0].shape.dims, windows.positions, backwards)
    is_short = growing is not None and are_short(block, growing, windows.positions)
    if is_sum and windows.elements < _RUNNING and not (is_short and reordered):
        growing = None
    fold = _Fold(windows, inputs, inits, to_apply, write)
    if growing is not None and reordered is not None:
        elements = inputs[0], inits[0]
        if is_short:
            write_short_scans(block, reordered, elements, growing, windows.positions, write)
        else:
            PrefixScan(block, reordered, *elements, growing, windows.positions).emit(write)
    elif growing is not None:
        fold.running(growing, is_sum)
    elif is_sum and not block.settings.is_fast:
        fold.sums()
    else:
        wide = _wide(reordered, windows.elements) if is_ordered and reordered else None
        if monoid is not None and have_few_taps(windows):
            write_small(windows, inits[0], to_apply, wide or reordered, write)
        else:
            fold.in_order(wide)


def _wide(monoid: Monoid, elements: int) -> Monoid:
    """Return a monoid, with f64 states if a window has more elements than f32 should add up."""
    return monoid if elements <= _MOST_ADDITIONS else replace(monoid, state=F64)


class _Lanes(NamedTuple):
    """Describe a strip of ``size`` neighbouring positions along the last dimension."""

    outer: _Index
    first: Expr
    size: Expr


class _Fold:
    """Write one reduce-window in one of several ways."""

    def __init__(
        self,
        windows: Windows,
        inputs: Sequence[Element],
        inits: Sequence[Element],
        to_apply: Combiner,
        write: Writer,
    ) -> None:
        self._windows, self._inputs, self._inits = windows, inputs, inits
        self._to_apply, self._write, self._scope = to_apply, write, windows.scope
        *outer, self._last = windows.positions or (1,)
        self._width = min(self._last, _WIDTH)
        self._dims = (*outer, -(-self._last // self._width))

    @contextmanager
    def _lanes(self) -> Iterator[_Lanes]:
        """Open loops over strips of positions, whose lanes run along the last dimension."""
        work = self._windows.elements * self._width
        with nest.outer(self._scope, self._dims, work) as (*outer, part):
            first = ix.multiply(part, self._width)
            count = ix.clamp(0, ix.subtract(self._last, first), self._width)
            yield _Lanes(tuple(outer), first, self._scope.bind(count))

    def _place(self, lanes: _Lanes, lane: Expr) -> _Index:
        """Return the position of a lane."""
        return (*lanes.outer, ix.add(lanes.first, lane)) if self._windows.positions else ()

    @contextmanager
    def _taps(self, lanes: _Lanes, over: Over) -> Iterator[tuple[Expr, _Index, Expr | None]]:
        """Open loops over the taps of the windows of all lanes, and over the lanes of each.

        Yields a lane, the operand's index, and the condition under which that counts. Conditions on
        outer dimensions, which all lanes share, are tested once; those on the last one are a range
        of lanes, if there are no holes in it.
        """
        windows, last = self._windows, len(self._windows.positions) - 1
        with windows.taps() as taps:
            above, conditions = windows.at(lanes.outer, taps[:-1])
            inside = None
            if last >= 0 and windows.is_padded(last):
                dimension, extent = windows.dimensions[last], windows.operand.shape.dims[last]
                inside = tap_lanes(
                    lanes.first, taps[-1], dimension, extent, lanes.size, self._scope
                )
            with windows.where(conditions), over(inside and inside.lanes) as lane:
                if inside:
                    yield lane, (*above, inside.at(lane)), None
                else:
                    index, within = windows.at(self._place(lanes, lane)[last:], taps[-1:], last)
                    yield lane, (*above, *index), all_of(within) if within else None

    def in_order(self, monoid: Monoid | None = None) -> None:
        """Write the fold in row-major order, the init first, by the computation or by a monoid."""
        scope = self._scope
        types = [monoid.state if monoid else init.shape.element_type for init in self._inits]
        with self._lanes() as lanes:
            states = [scope.local(type, self._width, is_opaque=False) for type in types]
            with scope.loop(lanes.size, "lanes") as lane:
                for state, init in zip(states, self._inits, strict=True):
                    scope.store(state, lane, monoid.lifted(init.at()) if monoid else init.at())
            with self._taps(lanes, lanes_of(scope, lanes.size)) as (lane, index, condition):
                before = [scope.bind(scope.load(state, lane)) for state in states]
                if monoid is None:
                    values = self._combined(before, index)
                else:
                    element = scope.bind(self._inputs[0].at(*index))
                    values = [monoid.combined(before[0], monoid.lifted(element))]
                for state, value, old in zip(states, values, before, strict=True):
                    if condition is not None:
                        value = apply("select", condition, value, old, type=value.type)
                    scope.store(state, lane, value)
            with scope.loop(lanes.size, "lanes") as lane:
                folded: list[Expr] = [scope.load(state, lane) for state in states]
                if monoid is not None:
                    folded = [monoid.value(one) for one in folded]
                self._write(self._place(lanes, lane), tuple(folded))

    def _combined(self, before: Sequence[Expr], index: _Index) -> list[Expr]:
        """Apply the computation to states and the elements at an index."""
        values = [self._scope.bind(operand.at(*index)) for operand in self._inputs]
        return apply_combiner(self._scope, self._to_apply, (*before, *values))

    def sums(self) -> None:
        """Write the exact sum of each window and the init."""
        (operand,), (init,) = self._inputs, self._inits
        with self._lanes() as lanes:

            def addends(over: Over, add: Add) -> None:
                with self._taps(lanes, over) as (lane, index, condition):
                    add(lane, operand.at(*index), condition)

            most = ix.constant(self._windows.elements + 1)
            sums = LaneSums(
                self._scope,
                lambda lane: init.at(),
                lanes.size,
                self._width,
                most,
                addends,
                short=self._windows.elements <= _SHORT,
            )
            sums.emit(
                operand.shape.element_type,
                lambda lane, value: self._write(self._place(lanes, lane), (value,)),
            )

    def running(self, growing: Growth, is_sum: bool) -> None:
        """Write one pass along the dimension in which windows grow, with a running state."""
        scope, d = self._scope, growing.dimension
        dims = (*self._windows.positions[:d], *self._windows.positions[d + 1 :])
        if is_sum:
            (operand,), (init,) = self._inputs, self._inits
            positions, where = self._windows.positions, self._windows.where
            CumulativeSums(scope, positions, where, growing, operand, init).emit(self._write)
            return
        with nest.outer(scope, dims, 16 * growing.positions) as other:

            def at(position: Expr) -> _Index:
                return (*other[:d], position, *other[d:])

            # Neighbouring columns run in parallel; along the dimension each position continues the
            # last one's.
            add, value = self._running_state()
            with scope.loop(growing.before) as number:
                add(at(growing.element_before(number)))
            with scope.loop(growing.positions) as step:
                position, conditions = growing.element(step)
                with self._windows.where(conditions):
                    add(at(position))
                self._write(at(growing.window_position(step)), value())

    def _running_state(self) -> tuple[Callable[[_Index], None], Callable[[], _Index]]:
        """Declare running states; return (function that folds an element in, one that reads
        them)."""
        scope = self._scope
        state = [scope.mutable(init.shape.element_type, init.at()) for init in self._inits]

        def add(index: _Index) -> None:
            for variable, value in zip(state, self._combined(state, index), strict=True):
                scope.assign(variable, value)

        return add, lambda: tuple(state)


def select_and_scatter(
    operand: Element,
    source: Element,
    init: Element,
    *,
    select: Combiner,
    scatter: Combiner,
    window: Window = Window(),  # noqa: B008  (frozen)
    write: Writer,
    block: Scope,
) -> None:
    """result[i] = fold of scatter over the sources whose window selected element i, from init.

    A window keeps its best element so far, from the first on; a candidate takes its place where
    ``select(best, candidate)`` is false.
    """
    dims = operand.shape.dims
    write.sizes(0, operand.sizes)
    if 0 in dims:
        return
    windows = Windows(block, operand, window.dimensions, source.shape.dims)
    if are_tiles(windows):
        write_tiles(windows, (source, init), select, scatter, write)
        return
    everywhere = Element(ArrayShape(init.shape.element_type, dims), lambda *index: init.at())
    is_a_fold = is_fold(block, [everywhere], scatter)
    if is_a_fold and 0 not in source.shape.dims and have_few_taps(windows):
        write_overlapping(windows, (source, init), select, scatter, write)
        return

    def selected(place: Expr) -> Expr:
        index = ix.delinearize(place, source.shape.dims)
        chosen: Expr = _selected(windows, index, select)
        for sizes in (source.sizes, windows.sizes()):
            for there in inside(index, sizes, source.shape.dims) if sizes else ():
                none = ix.constant(operand.shape.elements)
                chosen = apply("select", there, chosen, none, type=INDEX)
        return chosen

    rows = Rows(
        source.shape.elements,
        operand.shape.elements,
        (),
        selected,
        lambda place, column: ix.delinearize(place, source.shape.dims),
        lambda target, column: ix.delinearize(target, dims),
    )
    if is_a_fold and has_groups(rows, block):
        grouped_fold(block, rows, ([everywhere], [source]), scatter, write)
        return
    if is_a_fold:
        fold = OrderedUpdates(block, [everywhere], [source], scatter, write)
        fold.start()
        _scatter_in_order(block, rows, fold)
        fold.finish()
        return
    # Elements that no window selects keep the init; the updates then start from it.
    with nest.flat(block, dims) as index:
        write(index, (init.at(),))
    GroupedUpdates(block, rows, everywhere, source).emit(write)


def _scatter_in_order(scope: Scope, rows: Rows, fold: OrderedUpdates) -> None:
    """Write the selection of all windows, then the fold of the sources in their order."""
    # Each share walks all windows for the elements that are its own, so what they select is
    # computed once before. (Threads share elements, not windows: no order depends on how many there
    # are.)
    if not rows.positions:
        return
    keys = scope.scratch(INDEX, rows.positions, frozen=True)
    with nest.outer(scope, (rows.positions,), 8) as (position,):
        scope.store(keys, position, rows.key(position))
    work = 2 * rows.positions
    with shares(scope, rows.targets, work) as share, scope.loop(rows.positions) as position:
        key = scope.bind(scope.load(keys, position))
        is_mine = is_in(key, share or (ix.constant(0), ix.constant(rows.targets)))
        with scope.when(all_of(is_mine)):
            fold.meet(rows.target(key, ()), rows.source(position, ()))


def _selected(windows: Windows, place: Sequence[Expr], select: Combiner) -> Expr:
    """Return the offset of the element that a window selects; the operand's size if none."""
    scope, operand = windows.scope, windows.operand
    element_type = operand.shape.element_type
    none = ix.constant(operand.shape.elements)
    best = scope.mutable(element_type, Constant(element_type, 0))
    chosen = scope.mutable(INDEX, none)
    with windows.taps() as taps:
        index, conditions = windows.at(place, taps)
        with windows.where(conditions):
            candidate = scope.bind(operand.at(*index))
            (stays,) = apply_combiner(scope, select, (best, candidate))
            # The zero that `best` starts as is never compared: what `select` gives for it is
            # ignored.
            is_first = apply("compare-EQ", chosen, none, type=PRED)
            takes = apply("or", is_first, apply("not", stays, type=PRED))
            with scope.when(takes):
                scope.assign(best, candidate)
                scope.assign(chosen, ix.linearize(index, operand.shape.dims))
    return chosen
