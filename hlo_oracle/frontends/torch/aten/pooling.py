"""Operations of ATen that pool windows of the last dimensions, with gradients; Fourier
transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hlo_oracle.frontends.torch.aten.promotion import Operation, unpromoted


class Windows:
    """The windows of a pooling: size, stride, padding and dilation per dimension, and the number of
    positions of a window."""

    def __init__(
        self, dims: Sequence[int], kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
    ) -> None:
        count = len(dims)
        self.dims = tuple(dims)
        self.kernel = _each(kernel, count)
        self.stride = _each(stride, count) if stride not in ((), [], None) else self.kernel
        self.padding = _each(padding, count)
        self.dilation = _each(dilation, count)
        self.places = tuple(self._places(n, ceil) for n in range(count))

    def _places(self, n: int, ceil: bool) -> int:
        """Count the positions along a dimension; with ``ceil`` the last window may overhang, but
        must start within the array or its low padding."""
        reach = self.dilation[n] * (self.kernel[n] - 1) + 1
        room, stride = self.dims[n] + 2 * self.padding[n] - reach, self.stride[n]
        if not ceil:
            return room // stride + 1
        places = -(-room // stride) + 1
        starts_outside = (places - 1) * stride >= self.dims[n] + self.padding[n]
        return places - 1 if starts_outside else places

    def pads(self) -> list[tuple[int, int]]:
        """Return the (low, high) padding of each dimension."""
        pads = []
        for n, size in enumerate(self.dims):
            reach = self.dilation[n] * (self.kernel[n] - 1) + 1
            last = (self.places[n] - 1) * self.stride[n] + reach
            pads.append((self.padding[n], max(last - size - self.padding[n], 0)))
        return pads


def _each(numbers: Any, count: int) -> tuple[int, ...]:
    given = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    return given * count if len(given) == 1 else given


def _padded(x: Any, windows: Windows, value: Any) -> Any:
    config = [(0, 0, 0)] * (x.ndim - len(windows.dims))
    config += [(low, high, 0) for low, high in windows.pads()]
    return lax.pad(x, jnp.asarray(value, x.dtype), config)


def _lowest(dtype: Any) -> Any:
    return -jnp.inf if jnp.issubdtype(dtype, jnp.inexact) else np.iinfo(dtype).min


def _window(x: Any, windows: Windows, offset: Sequence[int]) -> Any:
    """Take the element at one offset of every window, as a strided slice of the padded array."""
    lead = x.ndim - len(windows.dims)
    first = [0] * lead + [o * d for o, d in zip(offset, windows.dilation, strict=True)]
    spans = [(p - 1) * s + 1 for p, s in zip(windows.places, windows.stride, strict=True)]
    last = [*x.shape[:lead], *(f + s for f, s in zip(first[lead:], spans, strict=True))]
    return lax.slice(x, first, last, [1] * lead + list(windows.stride))


def _max_pool(count: int, x: Any, kernel: Any, *rest: Any) -> tuple[Any, Any]:
    """Compute the largest element of each window, and its index in the unpadded array.

    ``rest`` is stride, padding, dilation, and whether sizes are rounded up.
    """
    defaults: tuple[Any, ...] = (), 0, 1, False
    stride, padding, dilation, ceil = (*rest, *defaults[len(rest) :])
    windows = Windows(x.shape[-count:], kernel, stride, padding, dilation, ceil)
    dims = (1,) * (x.ndim - count)
    values = lax.reduce_window(
        x, jnp.asarray(_lowest(x.dtype), x.dtype), lax.max, dims + windows.kernel,
        dims + windows.stride, [(0, 0)] * (x.ndim - count) + windows.pads(), None,
        dims + windows.dilation,
    )  # fmt: skip
    return values, _largest_places(x, windows)


def _largest_places(x: Any, windows: Windows) -> Any:
    """Find the index of each window's first largest element, or its last NaN; dead code if it is
    unused."""
    padded = _padded(x, windows, _lowest(x.dtype))
    best: Any = None
    for offset in product(*map(range, windows.kernel)):
        value = _window(padded, windows, offset)
        place = _flat_places(value.shape, windows, offset)
        if best is None:
            best, places = value, place
            continue
        # Of a window whose elements are all -inf the first one within the array counts.
        better = (value > best) | (value != value) | ((places < 0) & (value >= best))
        best, places = jnp.where(better, value, best), jnp.where(better, place, places)
    return places


def _flat_places(shape: tuple[int, ...], windows: Windows, offset: Sequence[int]) -> Any:
    """Compute the linear index of the element at one offset of every window; -1 in padding."""
    lead, flat, inside = len(shape) - len(windows.dims), jnp.zeros((), "int64"), jnp.asarray(True)
    for n, size in enumerate(windows.dims):
        steps = lax.broadcasted_iota(jnp.dtype("int64"), shape, lead + n) * windows.stride[n]
        at = steps + (offset[n] * windows.dilation[n] - windows.padding[n])
        inside, flat = inside & (at >= 0) & (at < size), flat * size + at
    return jnp.where(inside, flat, -1)


def _max_pool_backward(count: int, gradient: Any, x: Any, *rest: Any) -> Any:
    """Add each gradient to the largest element of its window, whose indices are the last
    argument."""
    places = rest[-1]
    lead = x.shape[:-count]
    size, rows = math.prod(x.shape[-count:]), math.prod(lead)
    flat = places.reshape(rows, -1) + lax.iota(places.dtype, rows)[:, None] * size
    zeros = jnp.zeros(rows * size, gradient.dtype)
    return zeros.at[flat.reshape(-1)].add(gradient.reshape(-1), mode="drop").reshape(x.shape)


def _adaptive_windows(extent: int, size: int) -> tuple[Any, Any]:
    """List the indices of ``size`` windows that cover a dimension, [size, width], and which of
    them are within their window: widths differ by one."""
    starts = np.arange(size) * extent // size
    ends = -(-(np.arange(size) + 1) * extent // size)
    index = starts[:, None] + np.arange(max(ends - starts, default=0))
    return np.minimum(index, extent - 1), index < ends[:, None]


def _adaptive_max_pool(x: Any, sizes: Sequence[int]) -> tuple[Any, Any]:
    """Pick the largest element of windows that divide each of the last dimensions into ``sizes``
    parts, and its linear index in them."""
    count, dims = len(sizes), x.shape[x.ndim - len(sizes) :]
    place: Any = np.zeros((1,) * 2 * count, np.int64)
    inside: Any = np.ones((1,) * 2 * count, bool)
    for n, (extent, size) in enumerate(zip(dims, sizes, strict=True)):
        shape = [1] * 2 * count
        index, own = _adaptive_windows(extent, size)
        shape[n], shape[count + n] = index.shape
        place, inside = place * extent + index.reshape(shape), inside & own.reshape(shape)
    place, inside = (np.broadcast_to(y, place.shape).reshape(*sizes, -1) for y in (place, inside))
    flat = x.reshape(*x.shape[: x.ndim - count], -1)
    elements = jnp.where(inside, flat[..., place], jnp.asarray(_lowest(x.dtype), x.dtype))
    # The first one within the window, as it is the first element; but the last NaN.
    best = jnp.argmax(elements, axis=-1)
    nan = (elements != elements)[..., ::-1]
    best = jnp.where(jnp.any(nan, -1), nan.shape[-1] - 1 - jnp.argmax(nan, -1), best)[..., None]
    values = jnp.take_along_axis(elements, best, axis=-1)[..., 0]
    places = jnp.take_along_axis(jnp.broadcast_to(place, elements.shape), best, axis=-1)[..., 0]
    return values, places


def _fractional_starts(size: int, kernel: int, count: int, sample: Any) -> Any:
    """Compute where windows of random distances begin, of samples between 0 and 1."""
    apart = jnp.asarray((size - kernel) / (count - 1) if count > 1 else 0, sample.dtype)
    places = lax.iota(sample.dtype, count)
    at = ((places + sample[..., None]) * apart).astype("int64")
    starts = at - (sample[..., None] * apart).astype("int64")
    return starts.at[..., -1].set(size - kernel)


def _fractional_max_pool(
    count: int, x: Any, kernel: Sequence[int], sizes: Sequence[int], samples: Any
) -> tuple[Any, Any]:
    """Compute the largest element of each window and its place, the last NaN if there is one."""
    batch, extents = x.shape[:-count], x.shape[-count:]
    # Those of two dimensions have the sample of the last one first.
    samples = (samples[..., ::-1] if count == 2 else samples).reshape(*batch, count)
    place = jnp.zeros((), "int64")
    for d, (extent, width, size) in enumerate(zip(extents, kernel, sizes, strict=True)):
        starts = _fractional_starts(extent, width, size, samples[..., d])
        own = starts[..., None] + lax.iota("int64", width)
        shape = [1] * (2 * count)
        shape[d], shape[count + d] = size, width
        place = place * extent + own.reshape(*batch, *shape)
    place = place.reshape(*batch, math.prod(sizes), math.prod(kernel))
    flat = x.reshape(*batch, 1, -1)
    values = jnp.take_along_axis(flat, place, axis=-1)
    missing = jnp.isnan(values)
    last = values.shape[-1] - 1 - jnp.argmax(missing[..., ::-1], axis=-1)
    best = jnp.where(jnp.any(missing, axis=-1), last, jnp.argmax(values, axis=-1))[..., None]
    found = (jnp.take_along_axis(y, best, axis=-1) for y in (values, place))
    value, at = (y.reshape(*batch, *sizes) for y in found)
    return value, at


def _avg_pool(count: int, x: Any, kernel: Any, *rest: Any) -> Any:
    """Compute the mean of each window; padding counts if asked for, overhang never does.

    ``rest`` is stride, padding, whether sizes are rounded up, whether padding counts, and a divisor
    instead of the number of elements.
    """
    defaults: tuple[Any, ...] = (), 0, False, True, None
    stride, padding, ceil, count_include_pad, divisor_override = (*rest, *defaults[len(rest) :])
    windows = Windows(x.shape[-count:], kernel, stride, padding, 1, ceil)
    dims = (1,) * (x.ndim - count)
    wide = x.astype("float32") if x.dtype.itemsize < 4 else x
    total = lax.reduce_window(
        wide, np.zeros((), wide.dtype), lax.add, dims + windows.kernel, dims + windows.stride,
        [(0, 0)] * (x.ndim - count) + windows.pads(),
    )  # fmt: skip
    if divisor_override is not None:
        return (total / jnp.asarray(divisor_override, total.dtype)).astype(x.dtype)
    divisors = _divisors(windows, count_include_pad).astype(total.dtype)
    return (total / divisors).astype(x.dtype)


def _divisors(windows: Windows, count_include_pad: bool) -> Any:
    """Count the elements of each window."""
    result = np.ones((), np.float64)
    for n, size in enumerate(windows.dims):
        pad = windows.padding[n]
        low, high = (-pad, size + pad) if count_include_pad else (0, size)
        starts = np.arange(windows.places[n]) * windows.stride[n] - pad
        ends = np.minimum(starts + windows.kernel[n], high)
        result = result[..., None] * (ends - np.maximum(starts, low))
    return jnp.asarray(result)


def _avg_pool_backward(count: int, gradient: Any, x: Any, *rest: Any) -> Any:
    return jax.vjp(lambda x: _avg_pool(count, x, *rest), x)[1](gradient)[0]


def _adaptive_avg_pool(x: Any, sizes: Sequence[int]) -> Any:
    """Compute means over windows that divide each of the last dimensions into ``sizes`` parts."""
    for n, size in enumerate(sizes):
        x = _adaptive_mean(x, x.ndim - len(sizes) + n, size)
    return x


def _adaptive_mean(x: Any, dim: int, size: int) -> Any:
    extent = x.shape[dim]
    if extent % size == 0:
        split = x.shape[:dim] + (size, extent // size) + x.shape[dim + 1 :]
        return jnp.mean(x.reshape(split), axis=dim + 1)
    bounds = [(n * extent // size, -(-(n + 1) * extent // size)) for n in range(size)]
    parts = [jnp.mean(lax.slice_in_dim(x, a, b, axis=dim), dim, keepdims=True) for a, b in bounds]
    return jnp.concatenate(parts, axis=dim)


def _adaptive_avg_pool_backward(count: int, gradient: Any, x: Any) -> Any:
    sizes = gradient.shape[-count:]
    return jax.vjp(lambda x: _adaptive_avg_pool(x, sizes), x)[1](gradient)[0]


def _normalized(x: Any, dims: Sequence[int], normalization: int, sizes: Sequence[int]) -> Any:
    """Scale a transform: not at all (0), by 1/sqrt(n) (1), or by 1/n (2)."""
    if normalization == 0:
        return x
    count = math.prod(sizes[d] for d in dims)
    factor = 1 / math.sqrt(count) if normalization == 1 else 1 / count
    return x * jnp.asarray(factor, x.dtype)


def _fft_c2c(x: Any, dims: Sequence[int], normalization: int, forward: bool) -> Any:
    for dim in dims:
        x = jnp.fft.fft(x, axis=dim) if forward else jnp.fft.ifft(x, axis=dim, norm="forward")
    return _normalized(x, dims, normalization, x.shape)


def _fft_r2c(x: Any, dims: Sequence[int], normalization: int, onesided: bool) -> Any:
    *others, last = dims
    y = jnp.fft.rfft(x, axis=last) if onesided else jnp.fft.fft(x, axis=last)
    y = _fft_c2c(y, others, 0, True)
    return _normalized(y, dims, normalization, x.shape)


def _fft_c2r(x: Any, dims: Sequence[int], normalization: int, last_size: int) -> Any:
    *others, last = dims
    y = jnp.fft.irfft(_fft_c2c(x, others, 0, False), last_size, axis=last, norm="forward")
    return _normalized(y, dims, normalization, y.shape)


def _per_rank(name: str, function: Any, ranks: Sequence[int] = (1, 2, 3)) -> dict[str, Operation]:
    return {name.format(n): unpromoted(partial(function, n)) for n in ranks}


OPS: dict[str, Operation] = {
    **_per_rank("max_pool{}d_with_indices", _max_pool, (2, 3)),
    **_per_rank("max_pool{}d_with_indices_backward", _max_pool_backward, (2, 3)),
    **_per_rank("avg_pool{}d", _avg_pool),
    **_per_rank("avg_pool{}d_backward", _avg_pool_backward, (2, 3)),
    **_per_rank("_adaptive_avg_pool{}d_backward", _adaptive_avg_pool_backward, (2, 3)),
    **_per_rank("adaptive_max_pool{}d_backward", _max_pool_backward, (2, 3)),
    **_per_rank("fractional_max_pool{}d", _fractional_max_pool, (2, 3)),
    **_per_rank("fractional_max_pool{}d_backward", _max_pool_backward, (2, 3)),
    "adaptive_max_pool2d": unpromoted(_adaptive_max_pool),
    "adaptive_max_pool3d": unpromoted(_adaptive_max_pool),
    "_adaptive_avg_pool2d": unpromoted(_adaptive_avg_pool),
    "_adaptive_avg_pool3d": unpromoted(_adaptive_avg_pool),
    "adaptive_avg_pool1d": unpromoted(_adaptive_avg_pool),
    "_fft_c2c": unpromoted(_fft_c2c),
    "_fft_r2c": unpromoted(_fft_r2c),
    "_fft_c2r": unpromoted(_fft_c2r),
}
