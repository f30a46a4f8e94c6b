"""Write scatter: a copy of the operands, into whose rows the updates that meet them are folded.

A window dimension as long as the operand's is a column of a row; what is left of the updates
decides the row. A window out of bounds is left out as a whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from backend_c.elemental.data_movement import all_of
from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import INDEX, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.combiner import Combiner
from backend_c.kernels.parts.grouped_updates import GroupedUpdates, Rows
from hlo.types import PRED

__all__ = ["scatter"]

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
    exact.
    """
    arity = len(operands) // 2
    inputs, indices, updates = operands[:arity], operands[arity], operands[arity + 1 :]
    for number, operand in enumerate(inputs):
        write.sizes(number, operand.sizes)
    dims = inputs[0].shape.dims
    if 0 in dims:
        return
    # Elements that no update meets keep the operand's value.
    with nest.flat(block, dims, arity) as index:
        write(index, tuple(operand.at(*index) for operand in inputs))
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
    GroupedUpdates(block, geometry.rows(), inputs, updates, to_apply).emit(write)


@dataclass(frozen=True)
class _Geometry:
    """Describe where updates lie in the operand.

    Maps from the operand's dimensions to those of the updates (``window``), to components of index
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
        """Return the operand's index of an index of the updates, and when the window there counts.

        A window dimension that ``place`` lacks is a column: its index is 0.
        """
        batch = self._batch(place)
        conditions = self._update_exists(place)
        index: list[Expr] = []
        for d, extent in enumerate(self.operand.shape.dims):
            offset = self.window.get(d)
            size = self.update.size(offset) if offset is not None else ix.constant(1)
            position: Expr = ix.constant(0)
            if d in self.component:
                start = self._start(batch, self.component[d])
                # Unlike gather, scatter does not clamp: a window that is not entirely inside is
                # dropped.
                last, (least, greatest) = ix.subtract(extent, size), ix.bounds(start)
                if least < 0 or greatest > ix.bounds(last)[0]:
                    conditions.append(apply("within", start, ix.constant(0), last, type=PRED))
                position = ix.clamp(0, start, last)
            if d in self.batching:
                position = batch[self.batching[d]]
            if self.operand.sizes:
                end = ix.add(position, size)
                conditions.append(apply("compare-LE", end, self.operand.size(d), type=PRED))
            if offset is not None:
                position = ix.add(position, place.get(offset, ix.constant(0)))
            index.append(position)
        return index, conditions

    def _batch(self, place: dict[int, Expr]) -> dict[int, Expr]:
        """Return the index of the index vectors, without the dimension of the vectors."""
        window = set(self.window.values())
        theirs = [u for u in range(self.update.shape.rank) if u not in window]
        ours = [d for d in range(self.indices.shape.rank) if d != self.index_vector_dim]
        return {d: place[u] for d, u in zip(ours, theirs, strict=True)}

    def _start(self, batch: dict[int, Expr], component: int) -> Expr:
        """Return a component of an index vector."""
        position = batch | {self.index_vector_dim: ix.constant(component)}
        vector = self.indices.at(*(position[d] for d in range(self.indices.shape.rank)))
        return apply("convert", vector, type=INDEX)

    def _update_exists(self, place: dict[int, Expr]) -> list[Expr]:
        """Return the conditions that an update of bounded size is there."""
        if not self.update.sizes:
            return []
        return [apply("compare-LT", at, self.update.size(u), type=PRED) for u, at in place.items()]
