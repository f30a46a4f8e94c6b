"""Write scatter: a copy of the operands, into which the updates are folded.

Updates are folded in order, a window at a time; or, for exact sums, in rows of the result: a window
dimension as long as the operand's is a column of a row, and what is left of the updates decides the
row. A window out of bounds is dropped as a whole.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field

from backend_c.elemental.data_movement import all_of
from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import INDEX, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.reduction.combiner import Combiner
from backend_c.kernels.parts.scatter.block_groups import Rows, fold, has_groups
from backend_c.kernels.parts.scatter.grouped_updates import GroupedUpdates
from backend_c.kernels.parts.scatter.ordered_updates import OrderedUpdates, is_fold, is_in, shares
from backend_c.kernels.parts.scatter.private_copies import fold_in_copies, monoid_of_copies
from hlo.types import PRED

__all__ = ["scatter"]

_SHORT_WINDOW = 16  # elements that take less time than a branch that is not foreseen

_Index = tuple[Expr, ...]


def scatter(
    *operands: Element,
    update_window_dims: tuple[int, ...],
    inserted_window_dims: tuple[int, ...],
    scatter_dims_to_operand_dims: tuple[int, ...],
    index_vector_dim: int,
    to_apply: Combiner,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    input_batching_dims: tuple[int, ...] = (),
    scatter_indices_batching_dims: tuple[int, ...] = (),
    write: Writer,
    block: Scope,
) -> None:
    """result[start + offset] = to_apply(result[start + offset], update), on a copy of the operand.

    start is the index vector of the update's scatter dimensions, mapped to operand dimensions by
    ``scatter_dims_to_operand_dims``; offset runs over ``update_window_dims``. Sums of floats are
    exact, but in ``fast`` numerics.
    """
    arity = len(operands) // 2
    inputs, indices, updates = operands[:arity], operands[arity], operands[arity + 1 :]
    for number, operand in enumerate(inputs):
        write.sizes(number, operand.sizes)
    dims = inputs[0].shape.dims
    if 0 in dims:
        return
    not_in_window = {*inserted_window_dims, *input_batching_dims}
    kept = [d for d in range(len(dims)) if d not in not_in_window]
    geometry = _Geometry(
        inputs[0],
        indices,
        updates[0],
        dict(zip(kept, update_window_dims, strict=True)),
        {d: component for component, d in enumerate(scatter_dims_to_operand_dims)},
        dict(zip(input_batching_dims, scatter_indices_batching_dims, strict=True)),
        index_vector_dim,
    )
    rows = geometry.rows()
    if is_fold(block, inputs, to_apply) and has_groups(rows, block):
        fold(block, rows, (inputs, updates), to_apply, write)
        return
    monoid = monoid_of_copies(block, rows, inputs, to_apply)
    if monoid is not None:
        fold_in_copies(block, rows, inputs[0], updates[0], monoid, write)
        return
    if is_fold(block, inputs, to_apply):
        in_order = OrderedUpdates(block, inputs, updates, to_apply, write)
        in_order.start()
        if updates[0].shape.elements:
            _InOrder(block, geometry, in_order).emit()
        in_order.finish()
        return
    # Elements that no update meets keep the operand's value.
    with nest.flat(block, dims) as index:
        write(index, (inputs[0].at(*index),))
    GroupedUpdates(block, rows, inputs[0], updates[0]).emit(write)


@dataclass(frozen=True)
class _Geometry:
    """Map the dimensions of operand, indices and updates of one scatter.

    From the operand's dimensions to those of the updates (``window``), to components of index
    vectors (``component``), and to dimensions of the indices (``batching``).
    """

    operand: Element
    indices: Element
    update: Element
    window: dict[int, int]
    component: dict[int, int]
    batching: dict[int, int]
    index_vector_dim: int

    def rows(self) -> Rows:
        """Return the scatter as rows of updates that meet rows of the result."""
        dims, update_dims = self.operand.shape.dims, self.update.shape.dims
        # Whole rows: the window covers the dimension, so its start can only be 0.
        columns = [d for d, u in self.window.items() if update_dims[u] == dims[d] > 1]
        if self.operand.sizes or self.update.sizes:
            columns = []  # a window may be longer than the actual size
        others = [d for d in range(len(dims)) if d not in columns]
        of_columns = [self.window[d] for d in columns]
        apart = [u for u in range(len(update_dims)) if u not in of_columns]
        position_dims = [update_dims[u] for u in apart]
        row_dims = [dims[d] for d in others]
        targets = math.prod(row_dims)

        def key(position: Expr) -> Expr:
            place = dict(zip(apart, ix.delinearize(position, position_dims)))
            index, conditions = self._row(place)
            row = ix.linearize([index[d] for d in others], row_dims)
            if not conditions:
                return row
            end = ix.constant(targets)
            return apply("select", all_of(conditions), row, end, type=INDEX)

        def source(position: Expr, column: _Index) -> _Index:
            place = dict(zip(apart, ix.delinearize(position, position_dims)))
            place |= dict(zip(of_columns, column, strict=True))
            return tuple(place[u] for u in range(len(update_dims)))

        def target(row: Expr, column: _Index) -> _Index:
            index = dict(zip(others, ix.delinearize(row, row_dims)))
            index |= dict(zip(columns, column, strict=True))
            return tuple(index[d] for d in range(len(dims)))

        lengths = tuple(dims[d] for d in columns)
        return Rows(math.prod(position_dims), targets, lengths, key, source, target)

    def _row(self, place: dict[int, Expr]) -> tuple[list[Expr], list[Expr]]:
        """Return the operand's index of an update, and the conditions under which its window
        counts.

        A window dimension that ``place`` lacks is a column: its index is 0.
        """
        starts, conditions = self.starts(place)
        index: list[Expr] = []
        for d, (start, extent) in enumerate(zip(starts, self.operand.shape.dims, strict=True)):
            offset = self.window.get(d)
            # Rows are computed before they are left out: the start has to be a place.
            inside = ix.clamp(0, start, ix.subtract(extent, self._size(d)))
            within = ix.constant(0) if offset is None else place.get(offset, ix.constant(0))
            index.append(ix.add(inside, within))
        return index, [*self._update_exists(place), *conditions]

    def starts(self, place: dict[int, Expr]) -> tuple[list[Expr], list[Expr]]:
        """Return the start of an update's window in the operand, and the conditions that it counts.

        Unlike gather's, a window is not clamped, but dropped if it is not entirely inside.
        ``place`` has the index of at least those dimensions of the updates that are no windows'.
        """
        batch = self._batch(place)
        conditions: list[Expr] = []
        starts: list[Expr] = []
        for d, extent in enumerate(self.operand.shape.dims):
            size, start = self._size(d), self._start(d, batch)
            last, (least, greatest) = ix.subtract(extent, size), ix.bounds(start)
            if d in self.component and (least < 0 or greatest > ix.bounds(last)[0]):
                conditions.append(apply("within", start, ix.constant(0), last, type=PRED))
            if self.operand.sizes:
                end = ix.add(start, size)
                conditions.append(apply("compare-LE", end, self.operand.size(d), type=PRED))
            starts.append(start)
        return starts, conditions

    def _size(self, d: int) -> Expr:
        """Return the size of the window in a dimension of the operand."""
        return self.update.size(self.window[d]) if d in self.window else ix.constant(1)

    def is_whole(self, d: int) -> bool:
        """Return whether the window covers a dimension, so that its start can only be 0."""
        size = ix.value_of(self._size(d))
        return size == self.operand.shape.dims[d] and not self.operand.sizes

    def _batch(self, place: dict[int, Expr]) -> dict[int, Expr]:
        """Return the index into the index vectors, without ``index_vector_dim``."""
        window = set(self.window.values())
        theirs = [u for u in range(self.update.shape.rank) if u not in window]
        ours = [d for d in range(self.indices.shape.rank) if d != self.index_vector_dim]
        return {d: place[u] for d, u in zip(ours, theirs, strict=True)}

    def _start(self, d: int, batch: dict[int, Expr]) -> Expr:
        """Return the window's start in a dimension: an index vector's component, a batch index,
        or 0."""
        if d in self.batching:
            return batch[self.batching[d]]
        if d not in self.component:
            return ix.constant(0)
        position = batch | {self.index_vector_dim: ix.constant(self.component[d])}
        vector = self.indices.at(*(position[i] for i in range(self.indices.shape.rank)))
        return apply("convert", vector, type=INDEX)

    def _update_exists(self, place: dict[int, Expr]) -> list[Expr]:
        """Return the conditions that an index is within the actual sizes of the updates."""
        if not self.update.sizes:
            return []
        return [apply("compare-LT", at, self.update.size(u), type=PRED) for u, at in place.items()]


@dataclass
class _InOrder:
    """Write the fold of all updates in row-major order, as a loop nest over their dimensions."""

    scope: Scope
    geometry: _Geometry
    fold: OrderedUpdates
    shared: int | None = field(init=False)  # the operand's dimension that threads share
    last: int = field(init=False)  # dimension of the updates that is no window's; -1 if none

    def __post_init__(self) -> None:
        window = self.geometry.window.values()
        rank = self.geometry.update.shape.rank
        self.last = max((u for u in range(rank) if u not in window), default=-1)
        self.shared = self._shared()

    def _shared(self) -> int | None:
        """Choose the operand's dimension that threads share; None if there is none.

        That is the updates' first dimension, of which threads then walk only a part, or the
        longest.
        """
        geometry, dims = self.geometry, self.geometry.operand.shape.dims

        def is_known(d: int) -> bool:
            """Return whether the window's start is known outside the loop over its dimension."""
            after = d not in geometry.window or geometry.window[d] > self.last
            return after or geometry.is_whole(d)

        known = [d for d in range(len(dims)) if is_known(d) and dims[d] > 1]
        outermost = [d for d in known if geometry.window.get(d) == 0 and self.last > 0]
        return max(outermost or known, key=lambda d: dims[d], default=None)

    def _is_serial(self) -> bool:
        """Return whether threads have nothing to share, or would share little: each walks all
        updates and skips those of others, which processors do not foresee."""
        if self.shared is None:
            return True
        sizes = [self.geometry.update.shape.dims[u] for u in self.geometry.window.values()]
        return self.shared not in self.geometry.window and math.prod(sizes) < _SHORT_WINDOW

    def emit(self) -> None:
        """Write the nest."""
        shape = self.geometry.operand.shape
        extent = 1 if self.shared is None else shape.dims[self.shared]
        work = 0 if self._is_serial() else 2 * self.geometry.update.shape.elements
        with shares(self.scope, extent, work) as share:
            self._over(0, {}, share)

    def _over(self, u: int, place: dict[int, Expr], share: tuple[Expr, Expr] | None) -> None:
        """Write the loops over the updates' dimensions from ``u`` on."""
        if u > self.last:
            self._window(place, share)
            return
        first, count = self._part(u, None, share)
        with self.scope.loop(count) as i:
            self._over(u + 1, place | {u: ix.add(first, i)}, share)

    def _part(
        self, u: int, start: Expr | None, share: tuple[Expr, Expr] | None
    ) -> tuple[Expr, Expr]:
        """Return (first index, count) of an updates' dimension within a thread's share."""
        size = self.geometry.update.size(u)
        if share is None or self.shared is None or self.geometry.window.get(self.shared) != u:
            return ix.constant(0), size
        begins, ends = share
        if not self.geometry.is_whole(self.shared):
            assert start is not None
            most = self.geometry.update.shape.dims[u]
            begins, ends = (
                self.scope.bind(ix.clamp(0, ix.clamp(0, ix.subtract(end, start), most), size))
                for end in share
            )
        return begins, self.scope.bind(ix.subtract(ends, begins))

    def _window(self, place: dict[int, Expr], share: tuple[Expr, Expr] | None) -> None:
        """Write the fold of one window, if it is in bounds."""
        geometry, scope = self.geometry, self.scope
        starts, conditions = geometry.starts(place)
        starts = [scope.bind(start) for start in starts]
        if share is not None and self.shared is not None and self.shared not in geometry.window:
            conditions += is_in(starts[self.shared], share)
        with scope.when(all_of(conditions)) if conditions else nullcontext():
            self._in_window(self.last + 1, place, starts, share)

    def _in_window(
        self,
        u: int,
        place: dict[int, Expr],
        starts: list[Expr],
        share: tuple[Expr, Expr] | None,
    ) -> None:
        """Write the loops over the window's dimensions from ``u`` on, the innermost in lanes."""
        geometry, update = self.geometry, self.geometry.update.shape
        if u == update.rank:
            source = tuple(place[v] for v in range(update.rank))
            target = list(starts)
            for d, v in geometry.window.items():
                # A window that covers the dimension can only start at 0.
                start = ix.constant(0) if geometry.is_whole(d) else starts[d]
                target[d] = ix.add(start, place[v])
            self.fold.meet(tuple(target), source)
            return
        if u < update.rank - 1 and self._is_contiguous(u):
            rest = update.dims[u:]
            with self.scope.loop(math.prod(rest), "lanes") as offset:
                index = dict(enumerate(ix.delinearize(offset, rest), u))
                self._in_window(update.rank, place | index, starts, share)
            return
        of = next(d for d, v in geometry.window.items() if v == u)
        first, count = self._part(u, starts[of], share)
        with self.scope.loop(count, "lanes" if u == update.rank - 1 else "serial") as i:
            self._in_window(u + 1, place | {u: ix.add(first, i)}, starts, share)

    def _is_contiguous(self, u: int) -> bool:
        """Return whether the updates' dimensions from ``u`` on are the operand's last ones, whole.

        One loop then runs over them all.
        """
        geometry = self.geometry
        rank, update_rank = geometry.operand.shape.rank, geometry.update.shape.rank
        return all(
            geometry.window.get(d) == v and geometry.is_whole(d) and d != self.shared
            for d, v in zip(range(rank - update_rank + u, rank), range(u, update_rank))
        )
