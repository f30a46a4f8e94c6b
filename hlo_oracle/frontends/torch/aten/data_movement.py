"""Operations of ATen that move elements (views, slices, concatenation, padding) or make
constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from hlo_oracle.frontends.torch.aten.promotion import Operation, as_type, typed, unpromoted

_END = 2**63 - 1  # PyTorch's end of a slice that has none


def _view(result: Any, x: Any, sizes: Any) -> Any:
    """Reshape, or reinterpret the bits in another type (``view.dtype``)."""
    if isinstance(sizes, list | tuple):
        return jnp.reshape(x, _completed(sizes, x.size))
    if np.bool_ in (x.dtype, result):
        return x.astype(result)
    if x.dtype.itemsize < result.itemsize:  # JAX makes one of the elements of the last dimension
        count = result.itemsize // x.dtype.itemsize
        x = x.reshape(*x.shape[:-1], x.shape[-1] // count, count)
    value = lax.bitcast_convert_type(x, result)
    return value if value.ndim <= x.ndim else value.reshape(*x.shape[:-1], -1)


def _completed(sizes: Sequence[int], count: int) -> tuple[int, ...]:
    """Replace -1 in sizes by the size that makes ``count`` elements."""
    if -1 not in sizes:
        return tuple(sizes)
    known = math.prod(size for size in sizes if size != -1)
    return tuple(count // known if size == -1 else size for size in sizes)


def _permute(x: Any, dims: Sequence[int]) -> Any:
    return jnp.transpose(x, [d % x.ndim for d in dims])


def _transpose(x: Any, dim0: int = 0, dim1: int = 1) -> Any:
    return jnp.swapaxes(x, dim0, dim1) if x.ndim > 1 else x


def _squeeze(x: Any, dim: int | Sequence[int] | None = None) -> Any:
    """Remove dimensions of size 1: all, or those named that have this size."""
    if dim is None:
        return jnp.squeeze(x)
    dims = (dim,) if isinstance(dim, int) else dim
    return jnp.squeeze(x, tuple(d % x.ndim for d in dims if x.ndim and x.shape[d] == 1))


def _expand(x: Any, sizes: Sequence[int], *, implicit: bool = False) -> Any:
    own = (1,) * (len(sizes) - x.ndim) + x.shape
    full = [mine if size == -1 else size for size, mine in zip(sizes, own, strict=True)]
    return jnp.broadcast_to(x, full)


def _range(extent: int, start: int | None, end: int | None) -> tuple[int, int]:
    """Compute the start and end of a slice, clamped as PyTorch does."""

    def place(index: int) -> int:
        return max(0, min(index + extent if index < 0 else index, extent))

    first = place(start or 0)
    return first, max(first, place(extent if end is None or end == _END else end))


def _slice(
    x: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    first, last = _range(x.shape[dim], start, end)
    return lax.slice_in_dim(x, first, last, step, axis=dim % x.ndim)


def _slice_scatter(
    x: Any, source: Any, dim: int = 0, start: int | None = None, end: int | None = None,
    step: int = 1,
) -> Any:  # fmt: skip
    """Replace the elements of a slice by ``source``."""
    first, last = _range(x.shape[dim], start, end)
    dim %= x.ndim
    if step != 1:
        where = (slice(None),) * dim + (slice(first, last, step),)
        return x.at[where].set(source.astype(x.dtype))
    # A concatenation fuses with its readers, which an update of a slice does not.
    parts = (
        lax.slice_in_dim(x, 0, first, axis=dim),
        source.astype(x.dtype),
        lax.slice_in_dim(x, last, x.shape[dim], axis=dim),
    )
    return jnp.concatenate([part for part in parts if part.shape[dim]] or [source], axis=dim)


def _select(x: Any, dim: int, index: int) -> Any:
    return lax.index_in_dim(x, index % x.shape[dim], dim % x.ndim, keepdims=False)


def _select_scatter(x: Any, source: Any, dim: int, index: int) -> Any:
    index %= x.shape[dim]
    return _slice_scatter(x, jnp.expand_dims(source, dim), dim, index, index + 1)


def _diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return jnp.diagonal(x, offset, dim1, dim2)


def _diagonal_scatter(x: Any, source: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Replace the elements of a diagonal by ``source``, whose last dimension goes along it."""
    moved = jnp.moveaxis(x, (dim1, dim2), (-2, -1))
    rows = jnp.arange(source.shape[-1]) + max(-offset, 0)
    columns = jnp.arange(source.shape[-1]) + max(offset, 0)
    written = moved.at[..., rows, columns].set(source.astype(x.dtype))
    return jnp.moveaxis(written, (-2, -1), (dim1, dim2))


def _cat(result: Any, arrays: Sequence[Any], dim: int = 0) -> Any:
    # Arrays of shape [0] are left out whatever the rank of the others.
    kept = [x for x in arrays if x.shape != (0,)]
    return jnp.concatenate([x.astype(result) for x in kept or arrays], axis=dim if kept else 0)


