"""Write prefix scans by a monoid: cumulative sums, products, maxima, in lanes and by threads.

    result[step] = start combined with the elements of the steps 0 … step

The order of combination depends on shapes alone, so that every run and every number of threads
gives the same bits. Two ways, by where neighbours in memory belong:

    columns   neighbours belong to different scans: a strip of scans in lanes, step by step
    rows      neighbours are steps of one scan. Each element is first combined with the 15 before
              it, in four doublings (Hillis and Steele, Data parallel algorithms, 1986), then 16
              results at once follow from the 16 before them; of blocks of threads, 256

Few scans of many steps are cut into blocks: the totals of all blocks, the scan of the totals, then
each block from the total of those before it (Blelloch, Prefix sums and their applications, 1990).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Array, Expr, Variable
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.reduction.monoids import Monoid
from backend_c.kernels.parts.reduction.running_window import Growth

_LANES = 16  # results that follow from the same number of results before them
_CHUNK = 1 << 10  # steps whose states stay in the first cache
_SHORT = 32  # steps for which lanes do not pay
_STRIP = 1 << 7  # scans side by side
_FEW = 8  # tasks that threads cannot share well
_BLOCK = 1 << 14  # elements of a block: enough to be worth a pass over the totals
# The same of a GPU, whose threads share a task, and take any two of so many results at a time.
_FEW_BLOCKS, _BLOCK_OF_THREADS = 256, 1 << 12
_BLOCK_LANES = (256, 64)

Write = Callable[[tuple[Expr, ...], tuple[Expr, ...]], None]


@dataclass(frozen=True)
class PrefixScan:
    """Write prefix scans along one dimension of ``positions``, from windows that only grow."""

    scope: Scope
    monoid: Monoid
    operand: Element
    init: Element
    growing: Growth
    positions: tuple[int, ...]

    def emit(self, write: Write) -> None:
        """Write the loops of all scans."""
        form = _Columns(self) if self.columns > 1 else _Rows(self)
        scope, steps = self.scope, self.growing.positions
        length = self._block_length(form.strip)
        blocks = -(-steps // length)
        dims = self.outer, -(-self.columns // form.strip)
        carries = None
        if blocks > 1:
            carries = self._carries(form, (*dims, blocks), length)
        with nest.outer(scope, (*dims, blocks), 4 * length * form.strip) as (outer, strip, block):
            part = self._part(strip, form.strip)
            state = scope.local(self.monoid.state, form.strip)
            place = None
            if carries is not None:
                place = self._place(outer, block, blocks)
            self._begin(state, outer, part, carries, place)
            first = ix.multiply(block, length)
            count = scope.bind(ix.clamp(0, ix.subtract(steps, first), length))
            form.scan(state, outer, part, (first, count), write)

    @property
    def outer(self) -> int:
        """Return the number of scans along the dimensions before the scanned one."""
        return math.prod(self.positions[: self.growing.dimension])

    @property
    def columns(self) -> int:
        """Return the number of scans that are neighbours in memory: dimensions after the scanned
        one."""
        return math.prod(self.positions[self.growing.dimension + 1 :])

    def index(self, outer: Expr, position: Expr, column: Expr) -> tuple[Expr, ...]:
        """Return the index of (outer scan, position, column)."""
        d = self.growing.dimension
        above = ix.delinearize(outer, self.positions[:d]) if d else ()
        below = ix.delinearize(column, self.positions[d + 1 :])
        return (*above, position, *below)

    def element(self, outer: Expr, step: Expr, column: Expr) -> Expr:
        """Return the state of the element that enters at a step; the identity if none does.

        The step is asserted to be in bounds, which its form within a block does not show.
        """
        step = self.scope.bounded(step, 0, self.growing.positions - 1)
        position, conditions = self.growing.element(step)
        value = self._lifted(self.index(outer, position, column))
        for condition in conditions:
            there = self.scope.bind(condition)
            value = apply("select", there, value, self.monoid.identity, type=value.type)
        return self.scope.bind(value)

    def result(self, write: Write, outer: Expr, step: Expr, column: Expr, state: Expr) -> None:
        """Store the result of a step, from its state."""
        index = self.index(outer, self.growing.window_position(step), column)
        write(index, (self.scope.bind(self.monoid.value(state)),))

    def _lifted(self, index: Sequence[Expr]) -> Expr:
        return self.scope.bind(self.monoid.lifted(self.scope.bind(self.operand.at(*index))))

    def _part(self, strip: Expr, width: int) -> tuple[Expr, Expr]:
        """Return (first column, number of columns) of a strip."""
        first = self.scope.bind(ix.multiply(strip, width))
        return first, self.scope.bind(ix.clamp(0, ix.subtract(self.columns, first), width))

    def _block_length(self, strip: int) -> int:
        """Choose the number of steps in a block; all of them if there are scans enough for the
        threads."""
        steps = self.growing.positions
        tasks = self.outer * -(-self.columns // strip)
        has_blocks = self.scope.settings.has_blocks
        few = _FEW_BLOCKS if has_blocks else _FEW
        least = max((_BLOCK_OF_THREADS if has_blocks else _BLOCK) // strip, 1)
        return steps if tasks >= few or steps < 2 * least else least

    def _place(self, outer: Expr, block: Expr, blocks: int) -> Expr:
        return ix.multiply(ix.linearize((outer, block), (self.outer, blocks)), self.columns)

    def _begin(
        self,
        state: Array,
        outer: Expr,
        part: tuple[Expr, Expr],
        carries: Array | None,
        place: Expr | None,
    ) -> None:
        """Initialise the states before a block's first step: its carries, or the init."""
        scope, (first, count) = self.scope, part
        with scope.loop(count, "lanes") as lane:
            column = ix.add(first, lane)
            if carries is not None and place is not None:
                scope.store(state, lane, scope.load(carries, ix.add(place, column)))
            else:
                scope.store(state, lane, self.monoid.lifted(self.init.at()))
        # Carries start from states that have these elements already (see _carries).
        if carries is None:
            self._add_before(state, outer, part)

    def _add_before(self, state: Array, outer: Expr, part: tuple[Expr, Expr]) -> None:
        """Combine states with the elements that the first window has before step 0."""
        if not self.growing.before:
            return
        scope, (first, count) = self.scope, part
        with scope.loop(self.growing.before) as number, scope.loop(count, "lanes") as lane:
            position = self.growing.element_before(number)
            index = self.index(outer, position, ix.add(first, lane))
            held = scope.bind(scope.load(state, lane))
            scope.store(state, lane, self.monoid.combined(held, self._lifted(index)))

    def _carries(self, form: _Form, dims: tuple[int, int, int], length: int) -> Array:
        """Write the exclusive scan of the blocks' totals; return the array of carries."""
        scope, monoid, (_, strips, blocks) = self.scope, self.monoid, dims
        carries = scope.scratch(monoid.state, self.outer * blocks * self.columns)
        steps = self.growing.positions
        # The total of the last block is nobody's carry.
        inner = (self.outer, strips, blocks - 1)
        with nest.outer(scope, inner, length * form.strip) as (outer, strip, block):
            part = self._part(strip, form.strip)
            first = ix.multiply(block, length)
            place = self._place(outer, block, blocks)
            form.total(carries, outer, part, (first, ix.constant(length)), place)
        with nest.outer(scope, (self.outer, strips), blocks * form.strip) as (outer, strip):
            part = self._part(strip, form.strip)
            state = scope.local(monoid.state, form.strip)
            self._begin(state, outer, part, None, None)
            with scope.loop(-(-steps // length)) as block, scope.loop(part[1], "lanes") as lane:
                place = ix.add(self._place(outer, block, blocks), part[0], lane)
                held = scope.bind(scope.load(state, lane))
                total = scope.bind(scope.load(carries, place))
                scope.store(state, lane, monoid.combined(held, total))
                scope.store(carries, place, held)
        return carries


class _Form:
    """Write one block of steps: its total, or its scan."""

    strip: int

    def __init__(self, whole: PrefixScan) -> None:
        self._whole, self._scope, self._monoid = whole, whole.scope, whole.monoid

    def total(
        self,
        totals: Array,
        outer: Expr,
        part: tuple[Expr, Expr],
        steps: tuple[Expr, Expr],
        place: Expr,
    ) -> None:
        """Combine all elements of the steps, column by column, and store the totals."""
        raise NotImplementedError

    def scan(
        self,
        state: Array,
        outer: Expr,
        part: tuple[Expr, Expr],
        steps: tuple[Expr, Expr],
        write: Write,
    ) -> None:
        """Write the results of the steps, from the carries in ``state``."""
        raise NotImplementedError


class _Columns(_Form):
    """Write scans whose neighbours in memory belong to other scans: lanes are scans."""

    def __init__(self, whole: PrefixScan) -> None:
        super().__init__(whole)
        self.strip = min(whole.columns, _STRIP)

    def total(
        self,
        totals: Array,
        outer: Expr,
        part: tuple[Expr, Expr],
        steps: tuple[Expr, Expr],
        place: Expr,
    ) -> None:
        scope, (first, count) = self._scope, part
        state = scope.local(self._monoid.state, self.strip)
        with scope.loop(count, "lanes") as lane:
            scope.store(state, lane, self._monoid.identity)
        with scope.loop(steps[1]) as number, scope.loop(count, "lanes") as lane:
            self._advanced(state, outer, ix.add(steps[0], number), (first, lane))
        with scope.loop(count, "lanes") as lane:
            scope.store(totals, ix.add(place, first, lane), scope.load(state, lane))

    def scan(
        self,
        state: Array,
        outer: Expr,
        part: tuple[Expr, Expr],
        steps: tuple[Expr, Expr],
        write: Write,
    ) -> None:
        scope, (first, count) = self._scope, part
        with scope.loop(steps[1]) as number, scope.loop(count, "lanes") as lane:
            step = ix.add(steps[0], number)
            after = self._advanced(state, outer, step, (first, lane))
            self._whole.result(write, outer, step, ix.add(first, lane), after)

    def _advanced(self, state: Array, outer: Expr, step: Expr, place: tuple[Expr, Expr]) -> Expr:
        """Write one step of the scan in a lane; return its state after it."""
        first, lane = place
        element = self._whole.element(outer, step, ix.add(first, lane))
        held = self._scope.bind(self._scope.load(state, lane))
        after = self._scope.bind(self._monoid.combined(held, element))
        self._scope.store(state, lane, after)
        return after


class _Rows(_Form):
    """Write scans whose neighbours in memory are steps of one scan: lanes are steps."""

    strip = 1

    def __init__(self, whole: PrefixScan) -> None:
        super().__init__(whole)
        steps, has_blocks = whole.growing.positions, whole.scope.settings.has_blocks
        fitting = [lanes for lanes in _BLOCK_LANES if has_blocks and lanes <= steps]
        self._lanes = max(fitting, default=_LANES)

    def total(
        self,
        totals: Array,
        outer: Expr,
        part: tuple[Expr, Expr],
        steps: tuple[Expr, Expr],
        place: Expr,
    ) -> None:
        scope, monoid = self._scope, self._monoid
        state = scope.mutable(monoid.state, monoid.identity)
        with scope.loop(steps[1], "lanes", (state,), monoid.operator) as number:
            element = self._whole.element(outer, ix.add(steps[0], number), ix.constant(0))
            scope.assign(state, monoid.combined(state, element))
        scope.store(totals, place, state)

    def scan(
        self,
        state: Array,
        outer: Expr,
        part: tuple[Expr, Expr],
        steps: tuple[Expr, Expr],
        write: Write,
    ) -> None:
        scope, monoid, (first, count) = self._scope, self._monoid, steps
        zero = ix.constant(0)
        carry = scope.mutable(monoid.state, scope.load(state, zero))
        longest = min(ix.bounds(count)[1], self._whole.growing.positions)
        if longest <= _SHORT:
            with scope.loop(count) as number:
                step = ix.add(first, number)
                element = self._whole.element(outer, step, zero)
                scope.assign(carry, monoid.combined(carry, element))
                self._whole.result(write, outer, step, zero, carry)
            return
        size = min(longest, _CHUNK)
        buffers = [scope.local(monoid.state, self._lanes + size) for _ in range(2)]
        # The first elements of a chunk have too few before them: the identity stands for the rest.
        # No doubling writes there, so that it holds for all chunks.
        with scope.loop(self._lanes, "lanes") as lane:
            for buffer in buffers:
                scope.store(buffer, lane, monoid.identity)
        with scope.loop(ix.divide(ix.add(count, size - 1), size)) as chunk:
            start = ix.multiply(chunk, size)
            left = scope.bind(ix.clamp(0, ix.subtract(count, start), size))
            self._doublings(buffers, outer, ix.add(first, start), left)
            base = scope.bind(ix.add(first, start))
            self._chunk(carry, buffers[0], (outer, base, left), write)

    def _doublings(self, buffers: Sequence[Array], outer: Expr, base: Expr, left: Expr) -> None:
        """Write Hillis and Steele's doublings: each element combined with the ``lanes - 1`` before
        it.

        The result is in the first buffer: lanes are a power of four, so that doublings are even.
        """
        scope, monoid = self._scope, self._monoid
        source, target = buffers
        with scope.loop(left, "lanes") as lane:
            element = self._whole.element(outer, ix.add(base, lane), ix.constant(0))
            scope.store(source, ix.add(lane, self._lanes), element)
        reach = 1
        while reach < self._lanes:
            with scope.loop(left, "lanes") as lane:
                earlier = scope.load(source, ix.add(lane, self._lanes - reach))
                later = scope.load(source, ix.add(lane, self._lanes))
                scope.store(target, ix.add(lane, self._lanes), monoid.combined(earlier, later))
            source, target, reach = target, source, 2 * reach

    def _chunk(
        self, carry: Variable, sums: Array, place: tuple[Expr, Expr, Expr], write: Write
    ) -> None:
        """Write the results of a chunk, ``lanes`` at a time, and the carry after it."""
        scope, monoid, (outer, base, left) = self._scope, self._monoid, place
        before = scope.local(monoid.state, self._lanes)
        with scope.loop(self._lanes, "lanes") as lane:
            scope.store(before, lane, carry)

        def results(start: Expr, lanes: Expr) -> None:
            with scope.loop(lanes, "lanes") as lane:
                held = scope.bind(scope.load(before, lane))
                reached = scope.bind(scope.load(sums, ix.add(start, lane, self._lanes)))
                after = scope.bind(monoid.combined(held, reached))
                scope.store(before, lane, after)
                step = ix.add(base, start, lane)
                self._whole.result(write, outer, step, ix.constant(0), after)

        whole = scope.bind(ix.divide(left, self._lanes))
        with scope.loop(whole) as group:
            results(ix.multiply(group, self._lanes), ix.constant(self._lanes))
        # Lanes of a last group that is not full are only in a last chunk: nothing needs its carry.
        results(ix.multiply(whole, self._lanes), scope.bind(ix.modulo(left, self._lanes)))
        scope.assign(carry, scope.load(before, ix.constant(self._lanes - 1)))
