"""Build one element of the ops that read at computed indices; starts out of range are clamped."""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.elemental.data_movement import all_of
from backend_c.ir import index as ix
from backend_c.ir.bounded_elements import resized, smaller_size
from backend_c.ir.element import At, Element, Patch, zero
from backend_c.ir.loop_ir import INDEX, Constant, Expr
from backend_c.ir.scope import apply
from hlo.types import PRED, ArrayShape

__all__ = ["dynamic_slice", "dynamic_update_slice", "gather"]


def _clamped_start(start: Expr, extent: Expr, size: Expr, most: int) -> Expr:
    """Clamp a start index so that a slice of ``size`` fits; ``most`` bounds it statically."""
    last = ix.clamp(0, ix.subtract(extent, size), most)
    return ix.clamp(0, _as_index(start), last)


def _as_index(start: Expr) -> Expr:
    """Convert a start index to the type INDEX."""
    if isinstance(start, Constant):
        return ix.constant(int(start.value))  # type: ignore[arg-type]
    return apply("convert", start, type=INDEX)


def _clamped_starts(
    operand: Element, starts: Sequence[Element], windows: Sequence[Expr], sizes: Sequence[int]
) -> list[Expr]:
    """Clamp the start indices of windows whose static sizes are at least ``sizes``.

    The starts are scalars, or the elements of one vector.
    """
    start_values = [start.at() for start in starts if not start.shape.rank]
    for vector in starts if not start_values else ():
        start_values = [vector.at(ix.constant(d)) for d in range(vector.shape.dims[0])]
    return [
        _clamped_start(start, operand.size(d), windows[d], operand.shape.dims[d] - sizes[d])
        for d, start in enumerate(start_values)
    ]


def inside(place: Expr, size: Expr) -> list[Expr]:
    """Return the conditions under which an index, which may be negative, is below ``size``."""
    most = ix.value_of(size)
    if most is not None:
        ends = ix.constant(0), ix.constant(most - 1)
        return [apply("within", place, *ends, type=PRED)]
    is_first = apply("compare-LE", ix.constant(0), place, type=PRED)
    return [is_first, apply("compare-LT", place, size, type=PRED)]


def dynamic_slice(
    operand: Element, *start_indices: Element, dynamic_slice_sizes: tuple[int, ...]
) -> Element:
    """result[i] = operand[i + clamp(0, start_indices, operand.dims - dynamic_slice_sizes)]."""
    windows = [smaller_size(operand.size(d), size) for d, size in enumerate(dynamic_slice_sizes)]
    firsts = _clamped_starts(operand, start_indices, windows, dynamic_slice_sizes)
    dynamic = operand.shape.dynamic if operand.sizes else ()
    shape = ArrayShape(operand.shape.element_type, dynamic_slice_sizes, dynamic)
    sizes = tuple(windows) if operand.sizes else ()
    return Element(shape, lambda *index: operand.at(*map(ix.add, firsts, index)), sizes)


def dynamic_update_slice(operand: Element, update: Element, *start_indices: Element) -> Element:
    """result[i] = update[i - start] where that is in bounds, else operand[i].

    start = clamp(0, start_indices, operand.dims - update.dims).
    """
    dims, sizes = operand.shape.dims, update.shape.dims
    # An empty update changes nothing, and has no element that a clamped read could give.
    if 0 in sizes:
        return operand
    windows = [smaller_size(operand.size(d), update.size(d)) for d in range(len(dims))]
    # A bounded update may have no elements: its start is then any index up to the operand's end.
    least = [ix.value_of(window) or 0 for window in windows]
    firsts = _clamped_starts(operand, start_indices, windows, least)

    def at(*index: Expr) -> Expr:
        conditions: list[Expr] = []
        position: list[Expr] = []
        for i, first, window, size, extent in zip(index, firsts, windows, sizes, dims, strict=True):
            shifted = ix.subtract(i, first)
            # An update as long as the operand always starts at 0: there is nothing to clamp or to
            # test.
            if ix.value_of(window) != extent:
                conditions += inside(shifted, window)
                position.append(ix.clamp(0, shifted, size - 1))
            else:
                position.append(i)
        value = update.at(*position)
        if not conditions:
            return value
        replaced = all_of(conditions)
        return apply("select", replaced, value, operand.at(*index), type=value.type)

    patch = None if operand.sizes or update.sizes else Patch(operand, update, tuple(firsts))
    return Element(operand.shape, at, operand.sizes, None, patch)


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
    """result[batch, offset] = operand[clamp(0, start(batch), operand.dims - slice_sizes) + offset].

    start(batch) is the index vector at ``batch``, its components mapped to operand dimensions by
    ``start_index_map``; ``offset`` runs over the slice, without its collapsed dimensions.
    """
    indices = start_indices.shape
    # Dimensions of the result are those of the batch of index vectors, and those of the slices,
    # which ``offset_dims`` places; both in their order.
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

    windows = [smaller_size(operand.size(d), size) for d, size in enumerate(slice_sizes)]

    def start(batch: Sequence[Expr], component: int) -> Expr:
        position = dict(zip(batch_of_indices, batch))
        # Otherwise the vectors have one component, and their dimension is implicit.
        if index_vector_dim < indices.rank:
            position[index_vector_dim] = ix.constant(component)
        return start_indices.at(*(position[d] for d in range(indices.rank)))

    def at(*index: Expr) -> Expr:
        batch = [index[d] for d in batch_dims]
        position: list[Expr] = [ix.constant(0)] * operand.shape.rank
        for component, d in enumerate(start_index_map):
            most = operand.shape.dims[d] - slice_sizes[d]
            position[d] = _clamped_start(start(batch, component), operand.size(d), windows[d], most)
        for d, source in zip(operand_batching_dims, start_indices_batching_dims, strict=True):
            position[d] = batch[batch_of_indices.index(source)]
        for d, out in zip(window_dims, offset_dims, strict=True):
            position[d] = ix.add(position[d], index[out])
        return operand.at(*position)

    shape = ArrayShape(operand.shape.element_type, tuple(dims))
    sizes = {d: start_indices.size(s) for d, s in zip(batch_dims, batch_of_indices, strict=True)}
    sizes |= {d: windows[s] for d, s in zip(offset_dims, window_dims, strict=True)}
    collapsed_sizes = [windows[d] for d in (*collapsed_slice_dims, *operand_batching_dims)]
    element = Element(shape, _zero_if_empty(at, collapsed_sizes, shape))
    return resized(element, [sizes[d] for d in range(rank)])


def _zero_if_empty(at: At, sizes: Sequence[Expr], shape: ArrayShape) -> At:
    """Read zeros where a collapsed slice has no elements, as XLA does."""
    nothing = zero(shape.element_type)
    if any(ix.value_of(size) == 0 for size in sizes):
        return lambda *index: nothing

    def zero_if_empty(*index: Expr) -> Expr:
        value = at(*index)
        for size in sizes:
            if ix.value_of(size) is None:
                is_there = apply("compare-LT", ix.constant(0), size, type=PRED)
                value = apply("select", is_there, value, nothing, type=value.type)
        return value

    return zero_if_empty
