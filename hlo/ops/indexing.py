"""Infer the shapes of ops that read and write at computed indices.

Sources: ``InferGatherShape`` and ``InferScatterShape`` of XLA's ``shape_inference.cc``.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo.ops.constraints import (
    array,
    arrays,
    ascending_dimensions,
    called_on,
    distinct_dimensions,
    one_or_tuple,
    require,
    same_dims,
    scalars,
    still_bounded,
)
from hlo.ops.element_types import require_element_type
from hlo.summary import counted
from hlo.types import PRED, S32, ArrayShape, Shape, TupleShape, bounded
from hlo.walk import Callee

__all__ = ["dynamic_slice", "dynamic_update_slice", "gather", "scatter", "sort", "topk"]


def _starts(operand: ArrayShape, start_indices: Sequence[ArrayShape]) -> None:
    """C1: one integer scalar for each dimension of the operand, all of one type; or one vector of
    them, as older programs have it (XLA's DynamicIndexSplitter)."""
    if len(start_indices) == 1:
        vector = array("C1", start_indices[0], "start index")
        if vector.is_integer and vector.dims == (operand.rank,) and not vector.is_dynamic:
            return
    count = len(start_indices) == operand.rank
    require("C1", count, f"{len(start_indices)} start indices for {operand}")
    for start in start_indices:
        shape = array("C1", start, "start index")
        scalar = shape.is_integer and not shape.rank
        require("C1", scalar, f"start index {start} is not an integer scalar")
        same = shape.element_type is start_indices[0].element_type
        require("C1", same, f"start indices {start} and {start_indices[0]} differ in type")


def dynamic_slice(
    operand: ArrayShape, *start_indices: ArrayShape, dynamic_slice_sizes: tuple[int, ...]
) -> ArrayShape:
    """C1: integer scalars, one for each dimension, or one vector of them; C2: sizes within the
    operand's."""
    source = array("C1", operand)
    _starts(source, start_indices)
    count = len(dynamic_slice_sizes) == source.rank
    require("C2", count, f"{len(dynamic_slice_sizes)} sizes for {source}")
    for size, extent in zip(dynamic_slice_sizes, source.dims, strict=True):
        require("C2", 0 <= size <= extent, f"size {size} exceeds dimension {extent} of {source}")
    dynamic = still_bounded(source, dynamic_slice_sizes)
    return bounded(source.element_type, dynamic_slice_sizes, dynamic)


def dynamic_update_slice(
    operand: ArrayShape, update: ArrayShape, *start_indices: ArrayShape
) -> ArrayShape:
    """C1: integer scalars, one for each dimension, or one vector of them; C2: the update fits into
    the operand."""
    source, part = arrays("C2", (operand, update))
    _starts(source, start_indices)
    alike = source.element_type is part.element_type and source.rank == part.rank
    fits = alike and all(a <= b for a, b in zip(part.dims, source.dims, strict=True))
    require("C2", fits, f"update {part} does not fit into {source}")
    return ArrayShape(source.element_type, source.dims, source.dynamic)


def _index_vector(indices: ArrayShape, index_vector_dim: int, components: int) -> list[int]:
    """C2: index_vector_dim is a dimension, or the one after the last; it has as many elements as
    the index has components. The other dimensions of the indices."""
    require("C2", indices.is_integer, f"indices {indices} are not integers")
    inside = 0 <= index_vector_dim <= indices.rank
    require("C2", inside, f"index_vector_dim={index_vector_dim} of {indices}")
    size = indices.dims[index_vector_dim] if index_vector_dim < indices.rank else 1
    require("C2", size == components, f"indices of {size} components, {components} are mapped")
    return [d for d in range(indices.rank) if d != index_vector_dim]


def gather(
    operand: ArrayShape,
    start_indices: ArrayShape,
    *,
    offset_dims: tuple[int, ...],
    collapsed_slice_dims: tuple[int, ...],
    start_index_map: tuple[int, ...],
    index_vector_dim: int,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool = False,
    operand_batching_dims: tuple[int, ...] = (),
    start_indices_batching_dims: tuple[int, ...] = (),
) -> ArrayShape:
    """C1: dimension numbers are distinct, in range and, but for start_index_map, ascending; C2:
    index vectors; C3: slice sizes fit, at most 1 where collapsed or batching; C4: ascending
    offset_dims, as many as kept slice dimensions; C5: batching dimensions match in size."""
    source, indices = arrays("C1", (operand, start_indices))
    apart = (*collapsed_slice_dims, *operand_batching_dims)
    distinct_dimensions("C1", apart, source.rank, "collapsed and batching dims")
    distinct_dimensions("C1", (*start_index_map, *operand_batching_dims), source.rank, "index map")
    ascending_dimensions("C1", collapsed_slice_dims, "collapsed_slice_dims")
    ascending_dimensions("C1", operand_batching_dims, "operand_batching_dims")
    batch = _index_vector(indices, index_vector_dim, len(start_index_map))
    plain = all(isinstance(size, int) for size in slice_sizes)  # lists in collective-permute
    fits = plain and len(slice_sizes) == source.rank
    require("C3", fits, f"{len(slice_sizes)} slice_sizes for {source}")
    for d, (size, extent) in enumerate(zip(slice_sizes, source.dims, strict=True)):
        limit = min(extent, 1) if d in apart else extent
        require("C3", 0 <= size <= limit, f"slice size {size} of dimension {d} of {source}")
    kept = [d for d in range(source.rank) if d not in apart]
    require(
        "C4", len(kept) == len(offset_dims), f"{len(offset_dims)} offset_dims, {len(kept)} kept"
    )
    rank = len(kept) + len(batch)
    distinct_dimensions("C4", offset_dims, rank, "offset_dims")
    ascending_dimensions("C4", offset_dims, "offset_dims")
    _batching(source, indices, operand_batching_dims, start_indices_batching_dims)
    dims, dynamic = [0] * rank, [False] * rank
    others = [d for d in range(rank) if d not in offset_dims]
    for d, from_ in zip(others, batch, strict=True):
        dims[d] = indices.dims[from_]
        dynamic[d] = bool(indices.dynamic) and indices.dynamic[from_]
    bounds = still_bounded(source, slice_sizes)
    for d, from_ in zip(offset_dims, kept, strict=True):
        dims[d] = slice_sizes[from_]
        dynamic[d] = bounds[from_]
    return bounded(source.element_type, tuple(dims), tuple(dynamic))


def _batching(
    source: ArrayShape, indices: ArrayShape, ours: tuple[int, ...], theirs: tuple[int, ...]
) -> None:
    distinct_dimensions("C5", theirs, indices.rank, "batching dims of the indices")
    require("C5", len(ours) == len(theirs), f"{len(ours)} and {len(theirs)} batching dims")
    for one, other in zip(ours, theirs, strict=True):
        same = source.dims[one] == indices.dims[other]
        require("C5", same, f"batching dims {one} of {source} and {other} of {indices}")


def scatter(
    *operands: ArrayShape,
    update_window_dims: tuple[int, ...],
    inserted_window_dims: tuple[int, ...],
    scatter_dims_to_operand_dims: tuple[int, ...],
    index_vector_dim: int,
    to_apply: Callee[Shape],
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    input_batching_dims: tuple[int, ...] = (),
    scatter_indices_batching_dims: tuple[int, ...] = (),
) -> Shape:
    """C1: N operands, the indices, N updates; dimension numbers distinct, in range and, but for
    scatter_dims_to_operand_dims, ascending; C2: index vectors; C3: updates have the dims of the
    indices and of windows within the operands; C4: to_apply takes 2N scalars and gives N; C5:
    batching dimensions match in size."""
    odd = len(operands) % 2 == 1 and len(operands) >= 3
    given = counted(len(operands), "operand")
    require("C1", odd, f"{given}: not N operands, indices and N updates")
    shapes = arrays("C1", operands)
    half = len(shapes) // 2
    inputs, indices, updates = shapes[:half], shapes[half], shapes[half + 1 :]
    source, update = inputs[0], updates[0]
    same_dims("C1", inputs)
    same_dims("C1", updates)
    apart = (*inserted_window_dims, *input_batching_dims)
    distinct_dimensions("C1", apart, source.rank, "inserted and batching dims")
    mapped = (*scatter_dims_to_operand_dims, *input_batching_dims)
    distinct_dimensions("C1", mapped, source.rank, "scatter_dims_to_operand_dims")
    ascending_dimensions("C1", inserted_window_dims, "inserted_window_dims")
    ascending_dimensions("C1", input_batching_dims, "input_batching_dims")
    batch = _index_vector(indices, index_vector_dim, len(scatter_dims_to_operand_dims))
    kept = [d for d in range(source.rank) if d not in apart]
    distinct_dimensions("C3", update_window_dims, update.rank, "update_window_dims")
    ascending_dimensions("C3", update_window_dims, "update_window_dims")
    counts = len(update_window_dims) == len(kept) and update.rank == len(kept) + len(batch)
    require("C3", counts, f"update {update} has not the windows of {source} at {indices}")
    for d, from_ in zip(update_window_dims, kept, strict=True):
        fits = update.dims[d] <= source.dims[from_]
        require("C3", fits, f"dimension {d} of update {update} exceeds {from_} of {source}")
    others = [d for d in range(update.rank) if d not in update_window_dims]
    for d, from_ in zip(others, batch, strict=True):
        same = update.dims[d] == indices.dims[from_]
        require("C3", same, f"dimension {d} of update {update}, {from_} of {indices}")
    _batching(source, indices, input_batching_dims, scatter_indices_batching_dims)
    elements = scalars(inputs)
    called_on("C4", to_apply, (*elements, *scalars(updates)), elements, folds=True)
    results: list[Shape] = [ArrayShape(s.element_type, s.dims, s.dynamic) for s in inputs]
    return one_or_tuple(results)


def sort(
    *operands: ArrayShape,
    dimensions: tuple[int, ...],
    to_apply: Callee[Shape],
    is_stable: bool = False,
) -> Shape:
    """C1: arrays of the same dims; C2: one dimension of them; C3: to_apply takes two elements of
    each and gives pred."""
    require("C1", bool(operands), "no operands")
    shapes = arrays("C1", operands)
    same_dims("C1", shapes)
    require("C2", len(dimensions) == 1, f"{len(dimensions)} dimensions to sort along")
    distinct_dimensions("C2", dimensions, shapes[0].rank)
    pairs = [element for element in scalars(shapes) for _ in range(2)]
    called_on("C3", to_apply, pairs, (ArrayShape(PRED),))
    return one_or_tuple([bounded(s.element_type, s.dims, s.dynamic) for s in shapes])


def topk(
    operand: ArrayShape, *, k: int, largest: bool = True, is_stable: bool = True
) -> TupleShape:
    """C1: an array of rank >= 1, of ordered elements; C2: 0 <= k <= the last dimension."""
    source = array("C1", operand)
    require_element_type("C1", "topk", source)
    require("C1", source.rank > 0, "topk of a scalar")
    require("C2", 0 <= k <= source.dims[-1], f"k={k} of the last dimension of {source}")
    dims = (*source.dims[:-1], k)
    dynamic = (*source.dynamic[:-1], False) if source.dynamic else ()
    types = (source.element_type, S32)
    return TupleShape(tuple(bounded(one, dims, dynamic) for one in types))
