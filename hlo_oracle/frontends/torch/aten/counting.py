"""Operations of ATen that count: histograms, and indices repeated by counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from hlo_oracle.frontends.torch.aten.promotion import Operation, typed


def _counted(result: Any, count: int, places: Any, counts: Any, weights: Any = None) -> Any:
    """Add weights (1 without any) where ``counts``, to the bins that ``places`` name."""
    one = jnp.ones((), result) if weights is None else weights.reshape(-1).astype(result)
    kept = jnp.where(counts, one, jnp.zeros((), result))
    return jnp.zeros(count, result).at[places].add(kept, mode="drop")


def _histc(result: Any, x: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """Count elements in bins of equal width between two bounds, the upper one included; equal
    bounds are replaced by the extremes of the elements, and those, if equal, by one more each."""
    x = x.reshape(-1)
    low, high = jnp.asarray(min, x.dtype), jnp.asarray(max, x.dtype)
    if min == max and x.size:
        low, high = jnp.min(x), jnp.max(x)
    equal = low == high
    low, high = jnp.where(equal, low - 1, low), jnp.where(equal, high + 1, high)
    inside = (x >= low) & (x <= high)
    places = ((x - low) * bins / (high - low)).astype("int64")
    return _counted(result, bins, jnp.minimum(places, bins - 1), inside)


def _histogram(
    result: Any, x: Any, edges: Any, *, weight: Any = None, density: bool = False
) -> tuple[Any, Any]:
    """Count elements between edges; the last edge is part of the last bin."""
    x = x.reshape(-1)
    last = edges.shape[0] - 2
    places = jnp.searchsorted(edges, x, side="right") - 1
    inside = (x >= edges[0]) & (x <= edges[-1])
    counts = _counted(result, last + 1, jnp.clip(places, 0, last), inside, weight)
    if density:
        counts = counts / jnp.sum(counts) / jnp.diff(edges)
    return counts, edges


def _histogram_of_bins(
    result: Any, x: Any, bins: int, *, range: Any = None, **named: Any
) -> tuple[Any, Any]:
    return _histogram(result, x, _edges_of_bins(x, bins, range), **named)


def _edges_of_bins(x: Any, bins: int, ends: Sequence[Any] | None) -> Any:
    """Compute the edges of bins of one width, by default from the least element to the largest."""
    if ends is not None:
        low, high = (jnp.asarray(end, x.dtype) for end in ends)
    elif x.size:
        low, high = jnp.min(x), jnp.max(x)
    else:
        low, high = jnp.zeros((), x.dtype), jnp.ones((), x.dtype)
    low, high = jnp.where(low == high, low - 0.5, low), jnp.where(low == high, high + 0.5, high)
    step, at = (high - low) / bins, jnp.arange(bins + 1)
    edges = jnp.where(at < (bins + 1) // 2, low + step * at, high - step * (bins - at))
    return edges.astype(x.dtype)


def _edges_of_dimensions(
    result: Any, x: Any, bins: Sequence[int], *, range: Any = None, **named: Any
) -> list[Any]:
    """Compute the edges for each coordinate of the points x[…, D]."""
    points = x.reshape(-1, x.shape[-1])
    ends = [None] * len(bins) if range is None else list(zip(range[::2], range[1::2], strict=True))
    return [_edges_of_bins(points[:, n], count, ends[n]) for n, count in enumerate(bins)]


def _histogramdd(
    result: Any, x: Any, edges: Sequence[Any], *, weight: Any = None, density: bool = False
) -> Any:
    """Count points x[…, D] between the edges of each dimension."""
    points = x.reshape(-1, x.shape[-1])
    sizes = [edge.shape[0] - 1 for edge in edges]
    inside, place = jnp.ones(points.shape[0], bool), jnp.zeros(points.shape[0], "int64")
    for n, (edge, size) in enumerate(zip(edges, sizes, strict=True)):
        one = points[:, n]
        inside = inside & (one >= edge[0]) & (one <= edge[-1])
        at = jnp.searchsorted(edge, one, side="right") - 1
        place = place * size + jnp.clip(at, 0, size - 1)
    counts = _counted(result, math.prod(sizes), place, inside, weight).reshape(sizes)
    if density:
        counts = counts / jnp.sum(counts)
        for n, edge in enumerate(edges):
            counts = counts / jnp.diff(edge).reshape(-1, *(1,) * (len(edges) - 1 - n))
    return counts


def _histogramdd_of_bins(result: Any, x: Any, bins: Sequence[int], **named: Any) -> Any:
    edges = _edges_of_dimensions(result, x, bins, range=named.pop("range", None))
    return _histogramdd(result, x, edges, **named)


def _repeats(result: Any, repeats: Any, *, output_size: int | None = None) -> Any:
    """Repeat each index of ``repeats`` as often as it says."""
    if output_size is None:
        raise NotImplementedError("repetitions without output_size, whose number is data")
    indices = jnp.arange(repeats.shape[0], dtype=result)
    return jnp.repeat(indices, repeats, total_repeat_length=output_size)


def _nonzero_static(result: Any, x: Any, *, size: int, fill_value: int = -1) -> Any:
    if not x.ndim:
        return jnp.zeros((size, 0), result)
    if not x.size:  # of which jax.numpy.nonzero ignores fill_value
        return jnp.full((size, x.ndim), fill_value, result)
    places: Sequence[Any] = jnp.nonzero(x, size=size, fill_value=fill_value)
    return jnp.stack(places, axis=-1)


OPS: dict[str, Operation] = {
    "histc": typed(_histc),
    "histogram.bins_tensor": typed(_histogram),
    "histogram.bin_ct": typed(_histogram_of_bins),
    "_histogramdd_bin_edges": typed(_edges_of_dimensions),
    "_histogramdd_from_bin_cts": typed(_histogramdd_of_bins),
    "_histogramdd_from_bin_tensors": typed(_histogramdd),
    "nonzero_static": typed(_nonzero_static),
    "repeat_interleave.Tensor": typed(_repeats),
}
