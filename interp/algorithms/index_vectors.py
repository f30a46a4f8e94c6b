"""Index vectors of gather and scatter as NumPy index arrays."""

from __future__ import annotations

import numpy as np

from hlo.values import Array


def index_vectors(indices: Array, index_vector_dim: int) -> tuple[Array, tuple[int, ...]]:
    """Move the index vectors to the last dimension; return them and the sizes of the other
    dimensions."""
    if index_vector_dim == indices.ndim:
        return indices[..., np.newaxis], indices.shape
    moved = np.moveaxis(indices, index_vector_dim, -1)
    return moved, moved.shape[:-1]


def clamped(indices: Array, last: int) -> Array:
    """Convert integers of any type to s64, clamped to 0..last."""
    return np.clip(_as_int64(indices), 0, max(last, 0))


def within(indices: Array, last: int) -> tuple[Array, Array]:
    """Convert integers of any type to s64; return them and a mask of those in 0..last."""
    signed = _as_int64(indices)
    return signed, (signed >= 0) & (signed <= last)


def along(axis: int, rank: int, size: int) -> Array:
    """Return 0..size-1 along ``axis``, shaped to broadcast in an array of ``rank``."""
    return np.arange(size).reshape([-1 if d == axis else 1 for d in range(rank)])


def _as_int64(indices: Array) -> Array:
    """Convert to s64, saturating: an unsigned index beyond s64 is out of bounds, not negative."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(2**63 - 1))
    return indices.astype(np.int64)
