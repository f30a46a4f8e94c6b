"""One element of the ops that read at computed places: out-of-range starts are clamped."""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.elemental.data_movement import all_of
from backend_c.ir import index as ix
from backend_c.ir.bounded_elements import resized, smaller_size
from backend_c.ir.element import At, Element, zero
from backend_c.ir.loop_ir import INDEX, Expr
from backend_c.ir.scope import apply
from hlo.types import PRED, ArrayShape

__all__ = ["dynamic_slice", "dynamic_update_slice", "gather"]


def _first(start: Expr, extent: Expr, size: Expr, most: int) -> Expr:
    """A start index, clamped so that a slice of ``size`` fits; ``most`` is where the bounds end."""
    last = ix.clamp(0, ix.subtract(extent, size), most)
    return ix.clamp(0, apply("convert", start, type=INDEX), last)


def _firsts(
    operand: Element, starts: Sequence[Element], windows: Sequence[Expr], sizes: Sequence[int]
) -> list[Expr]:
    """Where windows start that are, or may become, as small as ``sizes``. The starts are scalars,
    or the elements of one vector."""
    places = [start.at() for start in starts if not start.shape.rank]
    for vector in starts if not places else ():
        places = [vector.at(ix.constant(d)) for d in range(vector.shape.dims[0])]
    return [
        _first(start, operand.size(d), windows[d], operand.shape.dims[d] - sizes[d])
        for d, start in enumerate(places)
    ]


def inside(place: Expr, size: Expr) -> list[Expr]:
    """The conditions under which a place, which may be negative, is one of ``size``."""
    most = ix.value_of(size)
    if most is not None:
        ends = ix.constant(0), ix.constant(most - 1)
        return [apply("within", place, *ends, type=PRED)]
    is_first = apply("compare-LE", ix.constant(0), place, type=PRED)
    return [is_first, apply("compare-LT", place, size, type=PRED)]


def dynamic_slice(
    operand: Element, *start_indices: Element, dynamic_slice_sizes: tuple[int, ...]
) -> Element:
    windows = [smaller_size(operand.size(d), size) for d, size in enumerate(dynamic_slice_sizes)]
    firsts = _firsts(operand, start_indices, windows, dynamic_slice_sizes)
    dynamic = operand.shape.dynamic if operand.sizes else ()
    shape = ArrayShape(operand.shape.element_type, dynamic_slice_sizes, dynamic)
    sizes = tuple(windows) if operand.sizes else ()
    return Element(shape, lambda *index: operand.at(*map(ix.add, firsts, index)), sizes)


def dynamic_update_slice(operand: Element, update: Element, *start_indices: Element) -> Element:
    dims, sizes = operand.shape.dims, update.shape.dims
    if 0 in sizes:
        return operand
    windows = [smaller_size(operand.size(d), update.size(d)) for d in range(len(dims))]
    least = [ix.value_of(window) or 0 for window in windows]
    firsts = _firsts(operand, start_indices, windows, least)

    def at(*index: Expr) -> Expr:
        conditions: list[Expr] = []
        position: list[Expr] = []
        for i, first, window, size, extent in zip(index, firsts, windows, sizes, dims, strict=True):
            shifted = ix.subtract(i, first)
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

    windows = [smaller_size(operand.size(d), size) for d, size in enumerate(slice_sizes)]

    def start(batch: Sequence[Expr], component: int) -> Expr:
        position = dict(zip(batch_of_indices, batch))
        if index_vector_dim < indices.rank:
            position[index_vector_dim] = ix.constant(component)
        return start_indices.at(*(position[d] for d in range(indices.rank)))

    def at(*index: Expr) -> Expr:
        batch = [index[d] for d in batch_dims]
        position: list[Expr] = [ix.constant(0)] * operand.shape.rank
        for component, d in enumerate(start_index_map):
            most = operand.shape.dims[d] - slice_sizes[d]
            position[d] = _first(start(batch, component), operand.size(d), windows[d], most)
        for d, source in zip(operand_batching_dims, start_indices_batching_dims, strict=True):
            position[d] = batch[batch_of_indices.index(source)]
        for d, out in zip(window_dims, offset_dims, strict=True):
            position[d] = ix.add(position[d], index[out])
        return operand.at(*position)

    made = ArrayShape(operand.shape.element_type, tuple(dims))
    known = {d: start_indices.size(s) for d, s in zip(batch_dims, batch_of_indices, strict=True)}
    known |= {d: windows[s] for d, s in zip(offset_dims, window_dims, strict=True)}
    single = [windows[d] for d in (*collapsed_slice_dims, *operand_batching_dims)]
    element = Element(made, _unless_nothing(at, single, made))
    return resized(element, [known[d] for d in range(rank)])


def _unless_nothing(at: At, sizes: Sequence[Expr], shape: ArrayShape) -> At:
    """Slices without elements that are collapsed to one are zero, as XLA has it."""
    nothing = zero(shape.element_type)
    if any(ix.value_of(size) == 0 for size in sizes):
        return lambda *index: nothing

    def unless_nothing(*index: Expr) -> Expr:
        value = at(*index)
        for size in sizes:
            if ix.value_of(size) is None:
                is_there = apply("compare-LT", ix.constant(0), size, type=PRED)
                value = apply("select", is_there, value, nothing, type=value.type)
        return value

    return unless_nothing
