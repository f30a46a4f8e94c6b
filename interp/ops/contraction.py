"""Evaluate dot and convolution, both as exact products of matrices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from hlo.attributes import ConvolutionDimensions, SparsityConfig, Window, WindowDimension
from hlo.errors import Unsupported
from hlo.sparse_operands import Sparse, stored_sparsely
from hlo.types import ArrayShape, ElementType
from hlo.values import Array
from interp.exact.conversion import type_of
from interp.exact.matrix_products import matrix_product
from interp.exact.rounding import rounded
from interp.windows import padded, positions

__all__ = ["convolution", "dot"]


_PATCHES = 1 << 23  # elements of the input's patches at a time


def dot(
    lhs: Array,
    rhs: Array,
    *,
    shape: ArrayShape,
    lhs_contracting_dims: tuple[int, ...] = (),
    rhs_contracting_dims: tuple[int, ...] = (),
    lhs_batch_dims: tuple[int, ...] = (),
    rhs_batch_dims: tuple[int, ...] = (),
    operand_precision: tuple[str, ...] = (),
    algorithm: str = "",
) -> Array:
    """Compute dot; result dimensions are batch, free of lhs, free of rhs. Precision and algorithm
    allow an implementation less than the exact result, so they change nothing here."""
    del operand_precision, algorithm
    contracting, batch = (
        (lhs_contracting_dims, rhs_contracting_dims),
        (lhs_batch_dims, rhs_batch_dims),
    )
    return contracted(lhs, rhs, contracting, batch, shape.element_type)


_Pair = tuple[tuple[int, ...], tuple[int, ...]]


def contracted(
    lhs: Array,
    rhs: Array,
    contracting: _Pair,
    batch: _Pair,
    element_type: ElementType,
    present: Array | None = None,
) -> Array:
    """Contract pairs of dimensions; only elements of lhs in the mask ``present`` are factors."""
    lhs_free = others(lhs.ndim, batch[0], contracting[0])
    rhs_free = others(rhs.ndim, batch[1], contracting[1])
    dims = [lhs.shape[axis] for axis in (*batch[0], *lhs_free)]
    dims += [rhs.shape[axis] for axis in rhs_free]
    left = _stack(lhs, batch[0], lhs_free, contracting[0])
    right = _stack(rhs, batch[1], contracting[1], rhs_free)
    shown = None if present is None else _stack(present, batch[0], lhs_free, contracting[0])
    return matrix_product(left, right, element_type, shown).reshape(dims)


def others(rank: int, *taken: tuple[int, ...]) -> tuple[int, ...]:
    """Return the dimensions that are in none of the groups."""
    return tuple(axis for axis in range(rank) if not any(axis in axes for axes in taken))


def _stack(operand: Array, *groups: Sequence[int]) -> Array:
    """Permute an operand's dimensions by groups, and merge each group into one dimension."""
    sizes = [math.prod(operand.shape[axis] for axis in axes) for axes in groups]
    return operand.transpose([axis for axes in groups for axis in axes]).reshape(sizes)


def with_all_elements(operand: Array, indices: Array, sparse: Sparse) -> Array:
    """Expand a sparse operand: its stored elements at their indices in their blocks, zeros
    elsewhere. An element whose index is outside of its block (XLA's evaluator refuses it) is
    dropped."""
    if type_of(operand).name == "f8e8m0fnu":
        raise Unsupported("sparse operands of f8e8m0fnu, which has no zero")
    axis = sparse.dimension + 1
    places = np.arange(sparse.block).reshape(-1, *(1,) * (operand.ndim - axis))
    is_stored = np.expand_dims(indices.astype(np.int64), axis) == places
    zero = np.zeros((), operand.dtype)
    blocks = np.where(is_stored, np.expand_dims(operand, axis), zero)
    dims = list(operand.shape)
    dims[sparse.dimension] *= sparse.block
    return np.asarray(blocks.reshape(dims))


