"""Operations of ATen that round to a grid of integers and back, as quantized inference would."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from hlo_oracle.frontends.torch.aten.promotion import Operation, unpromoted


def _rounded(x: Any, scale: Any, zero: Any, low: int, high: int) -> tuple[Any, Any]:
    """Compute (clamp(zero + round(x / scale), low, high) - zero) * scale, and where nothing was
    clamped.

    ATen multiplies by the reciprocal of the scale, rounds halves to even, and clamps NaN to the
    lower bound.
    """
    scale = jnp.asarray(scale, "float32")
    zero = jnp.asarray(zero)
    grid = zero.astype("float32") + jnp.round(x.astype("float32") * (1 / scale))
    kept = (grid >= low) & (grid <= high)
    clamped = jnp.fmin(jnp.fmax(grid, low), high)
    return ((clamped - zero.astype("float32")) * scale).astype(x.dtype), kept


def _per_channel(
    x: Any, scale: Any, zero: Any, axis: int, low: int, high: int
) -> tuple[Any, Any]:  # fmt: skip
    sizes = [x.shape[n] if n == axis % x.ndim else 1 for n in range(x.ndim)]
    return _rounded(x, scale.reshape(sizes), zero.reshape(sizes), low, high)


def _by_tensors(
    x: Any, scale: Any, zero: Any, enabled: Any, low: int, high: int
) -> tuple[Any, Any]:  # fmt: skip
    """Round by a scale and a zero that are data, or not at all where not enabled."""
    value, kept = _rounded(x, scale.reshape(()), zero.reshape(()), low, high)
    rounds = enabled.reshape(()) != 0
    return jnp.where(rounds, value, x), kept | ~rounds


OPS: dict[str, Operation] = {
    "fake_quantize_per_channel_affine_cachemask": unpromoted(_per_channel),
    "fake_quantize_per_tensor_affine_cachemask": unpromoted(_rounded),
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": unpromoted(_by_tensors),
}
