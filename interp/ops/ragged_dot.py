"""Evaluate ragged-dot: a dot whose rows, or contracted elements, form groups of given sizes."""

from __future__ import annotations

import numpy as np

from hlo.types import ArrayShape
from hlo.values import Array
from interp.ops.contraction import contracted, others

__all__ = ["ragged_dot"]


def ragged_dot(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    *,
    shape: ArrayShape,
    lhs_contracting_dims: tuple[int, ...] = (),
    rhs_contracting_dims: tuple[int, ...] = (),
    lhs_batch_dims: tuple[int, ...] = (),
    rhs_batch_dims: tuple[int, ...] = (),
    lhs_ragged_dims: tuple[int, ...] = (),
    rhs_group_dims: tuple[int, ...] = (),
    operand_precision: tuple[str, ...] = (),
) -> Array:
    """Contract by groups, as JAX's ``ragged_dot_general`` does. Groups follow each other along the
    ragged dimension, each as long as its size says.

    Free ragged dimension: each row is multiplied with its group's part of rhs; a row of no group
    gives zero. Contracting: one result per group, along a new first dimension. Batch: the plain
    dot. Sizes may differ for each index of the dimensions before the ragged one (batch, free or
    contracting).
    """
    del operand_precision
    (ragged,) = lhs_ragged_dims
    contracting, batch = (
        (lhs_contracting_dims, rhs_contracting_dims),
        (lhs_batch_dims, rhs_batch_dims),
    )
    if ragged in lhs_batch_dims:
        return contracted(lhs, rhs, contracting, batch, shape.element_type)
    depth = ragged in lhs_contracting_dims
    free = others(lhs.ndim, lhs_batch_dims, lhs_contracting_dims)
    order = (*lhs_batch_dims, *(lhs_contracting_dims if depth else free))
    inside = _inside(lhs, ragged, order[: order.index(ragged)], group_sizes)
    present = np.broadcast_to(inside, (len(inside), *lhs.shape))
    grouped = np.broadcast_to(lhs, present.shape)
    later = tuple(tuple(d + 1 for d in dims) for dims in (*contracting, *batch))
    if depth:
        rows = np.broadcast_to(rhs, (len(grouped), *rhs.shape))
        pairs = (later[0], later[1]), ((0, *later[2]), (0, *later[3]))
        return contracted(grouped, rows, *pairs, shape.element_type, present)
    pairs = ((0, *later[0]), (*rhs_group_dims, *rhs_contracting_dims)), (later[2], rhs_batch_dims)
    return contracted(grouped, rhs, *pairs, shape.element_type, present)


def _inside(lhs: Array, ragged: int, prefix: tuple[int, ...], group_sizes: Array) -> Array:
    """Make masks of the elements of lhs in each group, stacked along the first dimension."""
    # Python's integers, as sums of sizes may be beyond any of NumPy's.
    sizes = np.moveaxis(group_sizes.astype(object), -1, 0)
    ends = sizes.cumsum(axis=0)
    first, last = (np.clip(x, 0, lhs.shape[ragged]).astype(np.int64) for x in (ends - sizes, ends))
    dims = [1] * lhs.ndim
    if first.ndim > 1:
        # Sizes have the dimensions of `prefix` in its order, the reshape below those of lhs.
        ascending = sorted(range(len(prefix)), key=lambda i: prefix[i])
        first, last = (x.transpose(0, *(i + 1 for i in ascending)) for x in (first, last))
        for axis in prefix:
            dims[axis] = lhs.shape[axis]
    first, last = (x.reshape(len(x), *dims) for x in (first, last))
    place = np.arange(lhs.shape[ragged]).reshape(
        [-1 if d == ragged else 1 for d in range(lhs.ndim)]
    )
    return np.asarray((first <= place) & (place < last))
