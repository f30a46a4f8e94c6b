"""Operations of ATen that pick an element by its rank, or the most frequent one.

NaN is larger than all numbers. Of equal elements ATen names any: here it is the first, except for
``mode``, where it is the last.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from hlo_oracle.frontends.torch.aten.promotion import Operation, unpromoted


def _at(x: Any, rank: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """Pick the elements of a rank, from 0, along a dimension: their values and indices."""
    places = jnp.argsort(x, axis=dim, stable=True)
    wanted = jnp.broadcast_to(rank, (*x.shape[:dim], 1, *x.shape[dim + 1 :])).astype(places.dtype)
    found = jnp.take_along_axis(places, wanted, axis=dim)
    values = jnp.take_along_axis(x, found, axis=dim)
    if not keepdim:
        values, found = (jnp.squeeze(y, dim) for y in (values, found))
    return values, found.astype("int64")


def _kth(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    if not x.ndim:
        return x, jnp.zeros((), "int64")
    return _at(x, k - 1, dim % x.ndim, keepdim)


def _is_nan(x: Any) -> Any:
    return jnp.isnan(x) if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.zeros(x.shape, bool)


def _lower_middle(x: Any, dim: int, keepdim: bool, skips_nan: bool) -> tuple[Any, Any]:
    """Pick the lower one of the two in the middle; the first NaN unless they are skipped."""
    nan = _is_nan(x)
    # NaN is sorted last, so the first of them has the rank ``count``.
    count = x.shape[dim] - jnp.sum(nan, axis=dim, keepdims=True)
    if skips_nan:  # of NaN alone it is the first
        return _at(x, jnp.maximum(count - 1, 0) // 2, dim, keepdim)
    middle = (x.shape[dim] - 1) // 2
    return _at(x, jnp.where(count < x.shape[dim], count, middle), dim, keepdim)


def _median(skips_nan: bool) -> Operation:
    """Make ``median`` or ``nanmedian``: of all elements, or along a dimension with indices."""

    def median(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is None:
            if not x.size:
                raise NotImplementedError("the median of no elements")
            return _lower_middle(x.reshape(-1), 0, False, skips_nan)[0]
        if not x.ndim:
            return x, jnp.zeros((), "int64")
        return _lower_middle(x, dim % x.ndim, keepdim, skips_nan)

    return unpromoted(median)


def _mode(x: Any, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    """Pick the most frequent element, of several the smallest, and its last index.

    In sorted order an element whose copies end at k occurs k - (its first place) + 1 times.
    """
    if not x.ndim:
        return x, jnp.zeros((), "int64")
    dim %= x.ndim
    places = jnp.argsort(x, axis=dim, stable=True)
    ordered = jnp.take_along_axis(x, places, axis=dim)
    at = lax.broadcasted_iota(jnp.dtype("int64"), x.shape, dim)
    begins = (ordered != jnp.roll(ordered, 1, dim)) | (at == 0)
    first = lax.cummax(jnp.where(begins, at, 0), dim)
    # The longest run so far is first reached at the end of a run: of its last copy.
    best = jnp.argmax(at - first, axis=dim, keepdims=True)
    found = jnp.take_along_axis(places, best, axis=dim)
    values = jnp.take_along_axis(x, found, axis=dim)
    if not keepdim:
        values, found = (jnp.squeeze(y, dim) for y in (values, found))
    return values, found.astype("int64")


OPS: dict[str, Operation] = {
    "kthvalue": unpromoted(_kth),
    "median": _median(skips_nan=False),
    "mode": unpromoted(_mode),
    "nanmedian": _median(skips_nan=True),
}
