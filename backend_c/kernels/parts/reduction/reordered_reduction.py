"""Write reductions by a monoid in an order that vector lanes and threads like.

The order depends on shapes alone, so that every run and every number of threads gives the same
bits. One by one on a target without lanes, else in five ways, by where neighbours in memory belong:

    rows         neighbours belong to one result: a loop in lanes for each result
    columns      neighbours belong to different results: a strip of results in lanes, row by row
    blocks       few results of many elements: partial results of blocks of elements, then of those
    written out  results of few elements each: the results are the lanes
    in steps     few neighbours belong to one result (a group of channels), whose other elements are
                 elsewhere: columns first, and then those of a result
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, array_reader, scalar
from backend_c.ir.loop_ir import Array, Expr, Variable, every
from backend_c.ir.scope import Scope
from backend_c.ir.strip import Strip
from backend_c.kernels.parts.reduction.column_reduction import (
    Write,
    strip_values,
    write_columns,
)
from backend_c.kernels.parts.reduction.monoids import Monoid
from hlo.passes.index_paths import WRITTEN_OUT
from hlo.types import ArrayShape

_BLOCK = 1 << 14  # elements of a block: enough to be worth a partial result, few enough to share
_FEW = 32  # results that threads cannot share well
_STREAMS = 4  # elements that are combined side by side: one addition waits four cycles for another
_LONG = 1 << 8  # elements in lanes for which that pays
_SHARED = 1 << 13  # elements that threads of a block add up before they combine what they have
_LANES = 16  # columns of a vector
_SHORT = 64  # neighbours of one result, which are too few for a loop
_MOST_STATEMENTS = 100  # of a row that is written out
_FEWEST = 16  # times as many elements as those that a first step leaves to the next one


@dataclass(frozen=True)
class ReorderedReduction:
    """Write ``result[kept] = init combined with the elements [kept, reduced]``, in any order.

    ``kept`` and ``reduced`` are the operand's dimensions in order. ``is_merged``: columns of many
    dimensions are one loop even if an index in it takes a division.
    """

    scope: Scope
    monoid: Monoid
    operand: Element
    init: Element
    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    is_merged: bool = False

    def emit(self, write: Write) -> None:
        """Write the loops of all results."""
        dims = self.extents(self.kept)
        trip = math.prod(self.extents(self.reduced))
        if self.scope.settings.is_scalar:
            self._emit_one_by_one(write)
        elif self._has_short_runs:
            self._emit_in_steps(write)
        elif self._is_by_columns and not self._has_few_rows:
            write_columns(self, write)
        elif not (self.is_by_rows or self._has_few_rows):
            self._emit_blocks(dims, write)
        elif self._is_written_out or self._may_be_written_out:
            self._emit_written_out(dims, trip, write)
        else:
            with nest.outer(self.scope, dims, trip) as kept:
                write(kept, (self.value(kept),))

    def _emit_written_out(self, dims: tuple[int, ...], trip: int, write: Write) -> None:
        """Write the results in lanes, each with the code of its elements one after the other; of
        more than a few elements only if that is little code."""
        scope, before = self.scope, self.scope.written()
        loops = nest.flat if scope.is_flat else nest.split
        with loops(scope, dims, trip) as kept:
            write(kept, (self._written_out(kept),))
        loop = scope.last_statement
        assert loop is not None
        if self._is_written_out or sum(1 for _ in every((loop,))) <= _MOST_STATEMENTS:
            return
        scope.forget_after(before)
        with nest.outer(scope, dims, trip) as kept:
            write(kept, (self.value(kept),))

    def _emit_one_by_one(self, write: Write) -> None:
        """Write the results one after the other, without lanes: a loop per dimension, a scalar
        state."""
        scope, monoid = self.scope, self.monoid
        extents = [self.operand.size(d) for d in self.reduced]
        with scope.over(self.extents(self.kept)) as kept:
            state = scope.mutable(monoid.state, self.start())
            with scope.over(extents) as reduced:
                position = dict(zip((*self.kept, *self.reduced), (*kept, *reduced), strict=True))
                value = self.operand.at(*(position[d] for d in range(len(position))))
                element = scope.bind(monoid.lifted(scope.bind(value)))
                scope.assign(state, monoid.combined(state, element))
            write(kept, (scope.bind(monoid.value(state)),))

    @property
    def _has_short_runs(self) -> bool:
        """Return whether a result has short runs of neighbouring elements, and many of them
        apart."""
        settings = self.scope.settings
        is_here = settings.is_fast and settings.has_lanes and not self.scope.is_inside_element
        dims = self.operand.shape.dims
        return is_here and not self.operand.sizes and bool(above_short_runs(dims, self.reduced))

    def _emit_in_steps(self, write: Write) -> None:
        """Write two reductions: along columns to one state per neighbour, then over the
        neighbours."""
        scope, monoid, state = self.scope, self.monoid, self.monoid.state
        above = above_short_runs(self.operand.shape.dims, self.reduced)
        left = tuple(d for d in range(self.operand.shape.rank) if d not in above)
        shape = ArrayShape(state, self.extents(left))
        partials = scope.scratch(state, shape.elements, frozen=True)
        of_states = Monoid(monoid.name, state, state)
        states, operand = self.operand, self.operand
        if monoid.element is not state:
            there = ArrayShape(state, operand.shape.dims)
            states = Element(there, lambda *index: monoid.lifted(scope.bind(operand.at(*index))))
        # The init counts once: the second step has it.
        identity = scalar(ArrayShape(state), monoid.identity)

        def store(kept: tuple[Expr, ...], values: tuple[Expr, ...]) -> None:
            scope.store(partials, ix.linearize(kept, shape.dims), values[0])

        def write_value(kept: tuple[Expr, ...], values: tuple[Expr, ...]) -> None:
            write(kept, (scope.bind(monoid.value(values[0])),))

        columns = ReorderedReduction(scope, of_states, states, identity, left, above, True)
        columns.emit(store)
        init = scalar(ArrayShape(state), self.start())
        number = len(self.kept)
        dims = tuple(range(number)), tuple(range(number, len(left)))
        reader = array_reader(partials, shape)
        ReorderedReduction(scope, of_states, reader, init, *dims).emit(write_value)

    @property
    def _is_by_columns(self) -> bool:
        trip = math.prod(self.extents(self.reduced))
        return not self.operand.sizes and trip > 1 and self.columns()[0] > 1

    @property
    def _has_few_rows(self) -> bool:
        """Return whether columns are so short that states in memory would take as long as they."""
        is_long = self._is_by_columns and self.columns()[0] >= _LANES
        return is_long and self._is_written_out and self.scope.settings.has_lanes

    @property
    def is_by_rows(self) -> bool:
        """Return whether each result has a loop of its own, as :meth:`value` writes it."""
        trip = math.prod(self.extents(self.reduced))
        is_few = math.prod(self.extents(self.kept)) <= _FEW and trip >= 4 * _BLOCK
        return not self._is_by_columns and (bool(self.operand.sizes) or not is_few)

    def value(self, kept: Sequence[Expr]) -> Expr:
        """Write the loop of one result here; return its value."""
        if self._is_written_out:
            return self._written_out(kept)
        state = self.scope.mutable(self.monoid.state, self.start())
        *outer, inner = self._reduced_space()
        with self.scope.over(outer) as position:
            self._combine(state, kept, position, (ix.constant(0), inner))
        return self.scope.bind(self.monoid.value(state))

    def in_strip(self, strip: Strip) -> Array:
        """Write the loops of a strip's results here; return the array of these."""
        return strip_values(self, strip)

    @property
    def _is_written_out(self) -> bool:
        """Return whether each result is an unrolled expression of few elements."""
        return not self.operand.sizes and math.prod(self.extents(self.reduced)) <= nest.FEW

    @property
    def _may_be_written_out(self) -> bool:
        """Return whether there are rows enough for lanes, each shorter than a vector or two."""
        trip, results = (math.prod(self.extents(d)) for d in (self.reduced, self.kept))
        is_static = not self.operand.sizes and self.scope.settings.has_lanes
        return is_static and trip <= WRITTEN_OUT and results >= _LANES

    def _written_out(self, kept: Sequence[Expr]) -> Expr:
        """Return one result, with the loop over its elements unrolled."""
        extents = [ix.value_of(extent) or 0 for extent in self._reduced_space()]
        state = self.start()
        for place in itertools.product(*map(range, extents)):
            element = self.element(kept, [ix.constant(one) for one in place])
            state = self.scope.bind(self.monoid.combined(state, element))
        return self.scope.bind(self.monoid.value(self.scope.bind(state)))

    def start(self) -> Expr:
        """Return the init as a state."""
        return self.monoid.lifted(self.init.at())

    def element(self, kept: Sequence[Expr], space: Sequence[Expr]) -> Expr:
        """Return an element as a state, by the index of a result and one in :meth:`_reduced_space`.

        Index arithmetic undoes the division of a merged index where elements lie in memory.
        """
        extents = self.extents(self.reduced)
        tail = self._merged()
        reduced = (*space[:-1], *ix.delinearize(space[-1], extents[len(extents) - tail :]))
        position = dict(zip((*self.kept, *self.reduced), (*kept, *reduced), strict=True))
        value = self.operand.at(*(position[d] for d in range(len(position))))
        return self.scope.bind(self.monoid.lifted(self.scope.bind(value)))

    def extents(self, dimensions: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.operand.shape.dims[d] for d in dimensions)

    def _merged(self) -> int:
        """Return how many of the last reduced dimensions are collapsed into one loop."""
        if self.operand.sizes:
            return 1
        tail = _trailing(self.reduced, self.operand.shape.rank) or 1
        # Threads of a block share one loop: they divide rather than share a short one.
        if self.scope.settings.has_blocks:
            extents = self.extents(self.reduced)
            while tail < len(extents) and math.prod(extents[len(extents) - tail :]) < _SHARED:
                tail += 1
            return tail
        return tail if self.scope.is_flat else 1

    def columns(self) -> tuple[int, int]:
        """Return (number of neighbouring columns, number of dimensions that they span).

        That is (1, 0) if neighbours in memory belong to one result.
        """
        rank = self.operand.shape.rank
        if rank - 1 in self.reduced:
            return 1, 0
        tail = _trailing(self.kept, rank) if self.is_merged or self.scope.is_flat else 1
        return math.prod(self.extents(self.kept[len(self.kept) - tail :])), tail

    def _reduced_space(self) -> tuple[Expr, ...]:
        """Return the extents of the loops over reduced elements; the last one is for lanes."""
        if self.operand.sizes:
            return tuple(self.operand.size(d) for d in self.reduced) or (ix.constant(1),)
        extents = self.extents(self.reduced)
        tail = self._merged()
        outer = extents[: len(extents) - tail]
        return (*map(ix.constant, outer), ix.constant(math.prod(extents[len(outer) :])))

    def _combine(
        self,
        state: Variable,
        kept: Sequence[Expr],
        outer: Sequence[Expr],
        part: tuple[Expr, Expr],
    ) -> None:
        """Write a loop in lanes over ``part = (first element, count)``, combined into ``state``."""
        scope, (first, count) = self.scope, part
        number = ix.value_of(count)
        # Threads of a block wait for each other less if each has one state.
        has_streams = self.operand.array is not None and scope.settings.has_lanes
        if number is not None and number >= _LONG and has_streams:
            share = number // _STREAMS
            start = self.monoid.identity
            others = [scope.mutable(start.type, start) for _ in range(_STREAMS - 1)]
            states = (state, *others)
            with scope.loop(share, "lanes", states, self.monoid.operator) as step:
                for stream, one in enumerate(states):
                    place = ix.add(first, step, stream * share)
                    self._add(one, kept, (*outer, place))
            for one in others:
                scope.assign(state, self.monoid.combined(state, one))
            first, count = ix.add(first, share * _STREAMS), ix.constant(number % _STREAMS)
            if not number % _STREAMS:
                return
        with scope.loop(count, "lanes", (state,), self.monoid.operator) as step:
            self._add(state, kept, (*outer, ix.add(first, step)))

    def _add(self, state: Variable, kept: Sequence[Expr], space: Sequence[Expr]) -> None:
        element = self.element(kept, space)
        self.scope.assign(state, self.monoid.combined(state, element))

    def _emit_blocks(self, dims: tuple[int, ...], write: Write) -> None:
        """Write partial results of blocks of elements, which threads share, then combine them."""
        scope, monoid = self.scope, self.monoid
        *outer, inner = [ix.value_of(extent) or 1 for extent in self._reduced_space()]
        length = min(inner, _BLOCK)
        per_row = -(-inner // length)
        # Rows shorter than a block are blocks together.
        rows = max(1, _BLOCK // inner)
        groups = -(-math.prod(outer) // rows)
        partials = scope.scratch(monoid.state, math.prod(dims) * groups * per_row)
        blocks = (*dims, groups, per_row)
        with nest.outer(scope, blocks, rows * length) as position:
            *kept, group, part = position
            state = scope.mutable(monoid.state, monoid.identity)
            start = scope.bind(ix.multiply(part, length))
            count = scope.bind(ix.clamp(0, ix.subtract(inner, start), length))
            first = ix.multiply(group, rows)
            left = ix.clamp(0, ix.subtract(math.prod(outer), first), rows)
            with scope.loop(left) as row:
                above = [scope.bind(i) for i in ix.delinearize(ix.add(first, row), outer)]
                self._combine(state, kept, above, (start, count))
            scope.store(partials, ix.linearize(position, blocks), state)
        with nest.outer(scope, dims, groups * per_row) as index:
            total = scope.mutable(monoid.state, self.start())
            with scope.loop(groups * per_row, "lanes", (total,), monoid.operator) as block:
                place = ix.linearize((*index, block), (*dims, groups * per_row))
                scope.assign(total, monoid.combined(total, scope.load(partials, place)))
            write(index, (scope.bind(monoid.value(total)),))


def above_short_runs(dims: tuple[int, ...], reduced: Sequence[int]) -> tuple[int, ...]:
    """Return the reduced dimensions of an array but the last ones, if a result has short runs of
    neighbouring elements in those, and many of them apart; else none."""
    tail = _trailing(reduced, len(dims))
    above = tuple(reduced[: len(reduced) - tail])
    is_short = tail > 0 and math.prod(dims[len(dims) - tail :]) <= _SHORT
    is_often = math.prod(dims[d] for d in above) >= _FEWEST
    return above if is_short and is_often else ()


def _trailing(dimensions: Sequence[int], rank: int) -> int:
    """Count the trailing dimensions of an array that are all in ``dimensions``."""
    found = 0
    while rank - 1 - found in dimensions:
        found += 1
    return found
