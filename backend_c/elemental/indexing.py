"""One element of the ops that read at computed places: out-of-range starts are clamped."""

from __future__ import annotations

from collections.abc import Sequence

from backend_c import index as ix
from backend_c.element import At, Element
from backend_c.elemental.data_movement import all_of
from backend_c.loop_ir import INDEX, Constant, Expr
from backend_c.scope import apply
from hlo.types import PRED, ArrayShape

__all__ = ["dynamic_slice", "dynamic_update_slice", "gather"]


def _first(start: Expr, extent: int, size: int) -> Expr:
    """A start index, clamped so that a slice of ``size`` fits."""
    return ix.clamp(0, apply("convert", start, type=INDEX), extent - size)


def dynamic_slice(
    operand: Element, *start_indices: Element, dynamic_slice_sizes: tuple[int, ...]
) -> Element:
    dims = operand.shape.dims
    firsts = [
        _first(start.at(), extent, size)
        for start, extent, size in zip(start_indices, dims, dynamic_slice_sizes, strict=True)
    ]
    shape = ArrayShape(operand.shape.element_type, dynamic_slice_sizes)
    return Element(shape, lambda *index: operand.at(*map(ix.add, firsts, index)))


def dynamic_update_slice(operand: Element, update: Element, *start_indices: Element) -> Element:
    dims, sizes = operand.shape.dims, update.shape.dims
    if 0 in sizes:
        return operand
    firsts = [
        _first(start.at(), extent, size)
        for start, extent, size in zip(start_indices, dims, sizes, strict=True)
    ]

    def at(*index: Expr) -> Expr:
        conditions: list[Expr] = []
        position: list[Expr] = []
        for i, first, size, extent in zip(index, firsts, sizes, dims, strict=True):
            shifted = ix.subtract(i, first)
            if size < extent:
                limits = ix.constant(0), ix.constant(size - 1)
                conditions.append(apply("within", shifted, *limits, type=PRED))
            position.append(ix.clamp(0, shifted, size - 1) if size < extent else i)
        value = update.at(*position)
        if not conditions:
            return value
        inside = all_of(conditions)
        return apply("select", inside, value, operand.at(*index), type=value.type)

    return Element(operand.shape, at, operand.sizes)


def gather(
    operand: Element,
    start_indices: Element,
    *,
    offset_dims: tuple[int, ...],
    collapsed_slice_dims: tuple[int, ...],
    start_index_map: tuple[int, ...],
    index_vector_dim: int,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool = False,
    operand_batching_dims: tuple[int, ...] = (),
    start_indices_batching_dims: tuple[int, ...] = (),
) -> Element:
    indices = start_indices.shape
    batch_of_indices = [d for d in range(indices.rank) if d != index_vector_dim]
    rank = len(offset_dims) + len(batch_of_indices)
    batch_dims = [d for d in range(rank) if d not in offset_dims]
    window_dims = [
        d
        for d in range(operand.shape.rank)
        if d not in collapsed_slice_dims and d not in operand_batching_dims
    ]
    dims = [0] * rank
    for d, source in zip(batch_dims, batch_of_indices, strict=True):
        dims[d] = indices.dims[source]
    for d, source in zip(offset_dims, window_dims, strict=True):
        dims[d] = slice_sizes[source]

    def start(batch: Sequence[Expr], component: int) -> Expr:
        position = dict(zip(batch_of_indices, batch))
        if index_vector_dim < indices.rank:
            position[index_vector_dim] = ix.constant(component)
        return start_indices.at(*(position[d] for d in range(indices.rank)))

    def at(*index: Expr) -> Expr:
        batch = [index[d] for d in batch_dims]
        position: list[Expr] = [ix.constant(0)] * operand.shape.rank
        for component, d in enumerate(start_index_map):
            extent, size = operand.shape.dims[d], slice_sizes[d]
            position[d] = _first(start(batch, component), extent, size)
        for d, source in zip(operand_batching_dims, start_indices_batching_dims, strict=True):
            position[d] = batch[batch_of_indices.index(source)]
        for d, out in zip(window_dims, offset_dims, strict=True):
            position[d] = ix.add(position[d], index[out])
        return operand.at(*position)

    sizes: tuple[Expr, ...] = ()
    dynamic: tuple[bool, ...] = ()
    if start_indices.sizes:
        known = {d: start_indices.sizes[s] for d, s in zip(batch_dims, batch_of_indices)}
        sizes = tuple(known.get(d, ix.constant(dims[d])) for d in range(rank))
        bounded = {d: indices.dynamic[s] for d, s in zip(batch_dims, batch_of_indices)}
        dynamic = tuple(bounded.get(d, False) for d in range(rank))
    shape = ArrayShape(operand.shape.element_type, tuple(dims), dynamic)
    single = (*collapsed_slice_dims, *operand_batching_dims)
    return Element(shape, _unless_nothing(at, [slice_sizes[d] for d in single], shape), sizes)


def _unless_nothing(at: At, sizes: Sequence[int], shape: ArrayShape) -> At:
    """Slices without elements that are collapsed to one are zero, as XLA has it."""
    zero = Constant(shape.element_type, 0)
    return at if 0 not in sizes else lambda *index: zero