def _split(x: Any, sizes: int | Sequence[int], dim: int = 0) -> list[Any]:
    extent = x.shape[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, extent - first) for first in range(0, extent, sizes)] or [0]
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    return [_slice(x, dim, first, first + size) for first, size in zip(starts, sizes, strict=True)]


def _unbind(x: Any, dim: int = 0) -> list[Any]:
    return [_select(x, dim, n) for n in range(x.shape[dim])]


def _roll(x: Any, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    """Roll along dimensions, or all elements where none is named."""
    return jnp.roll(x, tuple(shifts), tuple(dims)) if dims else jnp.roll(x, shifts[0])


def _repeat(x: Any, repeats: Sequence[int]) -> Any:
    return jnp.tile(x.reshape((1,) * (len(repeats) - x.ndim) + x.shape), repeats)


def _pad(result: Any, x: Any, padding: Sequence[int], value: Any = 0) -> Any:
    """Pad by pairs of sizes that begin at the last dimension; negative ones cut."""
    pairs = list(zip(padding[::2], padding[1::2], strict=True))[::-1]
    config = [(0, 0, 0)] * (x.ndim - len(pairs)) + [(low, high, 0) for low, high in pairs]
    return lax.pad(x, jnp.asarray(value, x.dtype), config)


def _triangle(function: Any) -> Operation:
    return unpromoted(lambda x, diagonal=0: function(x, diagonal))


def _triangle_indices(function: Any) -> Operation:
    """Make the row and column indices of a triangle, in order."""

    def indices(result: Any, rows: int, columns: int, offset: int = 0, **named: Any) -> Any:
        return jnp.asarray(np.stack(function(rows, offset, columns)), result)

    return indices


def _full(result: Any, sizes: Sequence[int], value: Any, **named: Any) -> Any:
    return jnp.full(sizes, value, result)


def _filled(value: Any) -> Operation:
    return typed(lambda result, sizes, *rest, **named: jnp.full(sizes, value, result))


def _filled_like(value: Any) -> Operation:
    return typed(lambda result, x, **named: jnp.full(x.shape, value, result))


def _arange(result: Any, *bounds: Any, **named: Any) -> Any:
    """Make start, start + step, … up to end, in the type of the result."""
    named = {name: value for name, value in named.items() if name in ("start", "end", "step")}
    if named:
        bounds = (named.get("start", 0), named["end"], named.get("step", 1))
    start, end, step = {1: (0, *bounds, 1), 2: (*bounds, 1)}.get(len(bounds), bounds)
    count = max(math.ceil((end - start) / step), 0)
    if jnp.issubdtype(result, jnp.integer):
        return jnp.asarray(start + lax.iota(jnp.dtype("int64"), count) * step, result)
    places = lax.iota(jnp.dtype("float64"), count)  # each element is rounded once
    return jnp.asarray(start + places * step, result)


def _frequencies(result: Any, count: int, d: float = 1.0, **named: Any) -> Any:
    """Make 0, 1, … and then …, -2, -1 over ``count * d``: the frequencies of a transform."""
    places = lax.iota(jnp.dtype("int64"), count)
    signed = jnp.where(places < (count + 1) // 2, places, places - count)
    return jnp.asarray(signed, result) * jnp.asarray(1 / (count * d), result)


def _half_frequencies(result: Any, count: int, d: float = 1.0, **named: Any) -> Any:
    places = lax.iota(jnp.dtype("int64"), count // 2 + 1)
    return jnp.asarray(places, result) * jnp.asarray(1 / (count * d), result)


def _zeros_of_tangent(result: Any, x: Any, other: Any, *, self_num_batch_dims: int = 0) -> Any:
    return jnp.zeros(x.shape[:self_num_batch_dims] + other.shape, result)


def _eye(result: Any, rows: int, columns: int | None = None, **named: Any) -> Any:
    return jnp.eye(rows, columns, dtype=result)


def _copy(result: Any, x: Any, source: Any, *rest: Any) -> Any:
    return jnp.broadcast_to(jnp.asarray(source, result), x.shape)


def _narrow(x: Any, dim: int, start: int, length: int) -> Any:
    first = start % x.shape[dim] if start < 0 else start
    return lax.slice_in_dim(x, first, first + length, axis=dim % x.ndim)


def _unfold(x: Any, dim: int, size: int, step: int) -> Any:
    """Extract windows along a dimension, their elements in a new last dimension."""
    if not x.ndim:
        return x.reshape(1)[:size]
    dim %= x.ndim
    count = (x.shape[dim] - size) // step + 1
    parts = [_slice(x, dim, n, n + (count - 1) * step + 1, step) for n in range(size)]
    return jnp.stack(parts, axis=-1)


def _as_strided(
    x: Any, size: Sequence[int], stride: Sequence[int], order: Sequence[int], start: int
) -> Any:
    """Read element start + Σ index[n] * stride[n] of the elements in an order of dimensions."""
    flat = jnp.transpose(x, order).reshape(-1)
    place = jnp.asarray(start, "int64")
    for d, step in enumerate(stride):
        place = place + lax.broadcasted_iota("int64", size, d) * step
    return flat[jnp.broadcast_to(place, size)]


def _as_pairs(x: Any) -> Any:
    return jnp.stack([jnp.real(x), jnp.imag(x)], axis=-1)


def _as_complex(x: Any) -> Any:
    return lax.complex(x[..., 0], x[..., 1])


def _broadcast_in_dim(x: Any, sizes: Sequence[int], dimensions: Sequence[int]) -> Any:
    return lax.broadcast_in_dim(x, tuple(sizes), tuple(dimensions))


def _iota(result: Any, length: int, *, start: int, step: int, **named: Any) -> Any:
    return lax.iota(result, length) * jnp.asarray(step, result) + jnp.asarray(start, result)


_SAME = unpromoted(lambda x, *rest, **named: x)

OPS: dict[str, Operation] = {
    "view": typed(_view),
    "_unsafe_view": typed(_view),
    "reshape": typed(_view),
    "_reshape_copy": typed(_view),
    "permute": unpromoted(_permute),
    "transpose": unpromoted(_transpose),
    "t": unpromoted(_transpose),
    "unsqueeze": unpromoted(lambda x, dim: jnp.expand_dims(x, dim)),
    "squeeze": unpromoted(_squeeze),
    "broadcast_in_dim": unpromoted(_broadcast_in_dim),
    "view_of": _SAME,
    "iota": typed(_iota),
    "expand": unpromoted(_expand),
    "slice": unpromoted(_slice),
    "slice_scatter": unpromoted(_slice_scatter),
    "select": unpromoted(_select),
    "select_scatter": unpromoted(_select_scatter),
    "diagonal": unpromoted(_diagonal),
    "diagonal_scatter": unpromoted(_diagonal_scatter),
    "cat": typed(_cat),
    "stack": unpromoted(lambda arrays, dim=0: jnp.stack(arrays, axis=dim)),
    "split": unpromoted(_split),
    "split_with_sizes": unpromoted(_split),
    "unbind": unpromoted(_unbind),
    "unfold": unpromoted(_unfold),
    "as_strided": unpromoted(_as_strided),
    "narrow_copy": unpromoted(_narrow),
    "flip": unpromoted(lambda x, dims: jnp.flip(x, tuple(dims))),
    "roll": unpromoted(_roll),
    "repeat": unpromoted(_repeat),
    "constant_pad_nd": typed(_pad),
    "tril_indices": _triangle_indices(np.tril_indices),
    "triu_indices": _triangle_indices(np.triu_indices),
    "tril": _triangle(jnp.tril),
    "triu": _triangle(jnp.triu),
    "view_as_complex": unpromoted(_as_complex),
    "view_as_real": unpromoted(_as_pairs),
    "clone": _SAME,
    "alias": _SAME,
    "detach": _SAME,
    "lift_fresh_copy": _SAME,
    "contiguous": _SAME,
    "copy": typed(_copy),
    "fill": typed(lambda result, x, value: jnp.full(x.shape, value, result)),
    "full": typed(_full),
    "full_like": typed(lambda result, x, value, **named: jnp.full(x.shape, value, result)),
    "new_full": typed(lambda result, x, sizes, value, **named: jnp.full(sizes, value, result)),
    "new_zeros": typed(lambda result, x, sizes, **named: jnp.zeros(sizes, result)),
    "new_ones": typed(lambda result, x, sizes, **named: jnp.ones(sizes, result)),
    # Memory that nobody wrote: zeros are as good as anything.
    "empty": _filled(0),
    "empty_strided": _filled(0),
    "empty_permuted": _filled(0),
    "empty_like": _filled_like(0),
    "new_empty": typed(lambda result, x, sizes, **named: jnp.zeros(sizes, result)),
    "new_empty_strided": typed(lambda result, x, sizes, *rest, **named: jnp.zeros(sizes, result)),
    "zeros": _filled(0),
    "_efficientzerotensor": _filled(0),
    "_new_zeros_with_same_feature_meta": typed(_zeros_of_tangent),
    "is_same_size": unpromoted(lambda x, other: x.shape == other.shape),
    "_has_same_storage_numel": unpromoted(lambda x, other: x.size == other.size),
    "fft_fftfreq": typed(_frequencies),
    "fft_rfftfreq": typed(_half_frequencies),
    "ones": _filled(1),
    "zeros_like": _filled_like(0),
    "ones_like": _filled_like(1),
    "scalar_tensor": typed(lambda result, value, **named: as_type(value, result)),
    "arange": typed(_arange),
    "eye": typed(_eye),
}
