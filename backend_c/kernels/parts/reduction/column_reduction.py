"""Reduce by a monoid along columns: neighbouring elements in memory belong to different results.

On a processor a strip of columns is reduced row by row, its states in the first cache. On a GPU
each thread has a column of some rows. Where columns are too few for the threads, rows are shared,
too, and a second loop combines the partial results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.gpu import RESIDENT_THREADS
from backend_c.ir.loop_ir import INDEX, Apply, Array, Expr, Statement, every, parts
from backend_c.ir.strip import Strip
from hlo.passes.cost import COST

if TYPE_CHECKING:
    from backend_c.kernels.parts.reduction.reordered_reduction import ReorderedReduction

_BLOCK = 1 << 14  # elements of a block: enough to be worth a partial result
_FEW = 32  # strips that threads cannot share well
_STREAMS = 4  # rows that are combined side by side: one addition waits four cycles for another
_STRIP = 1 << 11  # columns whose states stay in the first cache
_LANES = 16  # columns of a vector
_SHUFFLED = 3  # columns that compilers take apart in vectors; four are a vector of their own
_SHARES = 16  # blocks of rows of few columns
_LEAST_ROWS = 16  # elements of a thread's column: what a partial result is worth
_MOST_PARTS = 1 << 12  # partial results of a column, which a block combines
_CHEAP = 8  # operations of an element of which a strip combines several at a time
_SERIAL = 1 << 6  # partial results that one thread combines

Write = Callable[[tuple[Expr, ...], tuple[Expr, ...]], None]


def write_columns(reduction: ReorderedReduction, write: Write) -> None:
    """Write the loops of all results."""
    scope = reduction.scope
    if nest.has_blocks(scope):
        _ColumnsOfThreads(reduction).emit(write)
    else:
        _Columns(reduction).emit(write)


def strip_values(reduction: ReorderedReduction, strip: Strip) -> Array:
    """Write the loops of a strip's results; return the array of these."""
    return _Strip(reduction).values(strip)


class _Whole:
    """Describe a reduction as ``outer`` groups of neighbouring columns, over rows."""

    def __init__(self, reduction: ReorderedReduction) -> None:
        self._whole, self._scope, self._monoid = reduction, reduction.scope, reduction.monoid
        self._columns, self._merged = reduction.columns()
        self._kept = reduction.extents(reduction.kept)
        self._outer = math.prod(self._kept) // self._columns
        self._rows = reduction.extents(reduction.reduced)

    def _kept_index(self, outer: Expr, column: Expr) -> tuple[Expr, ...]:
        """Return the index of a result from its group and its column."""
        above, beside = self._kept[: -self._merged], self._kept[-self._merged :]
        return (*ix.delinearize(outer, above), *ix.delinearize(column, beside))

    def _add_to(self, states: Array, lane: Expr, elements: Sequence[Expr]) -> None:
        """Combine the state of a lane with 1 or _STREAMS elements, a power of two: pairwise."""
        scope, monoid, found = self._scope, self._monoid, list(elements)
        while len(found) > 1:
            pairs = zip(found[::2], found[1::2], strict=True)
            found = [scope.bind(monoid.combined(*pair)) for pair in pairs]
        state = scope.load(states, lane)
        scope.store(states, lane, monoid.combined(state, found[0]))

    def _whole_element(self, kept: Sequence[Expr], row: Expr, rest: Sequence[Expr]) -> Expr:
        """Return the state of the element at a (result index, row)."""
        whole = self._whole
        position = dict(zip((*whole.kept, *whole.reduced), (*kept, row, *rest), strict=True))
        value = whole.operand.at(*(position[d] for d in range(len(position))))
        return self._scope.bind(self._monoid.lifted(self._scope.bind(value)))