def convolution(
    lhs: Array,
    rhs: Array,
    *indices: Array,
    shape: ArrayShape,
    dim_labels: ConvolutionDimensions,
    window: Window = Window(),  # noqa: B008  (frozen)
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_precision: tuple[str, ...] = (),
    algorithm: str = "",
    convolution_kind: str = "",
    sparsity_config: SparsityConfig | None = None,
) -> Array:
    """Compute convolution by im2col: each output is the product of a patch of lhs, as a row, and a
    kernel, as a column.

    Positions in padding and in dilation holes are no factors. Groups of input features (or of
    batches) meet only their own group of output features. Sparse operands are expanded first, most
    of their elements zeros.
    """
    operands = [lhs, rhs, *indices]
    for sparse in stored_sparsely(sparsity_config):
        stored, places = operands[sparse.operand], operands[sparse.indices]
        operands[sparse.operand] = with_all_elements(stored, places, sparse)
    lhs, rhs = operands[:2]
    labels = dim_labels
    data = lhs.transpose(labels.input_batch, *labels.input_spatial, labels.input_feature)
    kernel = rhs.transpose(
        *labels.kernel_spatial, labels.kernel_input_feature, labels.kernel_output_feature
    )
    spatial = window.dimensions or tuple(map(WindowDimension, kernel.shape[:-2]))
    kernel = kernel[tuple(slice(None, None, -1 if d.reversal else None) for d in spatial)]
    counts = feature_group_count, batch_group_count
    patches = _patches(data, spatial, *counts)
    groups, depth, features = max(counts), math.prod(kernel.shape[:-1]), kernel.shape[-1]
    columns = kernel.reshape(depth, groups, features // groups).swapaxes(0, 1)
    holes = None
    # Zeros in padding and holes are harmless factors, unless they meet an infinity or NaN.
    has_zero = type_of(lhs).name != "f8e8m0fnu"
    is_float = type_of(rhs).kind in ("float", "complex")
    if not has_zero or (is_float and not np.isfinite(columns).all()):
        holes = _patches(np.ones(data.shape, np.bool_), spatial, *counts)
    zero = np.zeros((), shape.element_type.numpy)
    if shape.is_float:
        zero = rounded(np.zeros(()), shape.element_type)  # f8e8m0fnu has none
    result = np.full((*patches.shape[1 : 2 + len(spatial)], features), zero)
    for place in _chunks(patches.shape, len(spatial)):
        rows = patches[(slice(None), *place)].reshape(groups, -1, depth)
        present = holes if holes is None else holes[(slice(None), *place)].reshape(rows.shape)
        product = matrix_product(rows, columns, shape.element_type, present)
        result[place] = product.swapaxes(0, 1).reshape(result[place].shape)
    order = (labels.output_batch, *labels.output_spatial, labels.output_feature)
    return result.transpose(np.argsort(order))


def _patches(
    data: Array, spatial: Sequence[WindowDimension], feature_groups: int, batch_groups: int
) -> Array:
    """Return a strided view [group, batch, place..., offset in the window..., input feature] of
    padded data."""
    result = data
    for axis, window in enumerate(spatial, 1):
        result = padded(result, axis, window)
    batch, features = data.shape[0] // batch_groups, data.shape[-1] // feature_groups
    strides = result.strides
    # A group is the next part of the batch, or of the features: only a stride, no copy.
    group = strides[0] * batch if batch_groups > 1 else strides[-1] * features
    # as_strided looks the type up by its string, which is "<f1" of float8_e5m2: unknown to NumPy.
    known = result.view(np.uint8) if result.itemsize == 1 else result
    patches = np.lib.stride_tricks.as_strided(
        known,
        (
            max(feature_groups, batch_groups),
            batch,
            *map(positions, spatial, data.shape[1:-1]),
            *(d.size for d in spatial),
            features,
        ),
        (
            group,
            strides[0],
            *(stride * d.stride for stride, d in zip(strides[1:], spatial)),
            *(stride * d.window_dilation for stride, d in zip(strides[1:], spatial)),
            strides[-1],
        ),
        writeable=False,
    )
    return patches.view(result.dtype)


def _chunks(dims: tuple[int, ...], rank: int) -> Iterator[tuple[slice, ...]]:
    """Yield slices of the batch, and of the first spatial dimension, whose patches have at most
    _PATCHES elements."""
    if 0 in dims:
        return
    groups, batch, *rest = dims
    one = groups * math.prod(rest)
    images = max(1, _PATCHES // one)
    places = rest[0] if rank else 1
    lines = max(1, min(places, _PATCHES * places // one))
    for first in range(0, batch, images):
        for top in range(0, places, lines):
            yield (slice(first, first + images), *((slice(top, top + lines),) if rank else ()))
