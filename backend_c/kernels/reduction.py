"""Write reduce: rows by one loop each, columns in vector lanes; sums of floats are exact.

An exact sum is added up in f64 beside the sum of magnitudes, in any order; where the error bound
does not decide the rounding (a few outputs in ten thousand), a second loop adds the same elements
into a superaccumulator.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Array, Expr, Variable
from backend_c.ir.scope import Scope
from backend_c.ir.strip import Strip
from backend_c.kernels.parts.reduction.arg_extremum import ArgExtremum
from backend_c.kernels.parts.reduction.combiner import apply_combiner
from backend_c.kernels.parts.reduction.exact_column_sums import ColumnSums
from backend_c.kernels.parts.reduction.exact_lane_sums import Add, LaneSums, Over
from backend_c.kernels.parts.reduction.exact_sum import exact_sum, exact_sum_in_blocks
from backend_c.kernels.parts.reduction.monoids import monoid_of
from backend_c.kernels.parts.reduction.ordered_words import in_words
from backend_c.kernels.parts.reduction.reordered_reduction import (
    ReorderedReduction,
    above_short_runs,
)
from backend_c.kernels.parts.reduction.short_row_folds import ShortRowFold
from hlo.passes.index_paths import WRITTEN_OUT
from hlo.types import F64, ArrayShape
from hlo.walk import Callee, called

__all__ = ["reduce"]

# A sum of more elements is added up in blocks: beyond, the bound of a plain f64 sum leaves too many
# roundings in doubt (a hundredth of them at 2**15 normal numbers).
_LONG = 1 << 14
_BLOCK = 1 << 12
_LANES, _FEWEST_LANES = 64, 8  # results whose short sums are added up side by side
_MOST_STEPS = 256  # instructions of a fold that is written out


def reduce(
    *operands: Element,
    dimensions: tuple[int, ...],
    to_apply: Callee[Element | tuple[Element, ...]],
    write: Writer | Strip | None,
    block: Scope,
) -> Element | None:
    """result[kept] = fold of to_apply over operand[kept, reduced], from init, in row-major order.

    A sum of floats is exact instead: it needs no order. Without a writer the result is a reader,
    which writes the loop over ``reduced`` where ``kept`` is known: for kernels that run by rows.
    So it is with a strip, for those along rows across memory.
    """
    arity = len(operands) // 2
    reduction = _Reduction(block, operands[:arity], operands[arity:], dimensions, to_apply)
    if isinstance(write, Strip):
        return reduction.in_strip(write)
    if write is None:
        return reduction.reader()
    sizes = tuple(operands[0].size(d) for d in reduction.kept)
    for number in range(arity):
        write.sizes(number, sizes if operands[0].sizes else ())
    dims = tuple(operands[0].shape.dims[d] for d in reduction.kept)
    if 0 in dims:
        return None
    inputs, inits = operands[:arity], operands[arity:]
    if reordered := reduction.reordered():
        in_words(reordered).emit(write)
    elif short := reduction.side_by_side():
        short.emit(write)
    # Written out before ArgExtremum is asked: its search for the place of the extremum is a branch
    # and loads at computed places for each result, which take longer than a few comparisons.
    elif reduction.is_short and not reduction.is_exact_sum:
        reduction.written_out(dims, write)
    elif best := ArgExtremum.of(block, inputs, inits, dimensions, to_apply):
        best.emit(write)
    elif reduction.is_exact_sum:
        reduction.exact(dims, write)
    else:
        reduction.in_order(dims, write)
    return None


class _Reduction:
    """Write one reduce."""

    def __init__(
        self,
        scope: Scope,
        inputs: Sequence[Element],
        inits: Sequence[Element],
        dimensions: tuple[int, ...],
        to_apply: Callee[Element | tuple[Element, ...]],
    ) -> None:
        self.scope, self.inputs, self.inits, self.to_apply = scope, inputs, inits, to_apply
        rank = inputs[0].shape.rank
        self.reduced = sorted(dimensions)
        self.kept = [d for d in range(rank) if d not in dimensions]
        self.extents = tuple(inputs[0].size(d) for d in self.reduced)
        dims = inputs[0].shape.dims
        self.trip = 1
        for d in self.reduced:
            self.trip *= dims[d]

    def reordered(self) -> ReorderedReduction | None:
        """Return the reduction by a monoid, to be done in any order; None if the order matters."""
        element_type = self.inputs[0].shape.element_type
        # A vector has four times as many states of 8 bits as of 32, if bytes are loaded: what is
        # computed is as wide as what it is computed of.
        is_dense = self.scope.settings.has_lanes and self.inputs[0].array is not None
        name, is_fast = self.to_apply.monoid, self.scope.settings.is_fast
        monoid = monoid_of(name, element_type, is_fast=is_fast, is_dense=is_dense)
        if monoid is None or len(self.inputs) > 1:
            return None
        (operand,), (init,) = self.inputs, self.inits
        kept, reduced = tuple(self.kept), tuple(self.reduced)
        return ReorderedReduction(self.scope, monoid, operand, init, kept, reduced)

    @property
    def is_exact_sum(self) -> bool:
        """Return whether the reduction is a sum of floats or complex numbers."""
        element_type = self.inputs[0].shape.element_type
        of_floats = element_type.is_inexact
        return self.to_apply.monoid == "add" and len(self.inputs) == 1 and of_floats

    def reader(self) -> Element:
        """Return a reader of results, which writes a result's loop at the first read of its
        index."""
        (operand,) = self.inputs
        reordered = self.reordered()
        dims = tuple(operand.shape.dims[d] for d in self.kept)
        written: dict[Expr, Expr] = {}

        def at(*kept: Expr) -> Expr:
            # By the number of the row: its index has other names once it is bound to variables.
            row = self.scope.folded(ix.linearize(kept, dims))
            if row not in written:
                written[row] = loop(kept)
            return written[row]

        def loop(kept: Sequence[Expr]) -> Expr:
            with self.scope.hoisted(*kept):
                if reordered is not None:
                    return reordered.value(kept)
                if self.is_exact_sum:
                    return self.scope.bind(self._sum(kept, "serial"))
                return self._fold(kept)[0]

        return Element(ArrayShape(operand.shape.element_type, dims), at)

    def in_strip(self, strip: Strip) -> Element:
        """Return a reader of a strip's results."""
        (operand,), (init,), scope, reordered = (
            self.inputs,
            self.inits,
            self.scope,
            self.reordered(),
        )
        assert not self.is_exact_sum or reordered is not None, "exact sums are no strips"

        def folded() -> Array:
            state = scope.local(init.shape.element_type, strip.width, is_opaque=False)
            with strip.lanes():
                scope.store(state, strip.lane, init.at())
            with strip.places() as place, strip.lanes(is_straight=self._is_straight):
                element = scope.bind(strip.whole(operand, place))
                before = scope.bind(scope.load(state, strip.lane))
                (value,) = apply_combiner(scope, self.to_apply, (before, element))
                scope.store(state, strip.lane, value)
            return state

        dims = tuple(operand.shape.dims[d] for d in self.kept)
        shape = ArrayShape(operand.shape.element_type, dims)
        return strip.filled(
            shape, folded if reordered is None else lambda: reordered.in_strip(strip)
        )

    def index(self, kept: Sequence[Expr], reduced: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return the operand's index from the result's and one in the reduced dimensions."""
        position = dict(zip(self.kept, kept)) | dict(zip(self.reduced, reduced))
        return tuple(position[d] for d in range(len(position)))

    @property
    def is_short(self) -> bool:
        """Return whether a fold is unrolled to one expression, with results in lanes."""
        is_static = not any(operand.sizes for operand in self.inputs)
        steps = self.trip * len(self.to_apply.computation.instructions)
        few = self.trip <= WRITTEN_OUT and steps <= _MOST_STEPS and self._is_straight
        return is_static and few and self.scope.settings.has_lanes

    def side_by_side(self) -> ShortRowFold | None:
        """Return the fold along short rows, neighbouring ones in lanes; None of others."""
        if self.is_exact_sum or not (self._is_straight and self.scope.settings.has_lanes):
            return None
        if self.reduced != [self.inputs[0].shape.rank - 1]:
            return None
        fold = ShortRowFold(self.scope, self.inputs, self.inits, self.to_apply)
        return fold if fold.is_here else None

    @property
    def _is_straight(self) -> bool:
        """Return whether the computation has no branches, loops or folds of its own."""
        return not any(map(called, self.to_apply.computation.instructions))

    def written_out(self, dims: tuple[int, ...], write: Writer) -> None:
        """Write an unrolled fold in row-major order, the init first."""

        def results(kept: tuple[Expr, ...]) -> None:
            state = [init.at() for init in self.inits]
            for reduced in itertools.product(*map(range, self._reduced_dims())):
                index = self.index(kept, [ix.constant(one) for one in reduced])
                elements = [self.scope.bind(operand.at(*index)) for operand in self.inputs]
                state = apply_combiner(self.scope, self.to_apply, (*state, *elements))
            write(kept, tuple(state))

        nest.write_map(self.scope, dims, self.trip, results)

    def in_order(self, dims: tuple[int, ...], write: Writer) -> None:
        """Write the fold in row-major order, the init first: right for any computation."""
        with nest.outer(self.scope, dims, self.trip) as kept:
            write(kept, self._fold(kept))

    def _fold(self, kept: Sequence[Expr]) -> tuple[Variable, ...]:
        """Write the loop of one result of each operand; return the states after it."""
        state = [self.scope.mutable(init.shape.element_type, init.at()) for init in self.inits]
        with self.scope.over(self.extents) as reduced:
            index = self.index(kept, reduced)
            elements = [self.scope.bind(operand.at(*index)) for operand in self.inputs]
            # All results are computed before any state changes: each may depend on all of it.
            values = apply_combiner(self.scope, self.to_apply, (*state, *elements))
            for variable, value in zip(state, values, strict=True):
                self.scope.assign(variable, value)
        return tuple(state)

    def exact(self, dims: tuple[int, ...], write: Writer) -> None:
        """Write the exact sum of the init and the elements of each result, rounded once.

        One by one on a target without lanes. Else in five ways: written out where results have few
        elements, by columns where neighbours in memory belong to different results, or few of them
        to one, in blocks where sums are long, else one loop per result.
        """
        if self.scope.settings.is_scalar:
            with self.scope.over(dims) as kept:
                write(kept, (self._sum(kept, "serial"),))
            return
        results = math.prod(dims)
        # A single sum is shared by the threads, as there are no other results to share.
        first = "parallel" if results == 1 and self.trip >= self.scope.settings.grain else "serial"
        # Blocks and strips need extents that are known now.
        is_static = not self.inputs[0].sizes
        if is_static and self._has_short_sums(dims):
            self._short_sums(dims, write)
            return
        if is_static and self._by_columns(dims):
            sums = ColumnSums(self.scope, dims, self._reduced_dims(), self._element, self.inits[0])
            sums.emit(write)
            return
        if is_static and (above := self._above_runs()):
            self._exact_runs(dims, above, write)
            return
        if is_static and self.trip >= _LONG and results * self.trip >= self.scope.settings.grain:
            self._exact_blocks(dims, write, first)
            return
        with nest.outer(self.scope, dims, self.trip) as kept:
            write(kept, (self._sum(kept, first),))

    def _by_columns(self, dims: tuple[int, ...]) -> bool:
        """Return whether neighbours in memory belong to different results."""
        last = self.inputs[0].shape.rank - 1
        return not self._is_wide and last in self.kept and dims[-1] > 1 and self.trip > 1

    @property
    def _is_wide(self) -> bool:
        """Return whether the elements are added in accumulators, one result at a time."""
        element_type = self.inputs[0].shape.element_type
        return element_type.is_complex or element_type is F64

    def _has_short_sums(self, dims: tuple[int, ...]) -> bool:
        """Return whether each of many neighbouring results has a few elements, whose sum is written
        out: a row, or a vector of three."""
        is_here = self.scope.settings.has_lanes and not self.scope.is_inside_element
        is_many = bool(dims) and dims[-1] >= _FEWEST_LANES
        return is_here and is_many and not self._is_wide and 1 < self.trip <= nest.FEW

    def _short_sums(self, dims: tuple[int, ...], write: Writer) -> None:
        """Write short sums with neighbouring results in lanes."""
        (operand,), (init,), scope = self.inputs, self.inits, self.scope
        width = min(dims[-1], _LANES)
        with nest.strips(scope, dims, width, self.trip * width) as (outer, first, count):

            def kept(lane: Expr) -> tuple[Expr, ...]:
                return (*outer, ix.add(first, lane))

            def addends(over: Over, add: Add) -> None:
                with over(None) as lane:
                    for reduced in itertools.product(*map(range, self._reduced_dims())):
                        place = [ix.constant(one) for one in reduced]
                        add(lane, scope.bind(operand.at(*self.index(kept(lane), place))), None)

            most = ix.constant(self.trip + 1)
            sums = LaneSums(scope, lambda lane: init.at(), count, width, most, addends, short=True)
            sums.emit(operand.shape.element_type, lambda lane, value: write(kept(lane), (value,)))

    def _above_runs(self) -> tuple[int, ...]:
        """Return the reduced dimensions above short runs of neighbours (:func:`above_short_runs`),
        if those are added by columns; else none."""
        # A group norm, f32[4,32,32,32,8] by (1, 2, 4): 1,024 runs of 8 neighbours for each result.
        # In lanes along a run, 8 of them are filled; along the columns of all groups, every one.
        if self._is_wide or nest.has_blocks(self.scope) or self._run <= 1:
            return ()
        return above_short_runs(self.inputs[0].shape.dims, self.reduced)

    @property
    def _run(self) -> int:
        """Return the number of neighbours that belong to one result."""
        return math.prod(self.inputs[0].shape.dims[max(self.kept, default=-1) + 1 :])

    def _exact_runs(self, dims: tuple[int, ...], above: Sequence[int], write: Writer) -> None:
        """Write sums of runs of columns: all dimensions after the last of ``above`` are columns."""
        shape = self.inputs[0].shape
        left = [d for d in range(shape.rank) if d not in above]
        outer = [d for d in left if d < above[-1]]
        inner = [shape.dims[d] for d in left[len(outer) :]]
        kept = (*(shape.dims[d] for d in outer), math.prod(inner))

        def at(columns: Sequence[Expr], rows: Sequence[Expr]) -> Expr:
            index = *columns[:-1], *ix.delinearize(columns[-1], inner)
            position = dict(zip(left, index, strict=True)) | dict(zip(above, rows, strict=True))
            return self.inputs[0].at(*(position[d] for d in range(shape.rank)))

        rows = tuple(shape.dims[d] for d in above)
        sums = ColumnSums(self.scope, kept, rows, at, self.inits[0], run=self._run, dims=dims)
        sums.emit(write)

    def _reduced_dims(self) -> tuple[int, ...]:
        """Return the extents of the reduced dimensions."""
        return tuple(self.inputs[0].shape.dims[d] for d in self.reduced)

    def _element(self, kept: Sequence[Expr], reduced: Sequence[Expr]) -> Expr:
        """Return an element of the operand."""
        return self.inputs[0].at(*self.index(kept, reduced))

    def _sum(self, kept: Sequence[Expr], first: str) -> Expr:
        """Return the exact sum of one result; ``first`` is the kind of its outermost loop."""
        (operand,), (init,) = self.inputs, self.inits

        def addends(sums: Sequence[Variable], add: Callable[[Expr], None]) -> None:
            outermost = first if sums else "serial"
            with self.scope.over(self.extents, sums, outermost) as reduced:
                add(operand.at(*self.index(kept, reduced)))

        return exact_sum(self.scope, operand.shape.element_type, init.at(), self.trip, addends)

    def _exact_blocks(self, dims: tuple[int, ...], write: Writer, kind: str) -> None:
        """Write long sums, in blocks of the innermost reduced elements."""
        (operand,), (init,) = self.inputs, self.inits
        scope, extents = self.scope, [operand.shape.dims[d] for d in self.reduced]
        outer = math.prod(extents[:-1])
        length = min(extents[-1], _BLOCK)
        per_row = -(-extents[-1] // length)

        with nest.outer(scope, dims, self.trip) as kept:

            def addends(block: Expr, sums: Sequence[Variable], add: Callable[[Expr], None]) -> None:
                row, part = ix.delinearize(block, (outer, per_row))
                above = [scope.bind(i) for i in ix.delinearize(row, extents[:-1])]
                start = scope.bind(ix.multiply(part, length))
                left = ix.clamp(0, ix.subtract(extents[-1], start), length)
                with scope.loop(left, "lanes" if sums else "serial", sums) as step:
                    index = self.index(kept, (*above, ix.add(start, step)))
                    add(operand.at(*index))

            total = exact_sum_in_blocks(
                scope,
                operand.shape.element_type,
                init.at(),
                (outer * per_row, length),
                kind,
                addends,
            )
            write(kept, (total,))
