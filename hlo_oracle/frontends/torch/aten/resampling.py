"""Operations of ATen that interpolate between the elements of an array: their gradients, samples
at a grid of places, and gradients of padding by copies.

Gradients are those of the interpolation as it is written here; ATen's formulas are in
ATen/native/UpSample.h and GridSamplerUtils.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hlo_oracle.frontends.torch.aten import byte_images
from hlo_oracle.frontends.torch.aten.promotion import Operation, unpromoted

_LINEAR, _NEAREST, _CUBIC = range(3)  # ATen's modes of grid_sampler
_ZEROS, _BORDER, _REFLECTION = range(3)  # and of what lies beyond the array
_A = -0.75  # of the cubic convolution

Taps = list[tuple[Any, Any]]  # the indices and weights of elements whose weighted sum is taken


def _sources(size: int, count: int, align: bool, scale: float | None, dtype: Any) -> Any:
    """Compute the place in ``size`` elements of each of ``count`` results."""
    places = lax.iota(dtype, count)
    if align:
        return places * jnp.asarray((size - 1) / (count - 1) if count > 1 else 0, dtype)
    step = jnp.asarray(1 / scale if scale else size / count, dtype)
    return step * (places + 0.5) - 0.5


def _linear_taps(size: int, count: int, *given: Any) -> Taps:
    # The first places may lie up to half an element before the array: ATen clamps them here, but
    # not for the cubic kind, whose taps are clamped one by one.
    source = jnp.maximum(_sources(size, count, *given), 0)
    first = jnp.minimum(source.astype("int64"), size - 1)
    far = jnp.clip(source - first, 0, 1)
    return [(first, 1 - far), (jnp.minimum(first + 1, size - 1), far)]


def _cubic_weights(t: Any) -> list[Any]:
    """Compute the weights of four elements around a place that is ``t`` after the second one."""

    def near(x: Any) -> Any:
        return ((_A + 2) * x - (_A + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((_A * x - 5 * _A) * x + 8 * _A) * x - 4 * _A

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _cubic_taps(size: int, count: int, *given: Any) -> Taps:
    source = _sources(size, count, *given)
    before = jnp.floor(source)
    weights = _cubic_weights(source - before)
    index = before.astype("int64")
    return [(jnp.clip(index + n - 1, 0, size - 1), weight) for n, weight in enumerate(weights)]


def _nearest_taps(is_exact: bool) -> Any:
    def taps(size: int, count: int, align: bool, scale: float | None, dtype: Any) -> Taps:
        step = jnp.asarray(1 / scale if scale else size / count, dtype)
        places = (lax.iota(dtype, count) + (0.5 if is_exact else 0)) * step
        return [(jnp.minimum(places.astype("int64"), size - 1), jnp.ones(count, dtype))]

    return taps


def _resampled(x: Any, dim: int, taps: Taps) -> Any:
    """Sum taps along a dimension; those of matrices of indices have a row for each result."""
    after = (1,) * (x.ndim - dim - 1)
    parts = []
    for index, weight in taps:
        part = jnp.take(x, index, dim) * weight.reshape(weight.shape + after)
        parts.append(jnp.sum(part, axis=dim + 1) if index.ndim > 1 else part)
    return sum(parts[1:], parts[0])


_FILTERS: dict[str, tuple[int, Callable[[Any], Any]]] = {  # half of the support, weight by distance
    "linear": (1, lambda x: jnp.maximum(1 - x, 0)),
    "cubic": (2, lambda x: _cubic_filter(x, -0.5)),
    "lanczos": (3, lambda x: jnp.where(x < 3, jnp.sinc(x) * jnp.sinc(x / 3), 0)),
}


def _cubic_filter(x: Any, a: float) -> Any:
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return jnp.where(x < 1, near, jnp.where(x < 2, far, 0))


def _antialiased_taps(kind: str) -> Any:
    """Make taps of a filter that is as wide as the elements of the result."""
    half, filtered = _FILTERS[kind]

    def taps(size: int, count: int, align: bool, scale: float | None, dtype: Any) -> Taps:
        if align:
            ratio = (size - 1) / (count - 1) if count > 1 else 0.0
        else:
            ratio = 1 / scale if scale else size / count
        width = max(ratio, 1.0)
        step, reach = jnp.asarray(ratio, dtype), jnp.asarray(half * width, dtype)
        centre = step * (lax.iota(dtype, count) + 0.5)
        begin = jnp.maximum((centre - reach + 0.5).astype("int64"), 0)
        end = jnp.minimum((centre + reach + 0.5).astype("int64"), size)
        index = begin[:, None] + lax.iota("int64", 2 * math.ceil(half * width) + 1)
        distance = jnp.abs(index.astype(dtype) - centre[:, None] + 0.5) / jnp.asarray(width, dtype)
        weight = jnp.where(index < end[:, None], filtered(distance), 0)
        weight = weight / jnp.sum(weight, axis=1, keepdims=True)
        return [(jnp.minimum(index, size - 1), weight.astype(dtype))]

    return taps


def _upsample(taps: Any, has_corners: bool, x: Any, output_size: Sequence[int], *rest: Any) -> Any:
    """Interpolate along the last dimensions, the last one first, as ATen does; ``rest`` is whether
    corners are aligned, if the kind of interpolation has that, and factors of sizes."""
    count = len(output_size)
    align, *scales = rest if has_corners else (False, *rest)
    scales = [*scales, *[None] * (count - len(scales))]
    is_bytes = x.dtype == np.uint8
    wide = jnp.dtype("float64") if is_bytes else jnp.promote_types(x.dtype, "float32")
    x = x if is_bytes else x.astype(wide)
    for n, (size, scale) in reversed([*enumerate(zip(output_size, scales, strict=True))]):
        dim = x.ndim - count + n
        given = x.shape[dim], size, align, scale, wide
        if not is_bytes:
            x = _resampled(x, dim, taps(*given))
        elif x.shape[dim] != size:
            with jax.ensure_compile_time_eval():
                known = taps(*given)
            x = byte_images.resampled(x, dim, known)
    return x


def _upsample_backward(
    taps: Any, has_corners: bool, gradient: Any, output_size: Sequence[int],
    input_size: Sequence[int], *rest: Any,
) -> Any:  # fmt: skip
    """Compute the gradient of an interpolation of the last dimensions to other sizes."""
    wide = gradient.astype(jnp.promote_types(gradient.dtype, "float32"))
    start = jnp.zeros(tuple(input_size), wide.dtype)
    return jax.vjp(lambda x: _upsample(taps, has_corners, x, output_size, *rest), start)[1](wide)[0]


def _replication_pad_backward(gradient: Any, x: Any, padding: Sequence[int]) -> Any:
    """Sum the gradients of the copies of each element; negative padding cuts."""

    def padded(y: Any) -> Any:
        for n, before in enumerate(padding[::2]):
            dim = y.ndim - 1 - n
            places = lax.iota("int64", gradient.shape[dim]) - before
            y = jnp.take(y, jnp.clip(places, 0, y.shape[dim] - 1), axis=dim)
        return y

    return jax.vjp(padded, x)[1](gradient)[0]


def _clipped(x: Any, size: int) -> Any:
    """Clip to the array; at its ends the gradient is 0, as in ATen."""
    return jnp.where(x <= 0, 0, jnp.where(x >= size - 1, size - 1, x)).astype(x.dtype)


def _reflected(x: Any, size: int, align: bool) -> Any:
    """Reflect at the first and the last element, or half an element beyond them."""
    low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
    if not span:
        return jnp.zeros_like(x)
    distance = jnp.abs(x - low)
    rest = lax.rem(distance, jnp.full_like(distance, span))
    is_turned = jnp.floor(distance / span).astype("int64") % 2 == 1
    return jnp.where(is_turned, span - rest, rest) + low


def _within(x: Any, size: int, padding: int, align: bool) -> Any:
    """Move places that lie beyond the array, as the mode of padding says."""
    if padding == _ZEROS:
        return x
    return _clipped(_reflected(x, size, align) if padding == _REFLECTION else x, size)


def _picked(x: Any, places: Sequence[Any]) -> Any:
    """Read x[C, …] at places, which are whole numbers; 0 beyond the array."""
    dims = x.shape[1:]
    inside = jnp.ones((), bool)
    for place, size in zip(places, dims, strict=True):
        inside &= (place >= 0) & (place <= size - 1)
    index = [
        jnp.clip(place, 0, size - 1).astype("int64")
        for place, size in zip(places, dims, strict=True)
    ]
    return jnp.where(inside, x[(slice(None), *index)], jnp.zeros((), x.dtype))


def _sampled(x: Any, places: Sequence[Any], mode: int, padding: int, align: bool) -> Any:
    """Interpolate x[C, …] at places, one array for each dimension."""
    dims = x.shape[1:]

    def moved(place: Any, size: int) -> Any:
        return _within(place, size, padding, align)

    if mode != _CUBIC:
        places = [moved(place, size) for place, size in zip(places, dims, strict=True)]
    if mode == _NEAREST:
        return _picked(x, [lax.stop_gradient(jnp.round(place)) for place in places])
    before = [lax.stop_gradient(jnp.floor(place)) for place in places]
    far = [place - floor for place, floor in zip(places, before, strict=True)]
    weights = [_cubic_weights(t) if mode == _CUBIC else [1 - t, t] for t in far]
    first = -1 if mode == _CUBIC else 0
    total = jnp.zeros((), x.dtype)
    for offsets in product(range(len(weights[0])), repeat=len(dims)):
        at = [floor + first + n for floor, n in zip(before, offsets, strict=True)]
        # Each of the cubic taps is moved into the array by itself; for the other modes the place
        # between the taps was moved above.
        if mode == _CUBIC:
            at = [moved(place, size) for place, size in zip(at, dims, strict=True)]
        weight = jnp.ones((), x.dtype)
        for own, n in zip(weights, offsets, strict=True):
            weight = weight * own[n]
        total = total + _picked(x, at) * weight
    return total


def _grid_sampler(x: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    """Interpolate x[N, C, …] at places between -1 and 1, the ends of a dimension, whose
    coordinates are the last dimension of the grid, that of the last dimension first."""

    def one(x: Any, grid: Any) -> Any:
        places = []
        for n, size in enumerate(x.shape[1:]):
            c = grid[..., grid.shape[-1] - 1 - n]
            places.append((c + 1) / 2 * (size - 1) if align else ((c + 1) * size - 1) / 2)
        return _sampled(x, places, mode, padding, align)

    return jax.vmap(one)(x, grid)


def _grid_sampler_backward(gradient: Any, x: Any, grid: Any, *rest: Any) -> list[Any]:
    """Compute those gradients of array and grid that the last argument, a mask, asks for."""
    *modes, wanted = rest
    found = jax.vjp(lambda x, grid: _grid_sampler(x, grid, *modes), x, grid)[1](gradient)
    return [y if asked else None for y, asked in zip(found, wanted, strict=True)]


def _backward(taps: Any, has_corners: bool = True) -> Operation:
    return unpromoted(partial(_upsample_backward, taps, has_corners))


_ANTIALIASED = (("bilinear", "linear"), ("bicubic", "cubic"), ("lanczos", "lanczos"))


def _antialiased(kind: str) -> Operation:
    """Make an interpolation with a filter."""
    return unpromoted(partial(_upsample, _antialiased_taps(kind), True))


OPS: dict[str, Operation] = {
    "grid_sampler_3d": unpromoted(_grid_sampler),
    "grid_sampler_2d_backward": unpromoted(_grid_sampler_backward),
    "grid_sampler_3d_backward": unpromoted(_grid_sampler_backward),
    "replication_pad1d_backward": unpromoted(_replication_pad_backward),
    "replication_pad2d_backward": unpromoted(_replication_pad_backward),
    "replication_pad3d_backward": unpromoted(_replication_pad_backward),
    "upsample_bicubic2d": unpromoted(partial(_upsample, _cubic_taps, True)),
    "upsample_bilinear2d": unpromoted(partial(_upsample, _linear_taps, True)),
    "upsample_linear1d": unpromoted(partial(_upsample, _linear_taps, True)),
    "upsample_trilinear3d": unpromoted(partial(_upsample, _linear_taps, True)),
    "upsample_bicubic2d_backward": _backward(_cubic_taps),
    "upsample_bilinear2d_backward": _backward(_linear_taps),
    "upsample_linear1d_backward": _backward(_linear_taps),
    "upsample_nearest1d_backward": _backward(_nearest_taps(False), has_corners=False),
    "upsample_nearest2d_backward": _backward(_nearest_taps(False), has_corners=False),
    "upsample_nearest3d_backward": _backward(_nearest_taps(False), has_corners=False),
    "upsample_trilinear3d_backward": _backward(_linear_taps),
    "_upsample_nearest_exact1d_backward": _backward(_nearest_taps(True), has_corners=False),
    "_upsample_nearest_exact2d_backward": _backward(_nearest_taps(True), has_corners=False),
    "_upsample_nearest_exact3d_backward": _backward(_nearest_taps(True), has_corners=False),
    **{f"_upsample_{name}2d_aa": _antialiased(kind) for name, kind in _ANTIALIASED},
    **{
        f"_upsample_{name}2d_aa_backward": _backward(_antialiased_taps(kind))
        for name, kind in _ANTIALIASED
    },
}
