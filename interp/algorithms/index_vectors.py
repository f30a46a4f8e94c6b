"""Index vectors of gather and scatter as NumPy index arrays."""

from __future__ import annotations

import numpy as np

from hlo.values import Array


def index_vectors(indices: Array, index_vector_dim: int) -> tuple[Array, tuple[int, ...]]:
    """Return the indices with their vectors in the last dimension, and the sizes of the others."""
    if index_vector_dim == indices.ndim:
        return indices[..., np.newaxis], indices.shape
    moved = np.moveaxis(indices, index_vector_dim, -1)
    return moved, moved.shape[:-1]


def clamped(indices: Array, last: int) -> Array:
    """Integers of any type forced into 0..last, as s64."""
    return np.clip(_as_int64(indices), 0, max(last, 0))


def within(indices: Array, last: int) -> tuple[Array, Array]:
    """Integers of any type as s64, and which of them are in 0..last."""
    signed = _as_int64(indices)
    return signed, (signed >= 0) & (signed <= last)


def along(axis: int, rank: int, size: int) -> Array:
    """0..size-1 along one axis of ``rank``."""
    return np.arange(size).reshape([-1 if d == axis else 1 for d in range(rank)])


def _as_int64(indices: Array) -> Array:
    """Saturated: an unsigned index beyond s64 is out of bounds, not negative."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(2**63 - 1))
    return indices.astype(np.int64)
