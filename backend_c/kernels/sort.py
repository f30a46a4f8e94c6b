"""Write sort and topk: radix sorts of rows by a known order, else bottom-up stable merge sorts.

By a comparator that :mod:`backend_c.kernels.parts.sorting.orderings` does not know rows are merged:
runs of growing length lie one after the other in a row of workspace; a pass merges them two by two
into the row beside it. A comparator that is no order gives some permutation, and no read out of
bounds. One long row is sorted as chunks in parallel, which are then merged pairwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from backend_c.elemental.data_movement import iota
from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.bounded_elements import smaller_size
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import INDEX, Array, Constant, Expr, Variable
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.reduction.combiner import Combiner, apply_combiner
from backend_c.kernels.parts.sorting.block_merge import FIRST, BlockMerge, Row
from backend_c.kernels.parts.sorting.orderings import Order, order_of
from backend_c.kernels.parts.sorting.radix_sort import RadixSort
from backend_c.kernels.parts.sorting.short_selection import is_short, write_short_selection
from hlo.types import F64, PRED, S32, S64, ArrayShape

__all__ = ["sort", "topk"]

_Index = tuple[Expr, ...]
# before(scope, lhs values, rhs values): whether the left elements must come before the right ones
_Before = Callable[[Scope, Sequence[Expr], Sequence[Expr]], Expr]

_CHUNKS = 8  # of a row, sorted and merged in parallel where there are few rows; a power of two
_SHORT = 1 << 12


def sort(
    *operands: Element,
    dimensions: tuple[int, ...],
    to_apply: Combiner,
    is_stable: bool = False,
    write: Writer,
    block: Scope,
) -> None:
    """Sort rows along a dimension by a comparator: before(a, b) is to_apply(a, b)."""
    (dimension,) = dimensions
    for number, operand in enumerate(operands):
        write.sizes(number, operand.sizes)
    order = order_of(to_apply.computation)
    if order is not None and RadixSort.fits(operands, dimension):
        RadixSort(block, operands, dimension, order).emit(write)
        return

    def before(scope: Scope, lhs: Sequence[Expr], rhs: Sequence[Expr]) -> Expr:
        pairs = [side for pair in zip(lhs, rhs, strict=True) for side in pair]
        (result,) = apply_combiner(scope, to_apply, pairs)
        return result

    _Sort(block, operands, dimension, before).emit(write)


def topk(
    operand: Element,
    *,
    k: int,
    largest: bool = True,
    is_stable: bool = True,
    write: Writer,
    block: Scope,
) -> None:
    """Return the first k of the last dimension in falling order, and their indices.

    Floats are in total order; ``largest=False``: in rising order.
    """
    last = operand.shape.rank - 1
    sizes = (*operand.sizes[:-1], smaller_size(operand.sizes[-1], k)) if operand.sizes else ()
    for number in range(2):
        write.sizes(number, sizes)
    if is_short(block, operand, k):
        write_short_selection(block, operand, k, write, largest=largest)
        return
    indices = iota(iota_dimension=last, shape=ArrayShape(S32, operand.shape.dims))
    if RadixSort.fits((operand,), last):
        order = Order(0, falls=largest, merged=False)
        RadixSort(block, (operand, indices), last, order, k).emit(write)
        return

    def before(scope: Scope, lhs: Sequence[Expr], rhs: Sequence[Expr]) -> Expr:
        keys = scope.bind(_key(lhs[0])), scope.bind(_key(rhs[0]))
        return apply("compare-GT" if largest else "compare-LT", *keys, type=PRED)

    _Sort(block, (operand, indices), last, before, k).emit(write)


def _key(value: Expr) -> Expr:
    """Map a value to an integer of the same order."""
    if not value.type.is_float:
        return value
    return apply("total-order", value, type=S64 if value.type is F64 else S32)


class _Sort:
    """Write one sort; ``keep`` elements of each row are the result."""

    def __init__(
        self,
        scope: Scope,
        operands: Sequence[Element],
        dimension: int,
        before: _Before,
        keep: int | None = None,
    ) -> None:
        self._scope, self._operands, self._dimension = scope, operands, dimension
        self._before = before
        dims = operands[0].shape.dims
        self._bound = dims[dimension]
        self._keep = self._bound if keep is None else keep
        self._others = (*dims[:dimension], *dims[dimension + 1 :])
        self._rows = math.prod(self._others)
        self._extent = operands[0].size(dimension)
        of_one_row = self._rows < _CHUNKS and self._bound >= _SHORT
        # A single long row has no rows to share: eight chunks are sorted by the threads, then
        # merged.
        self._chunks = _CHUNKS if of_one_row else 1
        # Threads of blocks sort short runs, and share the merges of these.
        self._by_blocks = nest.has_blocks(scope) and self._bound > FIRST
        if self._by_blocks:
            self._chunks = -(-self._bound // FIRST)
        self._length = FIRST if self._by_blocks else -(-self._bound // self._chunks)  # of a chunk
        # Each pass doubles the length of the runs.
        self._passes = (self._length - 1).bit_length() if self._length else 0

    def emit(self, write: Writer) -> None:
        """Write the copy to workspace, the sorts of chunks, their merges, and the results."""
        if not (self._rows and self._bound and self._keep):
            return
        arrays = [
            self._scope.scratch(operand.shape.element_type, 2 * self._rows * self._bound)
            for operand in self._operands
        ]
        dims = self._operands[0].shape.dims
        with nest.split(self._scope, dims) as index:
            place = self._place(self._row(index), 0, index[self._dimension])
            for array, operand in zip(arrays, self._operands, strict=True):
                self._scope.store(array, place, operand.at(*index))
        self._sort_chunks(arrays)
        half = self._merge_runs(arrays) if self._by_blocks else self._merge_chunks(arrays)
        d = self._dimension
        with nest.split(self._scope, (*dims[:d], self._keep, *dims[d + 1 :])) as index:
            place = self._place(self._row(index), self._written(half, index[d]), index[d])
            write(index, tuple(self._scope.load(array, place) for array in arrays))

    def _written(self, half: Expr | int, position: Expr) -> Expr | int:
        """Return the half in which a position's element is.

        Beyond the actual size nothing was merged, but all was copied to the first half.
        """
        if isinstance(self._extent, Constant) or half == 0:
            return half
        is_there = apply("compare-LT", position, self._extent, type=PRED)
        half = ix.constant(half) if isinstance(half, int) else half
        return apply("select", is_there, half, ix.constant(0), type=INDEX)

    def _row(self, index: _Index) -> Expr:
        """Return the number of the row that an index is in."""
        d = self._dimension
        return ix.linearize((*index[:d], *index[d + 1 :]), self._others)

    def _place(self, row: Expr, half: Expr | int, position: Expr) -> Expr:
        """Return the offset of a position in workspace, where a row has two halves.

        ``half`` is 0 or the length of a row: where the second half starts.
        """
        return ix.add(ix.multiply(row, 2 * self._bound), half, position)

    def _sort_chunks(self, arrays: Sequence[Array]) -> None:
        """Write the merge sort of each chunk: runs of 1, 2, 4, … elements."""
        scope = self._scope
        work = 4 * self._length * self._passes
        with nest.outer(scope, (self._rows, self._chunks), work) as (row, chunk):
            first = ix.multiply(chunk, self._length)
            last = scope.bind(self._end(ix.add(first, self._length)))
            half = scope.mutable(INDEX, ix.constant(0))
            width = scope.mutable(INDEX, ix.constant(1))
            pairs = scope.mutable(INDEX, ix.constant(-(-self._length // 2)))
            with scope.loop(self._passes):
                start = scope.mutable(INDEX, first)
                with scope.loop(pairs):
                    middle = scope.bind(ix.clamp(0, ix.add(start, width), last))
                    end = scope.bind(ix.clamp(0, ix.add(start, width, width), last))
                    self._merge_pair(arrays, row, half, (start, middle, end))
                    scope.assign(start, end)
                # The result of a pass is in the other half: 0 and the row's length take turns.
                scope.assign(half, ix.subtract(self._bound, half))
                scope.assign(width, ix.add(width, width))
                scope.assign(pairs, ix.divide(ix.add(pairs, 1), 2))

    def _merge_runs(self, arrays: Sequence[Array]) -> int:
        """Write the merges of the runs of all rows; return the half in which the result is."""

        def comes_first(row: Row, left: Expr, right: Expr) -> Expr:
            last = ix.constant(self._bound - 1)
            rhs, lhs = (self._loaded(arrays, row, side, last) for side in (right, left))
            return self._before(self._scope, rhs, lhs)

        def merge(
            row: Row, lefts: tuple[Expr, Expr], rights: tuple[Expr, Expr], into: Expr, count: Expr
        ) -> Variable:
            return self._merge(arrays, row, (lefts, rights), into, count)

        merges = (self._end, comes_first, merge)
        made = BlockMerge(self._scope, self._rows, self._bound, *merges)
        # Each pass wrote to the other half: after an odd number of them runs lie in the second.
        return made.emit(self._passes % 2 * self._bound)

    def _merge_chunks(self, arrays: Sequence[Array]) -> Expr | int:
        """Write the merges of all chunks of a row; return the half in which the result is."""
        scope, half = self._scope, self._passes % 2 * self._bound
        if self._chunks == 1:
            return half
        source = scope.mutable(INDEX, ix.constant(half))
        width = scope.mutable(INDEX, ix.constant(self._length))
        dims = self._rows, self._chunks // 2
        with scope.loop(self._chunks.bit_length() - 1):
            with nest.outer(scope, dims, 4 * self._bound) as (row, pair):
                start = scope.mutable(INDEX, ix.constant(0))
                # The start of a pair is pair * 2 * width, by additions: index expressions multiply
                # by constants only.
                with scope.loop(pair):
                    scope.assign(start, ix.add(start, width, width))
                first, middle, end = (
                    scope.bind(self._end(ix.add(start, *[width] * n))) for n in range(3)
                )
                self._merge_pair(arrays, row, source, (first, middle, end))
            scope.assign(source, ix.subtract(self._bound, source))
            scope.assign(width, ix.add(width, width))
        return source

    def _end(self, position: Expr) -> Expr:
        """Clamp a position to the actual size."""
        return ix.clamp(0, position, self._extent)

    def _merge_pair(
        self,
        arrays: Sequence[Array],
        row: Expr,
        half: Variable,
        run: tuple[Expr, Expr, Expr],
    ) -> None:
        """Write the merge of two sorted runs, start to middle and to end, into the other half."""
        start, middle, end = run
        runs = (start, middle), (middle, end)
        self._merge(arrays, (row, half), runs, start, ix.subtract(end, start))

    def _merge(
        self,
        arrays: Sequence[Array],
        place: Row,
        runs: tuple[tuple[Expr, Expr], tuple[Expr, Expr]],
        start: Expr,
        count: Expr,
    ) -> Variable:
        """Write ``count`` elements of the merge of two sorted runs, from ``start`` on, into the
        other half.

        Return the left run's position after them. One element per iteration, without branches: the
        right one if the left run is used up or the right element must come before the left
        (strictly, which makes the merge stable).
        """
        scope, (row, half), ((first, middle), (other, end)) = self._scope, place, runs
        left, right = scope.mutable(INDEX, first), scope.mutable(INDEX, other)
        into = scope.bind(self._place(row, ix.subtract(self._bound, half), start))
        # What lies behind the runs is of no use, and threads of a GPU may not meet there.
        last = ix.subtract(end, 1) if self._by_blocks else ix.constant(self._bound - 1)
        with scope.loop(count) as step:
            lhs, rhs = (self._loaded(arrays, place, side, last) for side in (left, right))
            is_before = self._before(scope, rhs, lhs)
            is_left_done = apply("compare-GE", left, middle, type=PRED)
            is_right_there = apply("compare-LT", right, end, type=PRED)
            prefers_right = apply("or", is_left_done, is_before)
            takes_right = scope.bind(apply("and", is_right_there, prefers_right))
            for array, one, other in zip(arrays, lhs, rhs, strict=True):
                value = apply("select", takes_right, other, one, type=one.type)
                scope.store(array, ix.add(into, step), value)
            taken = scope.bind(apply("convert", takes_right, type=INDEX))
            scope.assign(right, ix.add(right, taken))
            scope.assign(left, ix.add(left, ix.subtract(1, taken)))
        return left

    def _loaded(self, arrays: Sequence[Array], row: Row, position: Expr, last: Expr) -> list[Expr]:
        """Return the elements at a position, or at ``last`` if its run is at its end."""
        inside = self._place(*row, ix.clamp(0, position, last))
        return [self._scope.bind(self._scope.load(array, inside)) for array in arrays]
