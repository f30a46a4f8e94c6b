"""Interpolation of images of ``uint8``, in ATen's fixed point.

One dimension after the other, the last one first, is resampled to ``uint8`` with weights of 16
bits, whose fractions have as many bits as the largest weight leaves (ATen's
native/cpu/UpSampleKernel.cpp, ``_compute_index_ranges_int16_weights``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

_MOST_BITS = 22  # of the fraction of a weight


def resampled(x: Any, dim: int, taps: Sequence[tuple[Any, Any]]) -> Any:
    """Sum taps (indices and weights of f64, known while tracing) along a dimension of bytes."""
    index, weight = (np.concatenate([_rows(x) for x in of]) for of in zip(*taps, strict=True))
    weight = _merged(index, weight)
    bits = _fraction_bits(weight.max(initial=0.0))
    whole = np.trunc(weight * (1 << bits) + np.copysign(0.5, weight)).astype(np.int32)
    after = (1,) * (x.ndim - dim - 1)
    total = jnp.full((), 1 << bits >> 1, "int32")
    for places, weights in zip(index, whole, strict=True):
        total = total + jnp.take(x, places, dim).astype("int32") * weights.reshape(-1, *after)
    return jnp.clip(total >> bits, 0, 255).astype("uint8")


def _rows(array: Any) -> Any:
    """Return the indices or the weights of taps as rows: a tap may be a matrix, of a row for each
    result."""
    found = np.asarray(array)
    return found.T if found.ndim > 1 else found[None]


def _merged(index: Any, weight: Any) -> Any:
    """Add the weights of taps at the same element, as at the edges, to the first one of them."""
    weight = weight.copy()
    for n in range(len(index)):
        for m in range(n):
            is_same = (index[m] == index[n]) & (weight[n] != 0)
            weight[m] += np.where(is_same, weight[n], 0)
            weight[n] = np.where(is_same, 0, weight[n])
    return weight


def _fraction_bits(largest: float) -> int:
    """Return the bits of fractions with which the largest weight is below 2¹⁵."""
    bits = 0
    while bits < _MOST_BITS and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    return bits
