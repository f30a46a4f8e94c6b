"""Operations of ATen that compute distances of all pairs of rows, with gradients."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from hlo_oracle.frontends.torch.aten.promotion import Operation, unpromoted


def _norm(difference: Any, p: float) -> Any:
    """Compute the p-norm of the last dimension: (Σ |d|ᵖ)^(1/p), the number of elements that are
    not 0 for p = 0, and the largest for p = ∞."""
    size = jnp.abs(difference)
    if p == 0:
        return jnp.sum((size != 0).astype(size.dtype), axis=-1)
    if p == math.inf:
        return jnp.max(size, axis=-1, initial=0)
    if p == 1:
        return jnp.sum(size, axis=-1)
    if p == 2:
        return jnp.sqrt(jnp.sum(size * size, axis=-1))
    return jnp.sum(size**p, axis=-1) ** (1 / p)


def _pull(difference: Any, distance: Any, p: float) -> Any:
    """Compute the gradient of a distance with respect to each difference; 0 where it is 0."""
    distance = distance[..., None]
    sign, size = jnp.sign(difference), jnp.abs(difference)
    zero = jnp.zeros((), difference.dtype)
    if p == 0:
        return jnp.zeros_like(difference)
    if p == 1:
        return sign
    if p == math.inf:
        return jnp.where(size == distance, sign, zero)
    apart = jnp.where(distance == 0, 1, distance)
    if p == 2:
        return jnp.where(distance == 0, zero, difference / apart)
    grows = jnp.where(size == 0, 1, size) ** (p - 1) / apart ** (p - 1)
    return jnp.where((distance == 0) | (size == 0), zero, sign * grows)


def _pairs(x: Any, y: Any) -> Any:
    return x[..., :, None, :] - y[..., None, :, :]


def _cdist(x: Any, y: Any, p: float, compute_mode: int | None) -> Any:
    return _norm(_pairs(x, y), p)


def _cdist_backward(gradient: Any, x: Any, y: Any, p: float, distance: Any) -> Any:
    """Sum the gradients of each row of x."""
    return jnp.sum(gradient[..., None] * _pull(_pairs(x, y), distance, p), axis=-2)


def _dist(x: Any, y: Any, p: float = 2) -> Any:
    """Compute the p-norm of the difference of all elements; powers and sums of f16 and bf16 are
    f32, as ATen's are."""
    difference = (x - y).reshape(-1)
    return _norm(difference.astype(jnp.promote_types(difference.dtype, "float32")), p)


def _rows(count: int) -> tuple[Any, Any]:
    """List the pairs i < j of rows in order."""
    return np.triu_indices(count, 1)


def _pdist(x: Any, p: float = 2) -> Any:
    left, right = _rows(x.shape[0])
    return _norm(x[left] - x[right], p)


def _pdist_backward(gradient: Any, x: Any, p: float, distance: Any) -> Any:
    left, right = _rows(x.shape[0])
    pull = gradient[:, None] * _pull(x[left] - x[right], distance, p)
    return jnp.zeros_like(x).at[left].add(pull).at[right].add(-pull)


OPS: dict[str, Operation] = {
    "_cdist_forward": unpromoted(_cdist),
    "_cdist_backward": unpromoted(_cdist_backward),
    "dist": unpromoted(_dist),
    "_pdist_forward": unpromoted(_pdist),
    "_pdist_backward": unpromoted(_pdist_backward),
}