class _Columns(_Whole):
    """Write a column reduction for a processor: strips of columns in lanes, row by row."""

    def __init__(self, reduction: ReorderedReduction) -> None:
        super().__init__(reduction)
        # Strips of equal width, in whole vectors, where that is possible.
        width = -(-self._columns // -(-self._columns // _STRIP))
        self._strip = min(self._columns, -(-width // _LANES) * _LANES)
        tasks = self._outer * -(-self._columns // self._strip)
        inner = math.prod(self._rows[1:])
        # Where strips are too few for the threads, blocks of rows are shared, too.
        wanted = 1 if tasks >= _FEW else _SHARES
        least = -(-max(_BLOCK // self._strip, 1) // inner)
        self._length = max(-(-self._rows[0] // wanted), min(least, self._rows[0]))
        self._blocks = -(-self._rows[0] // self._length)

    def emit(self, write: Write) -> None:
        scope, monoid = self._scope, self._monoid
        partials = None
        if self._blocks > 1:
            partials = scope.scratch(monoid.state, math.prod(self._kept) * self._blocks)
        is_long = (self._length, *self._rows[1:])[-1] >= 2 * _LANES
        few = _SHUFFLED if partials else nest.FEW if self._outer >= _FEW else 0
        if self._columns <= few and is_long:
            self._emit_few(partials, write)
        else:
            self._emit_strips(partials, write)
        if partials is not None:
            self._emit_results(partials, write)

    def _emit_strips(self, partials: Array | None, write: Write) -> None:
        """Write the results of strips, or their partial results of blocks of rows."""
        scope, monoid = self._scope, self._monoid
        strips = -(-self._columns // self._strip)
        cost = self._length * math.prod(self._rows[1:]) * self._strip
        with nest.outer(scope, (self._outer, self._blocks, strips), cost) as (outer, block, strip):
            first = scope.bind(ix.multiply(strip, self._strip))
            count = scope.bind(ix.clamp(0, ix.subtract(self._columns, first), self._strip))
            states = self._strip_states(outer, (first, count), block)
            with scope.loop(count, "lanes") as lane:
                column = ix.add(first, lane)
                state = scope.load(states, lane)
                if partials is not None:
                    scope.store(partials, self._place(outer, block, column), state)
                else:
                    kept = self._kept_index(outer, column)
                    write(kept, (scope.bind(monoid.value(scope.bind(state))),))

    def _emit_few(self, partials: Array | None, write: Write) -> None:
        """Write results of few columns, or their partial results: lanes along the last rows, a
        state per column."""
        scope, monoid = self._scope, self._monoid
        cost = self._length * math.prod(self._rows[1:]) * self._columns
        initial = self._whole.start() if partials is None else monoid.identity
        with nest.outer(scope, (self._outer, self._blocks), cost) as (outer, block):
            columns = [self._kept_index(outer, ix.constant(n)) for n in range(self._columns)]
            start = scope.bind(ix.multiply(block, self._length))
            states = [scope.mutable(monoid.state, initial) for _ in columns]
            left = ix.clamp(0, ix.subtract(self._rows[0], start), self._length)
            extents = [left, *map(ix.constant, self._rows[1:])]
            with (
                scope.over(extents[:-1]) as above,
                scope.loop(extents[-1], "lanes", states, monoid.operator) as step,
            ):
                row, *rest = (*above, step)
                row = ix.add(start, row)
                found = [self._whole_element(kept, row, rest) for kept in columns]
                for state, element in zip(states, found, strict=True):
                    scope.assign(state, monoid.combined(state, element))
            for n, (kept, state) in enumerate(zip(columns, states, strict=True)):
                if partials is not None:
                    scope.store(partials, self._place(outer, block, ix.constant(n)), state)
                else:
                    write(kept, (scope.bind(monoid.value(state)),))

    def _emit_results(self, partials: Array, write: Write) -> None:
        """Combine the partial results of the blocks of rows."""
        scope, monoid = self._scope, self._monoid
        with nest.split(scope, (self._outer, self._columns), self._blocks) as (outer, column):
            total = scope.bind(self._whole.start())
            for block in range(self._blocks):
                place = self._place(outer, ix.constant(block), column)
                total = scope.bind(monoid.combined(total, scope.load(partials, place)))
            write(self._kept_index(outer, column), (scope.bind(monoid.value(total)),))

    def _place(self, outer: Expr, block: Expr, column: Expr) -> Expr:
        dims = (self._outer, self._blocks, self._columns)
        return ix.linearize((outer, block, column), dims)

    def _strip_states(self, outer: Expr, part: tuple[Expr, Expr], block: Expr) -> Array:
        """Reduce a block of rows of a strip of columns; return the array of states."""
        scope, monoid, (first, count) = self._scope, self._monoid, part
        states = scope.local(monoid.state, self._strip)
        initial = self._whole.start() if self._blocks == 1 else monoid.identity
        with scope.loop(count, "lanes") as lane:
            scope.store(states, lane, initial)
        start = ix.multiply(block, self._length)
        rows = ix.clamp(0, ix.subtract(self._rows[0], start), self._length)
        together = _STREAMS if self._whole.operand.array is not None else 1

        def combine(base: Expr, number: int, rest: Sequence[Expr]) -> None:
            with scope.loop(count, "lanes") as lane:
                kept = self._kept_index(outer, ix.add(first, lane))
                found = [self._whole_element(kept, ix.add(base, n), rest) for n in range(number)]
                self._add_to(states, lane, found)

        known = ix.value_of(rows)
        if together > 1 and known is not None and known >= together:
            whole = known // together
            with scope.loop(whole) as step, scope.over(self._rows[1:]) as rest:
                base = ix.add(start, ix.multiply(step, together))
                combine(scope.bind(base), together, rest)
            start, rows = ix.add(start, whole * together), ix.constant(known % together)
            if not known % together:
                return states
        with scope.loop(rows) as step, scope.over(self._rows[1:]) as rest:
            combine(scope.bind(ix.add(start, step)), 1, rest)
        return states


class _Strip(_Whole):
    """Write a column reduction in a strip of a kernel that runs along rows across memory."""

    def values(self, strip: Strip) -> Array:
        """Write the loops of the strip's results; return the array of these."""
        scope, monoid = self._scope, self._monoid
        states = scope.local(monoid.state, strip.width)
        with strip.lanes():
            scope.store(states, strip.lane, self._whole.start())
        before = scope.written()
        self._combine(strip, states, 1)
        # The next loads of states wait for the stores before: rather once for several places.
        if strip.rows.length >= _STREAMS and _operations(scope.last_statement) <= _CHEAP:
            scope.forget_after(before)
            self._combine(strip, states, _STREAMS)
        if monoid.is_element:
            return states
        values = scope.local(monoid.element, strip.width, is_opaque=False)
        with strip.lanes():
            state = scope.bind(scope.load(states, strip.lane))
            scope.store(values, strip.lane, monoid.value(state))
        return values

    def _combine(self, strip: Strip, states: Array, together: int) -> None:
        """Write the loops over all places, so many of them together."""
        scope, monoid, length = self._scope, self._monoid, strip.rows.length
        for number, rows in ((together, length - length % together), (1, length % together)):
            if not rows:
                continue
            with strip.places(rows // number) as step:
                start = ix.multiply(step, number)
                base = scope.bind(ix.add(start, length - rows if number == 1 < together else 0))
                with strip.lanes():
                    found = [
                        strip.whole(self._whole.operand, ix.add(base, n)) for n in range(number)
                    ]
                    found = [scope.bind(monoid.lifted(scope.bind(one))) for one in found]
                    self._add_to(states, strip.lane, found)


def _operations(loop: Statement | None) -> int:
    """Return the operations of one iteration of a loop that are no arithmetic of indices."""
    found = every((loop,)) if loop is not None else ()
    return sum(
        COST.get(part.operation, 1)
        for part in parts(found)
        if isinstance(part, Apply) and part.type is not INDEX
    )


class _ColumnsOfThreads(_Whole):
    """Write a column reduction for a GPU: a thread for each column of all rows, or of a share."""

    def __init__(self, reduction: ReorderedReduction) -> None:
        super().__init__(reduction)
        inner = math.prod(self._rows[1:])
        wanted = -(-RESIDENT_THREADS // math.prod(self._kept))
        parts = min(wanted, self._rows[0] * inner // _LEAST_ROWS, _MOST_PARTS)
        self._length = -(-self._rows[0] // max(parts, 1))  # rows of a share
        self._parts = -(-self._rows[0] // self._length)

    def emit(self, write: Write) -> None:
        """Write the loop over columns and shares; of several shares, also that which combines
        them."""
        scope, monoid = self._scope, self._monoid
        partials = None
        if self._parts > 1:
            partials = scope.scratch(monoid.state, math.prod(self._kept) * self._parts)
        dims = self._outer, self._parts, self._columns
        with scope.loop(math.prod(dims), "parallel lanes") as number:
            outer, part, column = map(scope.bind, ix.delinearize(number, dims))
            kept = self._kept_index(outer, column)
            initial = self._whole.start() if partials is None else monoid.identity
            state = scope.mutable(monoid.state, initial)
            start = ix.multiply(part, self._length)
            rows = ix.clamp(0, ix.subtract(self._rows[0], start), self._length)
            with scope.loop(rows) as step, scope.over(self._rows[1:]) as rest:
                element = self._whole_element(kept, ix.add(start, step), rest)
                scope.assign(state, monoid.combined(state, element))
            if partials is None:
                write(kept, (scope.bind(monoid.value(scope.bind(state))),))
            else:
                scope.store(partials, number, state)
        if partials is not None:
            self._combine(partials, write)

    def _combine(self, partials: Array, write: Write) -> None:
        """Combine the shares' partial results: a thread if they are few, else a block of
        threads."""
        scope, monoid, dims = self._scope, self._monoid, (self._outer, self._parts, self._columns)
        is_short = self._parts <= _SERIAL
        loops = nest.flat if is_short else nest.outer
        with loops(scope, (self._outer, self._columns), self._parts) as (outer, column):
            total = scope.mutable(monoid.state, self._whole.start())
            sums = () if is_short else (total,)
            kind = "serial" if is_short else "lanes"
            with scope.loop(self._parts, kind, sums, monoid.operator) as part:
                load = scope.load(partials, ix.linearize((outer, part, column), dims))
                scope.assign(total, monoid.combined(total, load))
            write(self._kept_index(outer, column), (scope.bind(monoid.value(total)),))
