"""Apply scatter's updates to their targets, in order, in few vectorised steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.values import Array
from hlo.walk import Callee
from interp.algorithms.index_vectors import along, index_vectors, within
from interp.algorithms.monoid_folds import EXTREMES, UFUNCS, extreme_at
from interp.exact.conversion import type_of
from interp.exact.sums import segment_sum


@dataclass(frozen=True, slots=True)
class ScatterDimensions:
    """The dimension numbers of a scatter: its attributes of the same names."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    index_vector_dim: int
    input_batching_dims: tuple[int, ...]
    scatter_indices_batching_dims: tuple[int, ...]


def targets(
    operand_dims: tuple[int, ...],
    indices: Array,
    update_dims: tuple[int, ...],
    dimensions: ScatterDimensions,
) -> tuple[Array, Array]:
    """Compute, for each element of the updates, the linear offset of its operand element, and
    whether it is applied: only if its whole window lies inside the operand."""
    rank = len(update_dims)
    vectors, batch_dims = index_vectors(indices, dimensions.index_vector_dim)
    batch_axes = [axis for axis in range(rank) if axis not in dimensions.update_window_dims]
    along_batch = [1] * rank
    for axis, size in zip(batch_axes, batch_dims, strict=True):
        along_batch[axis] = size
    gone = {*dimensions.inserted_window_dims, *dimensions.input_batching_dims}
    kept = [dimension for dimension in range(len(operand_dims)) if dimension not in gone]
    window_axis = dict(zip(kept, dimensions.update_window_dims, strict=True))
    component = {d: k for k, d in enumerate(dimensions.scatter_dims_to_operand_dims)}
    batching = dict(
        zip(dimensions.input_batching_dims, dimensions.scatter_indices_batching_dims, strict=True)
    )
    offset, inside = np.zeros(update_dims, np.int64), np.ones(along_batch, np.bool_)
    for d, extent in enumerate(operand_dims):
        offset *= extent
        size = update_dims[window_axis[d]] if d in window_axis else 1
        if d in component:
            start, fits = within(vectors[..., component[d]].reshape(along_batch), extent - size)
            # May wrap around, for an index far out of bounds; then `fits` is false.
            offset += start
            inside &= fits
        elif size > extent and d not in batching:  # a bounded dimension has less than its bound
            inside &= False
        if d in batching:
            axis = batch_axes[batching[d] - (batching[d] > dimensions.index_vector_dim)]
            offset += along(axis, rank, extent)
        if d in window_axis:
            offset += along(window_axis[d], rank, size)
    return offset, np.broadcast_to(inside, update_dims)


def combined(
    operands: tuple[Array, ...],
    offsets: Array,
    updates: tuple[Array, ...],
    to_apply: Callee[Any],
) -> tuple[Array, ...]:
    """Apply all updates in order, ``operands[offset] = to_apply(operands[offset], update)``, to
    one-dimensional operands; return the results. Float sums are exact and rounded once."""
    results = tuple(np.array(operand) for operand in operands)
    monoid = to_apply.monoid if len(operands) == 1 else None
    element_type = type_of(operands[0])
    if monoid == "add" and element_type.is_inexact:
        touched, segment_ids = np.unique(offsets, return_inverse=True)
        results[0][touched] = _sums(updates[0], segment_ids, results[0][touched])
    # ufunc.at adds up repeated offsets, which `results[offsets] += updates` would not.
    elif element_type.is_integer and element_type.bits >= 8 and monoid is not None:
        UFUNCS[monoid].at(results[0], offsets, updates[0])
    elif element_type.is_float and monoid in EXTREMES:
        results[0][...] = extreme_at(monoid, results[0], offsets, updates[0])
    else:
        _in_rounds(results, offsets, updates, to_apply)
    return results


def _sums(values: Array, segment_ids: Array, init: Array) -> Array:
    if init.dtype.kind == "c":
        total = np.empty_like(init)
        total.real = _sums(values.real, segment_ids, init.real)
        total.imag = _sums(values.imag, segment_ids, init.imag)
        return total
    return segment_sum(values, segment_ids, len(init), init, type_of(init))


def _in_rounds(
    results: tuple[Array, ...],
    offsets: Array,
    updates: tuple[Array, ...],
    to_apply: Callee[Any],
) -> None:
    """Apply the k-th update of every target in round k, in place: as many rounds as the most
    updates of one target."""
    if not offsets.size:
        return
    by_target = np.argsort(offsets, kind="stable")
    ordered = offsets[by_target]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    turn = np.arange(len(ordered)) - np.repeat(starts, np.diff(starts, append=len(ordered)))
    by_turn = by_target[np.argsort(turn, kind="stable")]
    ends = np.cumsum(np.bincount(turn))
    for first, end in zip(np.concatenate(([0], ends[:-1])), ends, strict=True):
        chosen = by_turn[first:end]
        place = offsets[chosen]
        current = (result[place] for result in results)
        new = to_apply(*current, *(update[chosen] for update in updates))
        for result, value in zip(results, new if isinstance(new, tuple) else (new,), strict=True):
            result[place] = value
