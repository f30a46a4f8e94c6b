"""Evaluate ops whose indices are data: dynamic slices, gather, scatter; sort and top-k."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.values import Array, zeros_of
from hlo.walk import Callee
from interp.algorithms import stable_sort
from interp.algorithms.index_vectors import along, clamped, index_vectors
from interp.algorithms.scatter_updates import ScatterDimensions, combined, targets

__all__ = ["dynamic_slice", "dynamic_update_slice", "gather", "scatter", "sort", "topk"]


def dynamic_slice(
    operand: Array, *start_indices: Array, dynamic_slice_sizes: tuple[int, ...]
) -> Array:
    """Take a window of ``dynamic_slice_sizes``; its start is clamped so that it lies inside. In a
    bounded dimension that is shorter than the window it ends there."""
    return operand[_window(operand, start_indices, dynamic_slice_sizes)]


def dynamic_update_slice(operand: Array, update: Array, *start_indices: Array) -> Array:
    """Replace a window of the operand; its start is clamped so that it lies inside. In a bounded
    dimension that is shorter than the update, the rest of the update is dropped."""
    # A copy: values are shared, by tuples, constants and the caller's arguments.
    result = np.array(operand)
    inside = update[tuple(map(slice, operand.shape))]
    result[_window(operand, start_indices, inside.shape)] = inside
    return result


def _window(
    operand: Array, start_indices: tuple[Array, ...], sizes: tuple[int, ...]
) -> tuple[slice, ...]:
    """Compute the slices of a clamped window; its start indices are scalars or one vector."""
    starts = [start for one in start_indices for start in one.reshape(-1)]
    window = []
    for start, extent, size in zip(starts, operand.shape, sizes, strict=True):
        first = min(max(int(start), 0), max(extent - size, 0))
        window.append(np.s_[first : first + size])
    return tuple(window)


def gather(
    operand: Array,
    start_indices: Array,
    *,
    offset_dims: tuple[int, ...],
    collapsed_slice_dims: tuple[int, ...],
    start_index_map: tuple[int, ...],
    index_vector_dim: int,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool = False,
    operand_batching_dims: tuple[int, ...] = (),
    start_indices_batching_dims: tuple[int, ...] = (),
) -> Array:
    """Take one slice of the operand per index vector; each start is clamped so that it lies inside.
    In a bounded dimension that is shorter than the slice it ends there; of an empty one it is
    zeros."""
    del indices_are_sorted
    starts, batch_dims = index_vectors(start_indices, index_vector_dim)
    rank = len(batch_dims) + len(offset_dims)
    batch_axes = [axis for axis in range(rank) if axis not in offset_dims]
    dims, along_batch = [1] * rank, [1] * rank
    for axis, size in zip(batch_axes, batch_dims, strict=True):
        dims[axis] = along_batch[axis] = size
    sizes = tuple(map(min, slice_sizes, operand.shape))  # smaller where a bounded operand is
    gone = {*collapsed_slice_dims, *operand_batching_dims}
    kept = [dimension for dimension in range(operand.ndim) if dimension not in gone]
    for axis, dimension in zip(offset_dims, kept, strict=True):
        dims[axis] = sizes[dimension]
    # However large the other dimensions are.
    if 0 in dims or not operand.size or any(sizes[dimension] == 0 for dimension in gone):
        return zeros_of(dims, operand.dtype)
    index: list[Array] = [np.zeros([1] * rank, np.int64) for _ in sizes]
    for component, dimension in enumerate(start_index_map):
        last = operand.shape[dimension] - sizes[dimension]
        index[dimension] = clamped(starts[..., component], last).reshape(along_batch)
    for dimension, batching in zip(operand_batching_dims, start_indices_batching_dims, strict=True):
        # ``batch_axes`` leaves out the dimension of the index vectors, which may come before.
        axis = batch_axes[batching - (batching > index_vector_dim)]
        index[dimension] = along(axis, rank, operand.shape[dimension])
    for axis, dimension in zip(offset_dims, kept, strict=True):
        index[dimension] = index[dimension] + along(axis, rank, sizes[dimension])
    return np.broadcast_to(operand[tuple(index)], dims)


def scatter(
    *operands: Array,
    update_window_dims: tuple[int, ...],
    inserted_window_dims: tuple[int, ...],
    scatter_dims_to_operand_dims: tuple[int, ...],
    index_vector_dim: int,
    to_apply: Callee[Any],
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    input_batching_dims: tuple[int, ...] = (),
    scatter_indices_batching_dims: tuple[int, ...] = (),
) -> Any:
    """Combine each element of an update window with the operand's element, in row-major order; a
    window that does not lie inside is skipped. There are N operands, the indices, and N updates."""
    del indices_are_sorted, unique_indices
    count = len(operands) // 2
    values, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    if not updates[0].size:  # however large the other dimensions are
        return values if count > 1 else values[0]
    dimensions = ScatterDimensions(
        update_window_dims,
        inserted_window_dims,
        scatter_dims_to_operand_dims,
        index_vector_dim,
        input_batching_dims,
        scatter_indices_batching_dims,
    )
    offset, inside = targets(values[0].shape, indices, updates[0].shape, dimensions)
    flat = combined(
        tuple(value.reshape(-1) for value in values),
        offset[inside],
        tuple(update[inside] for update in updates),
        to_apply,
    )
    results = tuple(result.reshape(values[0].shape) for result in flat)
    return results if count > 1 else results[0]


def sort(
    *operands: Array,
    dimensions: tuple[int, ...],
    to_apply: Callee[Any],
    is_stable: bool = False,
) -> Any:
    """Sort all operands alike along one dimension, always stably. ``to_apply`` tests whether the
    left of two rows comes first: its parameters are lhs 0, rhs 0, lhs 1, rhs 1, ..."""
    del is_stable
    if not operands[0].size:  # however large the other dimensions are
        return operands if len(operands) > 1 else operands[0]
    (dimension,) = dimensions
    rows = tuple(np.moveaxis(operand, dimension, -1) for operand in operands)
    order = stable_sort.sorting_order(rows, to_apply)
    ordered = (np.take_along_axis(row, order, -1) for row in rows)
    results = tuple(np.moveaxis(row, -1, dimension) for row in ordered)
    return results if len(operands) > 1 else results[0]


def topk(operand: Array, *, k: int, largest: bool = True, is_stable: bool = True) -> Any:
    """Return the first k elements of the last dimension in (descending) order, floats in total
    order, and their indices as s32; of equal ones the lower index comes first."""
    del is_stable
    if not operand.size:  # however large the other dimensions are
        dims = (*operand.shape[:-1], min(k, operand.shape[-1]))
        return np.empty(dims, operand.dtype), np.empty(dims, np.int32)
    order = stable_sort.ranking(operand, descending=largest)[..., :k]
    return np.take_along_axis(operand, order, -1), order.astype(np.int32)
