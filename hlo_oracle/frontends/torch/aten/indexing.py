"""Operations of ATen that read and write by indices, and sort.

PyTorch's eager operations raise IndexError for an index out of range; here a read is clamped to the
nearest element, and a write is dropped, as in HLO.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from hlo_oracle.frontends.torch.aten.promotion import Operation, unpromoted
from hlo_oracle.frontends.torch.aten.reductions import vector_norm


def _taken(x: Any, dim: int, index: Any) -> Any:
    return jnp.take(x, index, axis=dim, mode="clip") if x.ndim else x


def _embedding(weight: Any, indices: Any, *rest: Any) -> Any:
    return jnp.take(weight, indices, axis=0, mode="clip")


def _embedding_renorm(weight: Any, indices: Any, most: float, ord: float) -> Any:
    """Scale the rows that are read, and whose norm is above a bound, down to it; by factors of
    f64, as ATen does."""
    flat = indices.reshape(-1)
    rows = _embedding(weight, flat)
    size = vector_norm(rows.dtype, rows, ord, 1, True)
    wide = rows.astype("float32") if rows.dtype.itemsize < 4 else rows
    factor = (most / (size.astype("float64") + 1e-7)).astype(wide.dtype)
    scaled = jnp.where(size > most, (wide * factor).astype(rows.dtype), rows)
    return weight.at[flat].set(scaled, mode="drop")


def _embedding_backward(
    gradient: Any, indices: Any, count: int, padding_idx: int, scale_by_frequency: bool
) -> Any:
    """Sum the gradients of each row of the table, except the padding's row; or take their mean."""
    flat = indices.reshape(-1)
    rows = gradient.reshape(flat.shape[0], -1)
    if scale_by_frequency:
        counts = jnp.zeros(count, rows.dtype).at[flat].add(1, mode="drop")
        rows = rows / jnp.take(counts, flat, mode="clip")[:, None]
    kept = jnp.where((flat == padding_idx)[:, None], jnp.zeros((), rows.dtype), rows)
    return jnp.zeros((count, rows.shape[1]), rows.dtype).at[flat].add(kept, mode="drop")


def _places(x: Any, indices: Sequence[Any]) -> tuple[Any, ...]:
    """Convert PyTorch's indices to NumPy's: None reads the whole dimension."""
    if any(index is not None and index.dtype == bool for index in indices):
        raise NotImplementedError("a mask as index, whose number of elements is data")
    return tuple(slice(None) if index is None else index for index in indices)


def _index(x: Any, indices: Sequence[Any]) -> Any:
    return x.at[_places(x, indices)].get(mode="clip")


def _index_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """Write values at indices, or add them there; a single mask selects."""
    how = "add" if accumulate else "set"
    given = [index for index in indices if index is not None]
    if len(given) == 1 and given[0].dtype == bool:
        first = next(n for n, index in enumerate(indices) if index is not None)
        return _masked_put(x, first, given[0], values.astype(x.dtype), how)
    return _updated(x, _places(x, indices), values.astype(x.dtype), how)


def _masked_put(x: Any, first: int, mask: Any, values: Any, how: str) -> Any:
    """Write values, in order, where a mask of the dimensions from ``first`` on is true, or add them
    there. There are as many as true elements, or one for all."""
    rest = x.shape[first + mask.ndim :]
    rows = x.reshape(*x.shape[:first], mask.size, *rest)
    chosen = mask.reshape(-1)
    along = values.ndim - 1 - len(rest)
    if along >= 0 and values.shape[along] != 1:
        if not values.size:
            return x
        # -1 before the first true element: clipped, and what is read there is not used.
        places = jnp.cumsum(chosen.astype("int64")) - 1
        values = jnp.take(values, places, axis=along, mode="clip")
    written = _sum(rows, values) if how == "add" else values
    chosen = chosen.reshape(-1, *(1 for _ in rest))
    return jnp.where(chosen, written, rows).reshape(x.shape)


def _sum(x: Any, y: Any) -> Any:
    return x | y if x.dtype == bool else x + y


_OF_BOOL = {"add": "max", "multiply": "min"}  # or, and


def _updated(x: Any, places: Any, values: Any, how: str) -> Any:
    """Update elements by a method of JAX (set, add, …), without those at places out of range."""
    method = _OF_BOOL.get(how, how) if x.dtype == bool else how
    return getattr(x.at[places], method)(values, mode="drop")


def _along(x: Any, dim: int, index: Any) -> tuple[Any, ...]:
    """Make the full index of ``gather`` and ``scatter``: ``index`` along one dimension, each
    element's own position along the others."""
    iotas = [lax.broadcasted_iota(index.dtype, index.shape, n) for n in range(index.ndim)]
    iotas[dim % max(index.ndim, 1)] = index
    return tuple(iotas)


def _gather(x: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    if not x.ndim or not index.size:
        return jnp.broadcast_to(jnp.zeros((), x.dtype) if x.ndim else x, index.shape)
    if not index.ndim:
        return jnp.take(x, index, mode="clip")
    return x.at[_along(x, dim, index)].get(mode="clip")


def _scattered(method: str) -> Operation:
    """Make a scatter by an update method of JAX (set, add, …)."""

    def scattered(x: Any, dim: int, index: Any, source: Any, *, reduce: str | None = None) -> Any:
        how = {"add": "add", "multiply": "multiply", None: method}[reduce]
        return _combined(x, dim, index, source, how)

    return unpromoted(scattered)


def _combined(x: Any, dim: int, index: Any, source: Any, how: str) -> Any:
    if not x.ndim:
        x, index = x[None], index.reshape(1)
        return _combined(x, 0, index, jnp.asarray(source).reshape(-1), how)[0]
    source = jnp.asarray(source, x.dtype)
    # ATen admits a source that is larger than the index, and reads its first elements.
    if source.ndim:
        source = source[tuple(slice(0, size) for size in index.shape)]
    return _updated(x, _along(x, dim, index), source, how)


_WAYS = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "max", "amin": "min"}


def _neutral(reduce: str, dtype: Any) -> Any:
    """Return the identity of a reduction."""
    if reduce in ("sum", "mean", "prod"):
        return jnp.asarray(int(reduce == "prod"), dtype)
    if dtype == np.bool_:
        return jnp.asarray(reduce == "amin")
    if jnp.issubdtype(dtype, jnp.inexact):
        return jnp.asarray(-jnp.inf if reduce == "amax" else jnp.inf, dtype)
    bounds = np.iinfo(dtype)
    return jnp.asarray(bounds.min if reduce == "amax" else bounds.max, dtype)


def _scatter_reduce(
    x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Reduce updates by index, with the old elements if ``include_self``."""
    # Only elements that get updates begin at the identity; the others stay.
    start = x if include_self else _combined(x, dim, index, _neutral(reduce, x.dtype), "set")
    result = _combined(start, dim, index, source, _WAYS[reduce])
    if reduce != "mean":
        return result
    one = jnp.ones((), x.dtype)
    ones = jnp.full(x.shape, one)
    first = ones if include_self else _combined(ones, dim, index, one - one, "set")
    counts = _combined(first, dim, index, one, "add")
    is_float = jnp.issubdtype(x.dtype, jnp.inexact)
    return result / counts if is_float else jnp.floor_divide(result, counts)


def _index_write(how: str) -> Operation:
    def written(x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
        if not jnp.ndim(source):
            source = jnp.broadcast_to(source, ())
        source = source if alpha == 1 else source * jnp.asarray(alpha, x.dtype)
        where = (slice(None),) * (dim % x.ndim) + (index,)
        return _updated(x, where, source, how)

    return unpromoted(written)


def _index_fill(x: Any, dim: int, index: Any, value: Any) -> Any:
    where = (slice(None),) * (dim % x.ndim) + (index,)
    return x.at[where].set(jnp.asarray(value, x.dtype), mode="drop")


def _index_reduce(
    x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Reduce slices of ``source`` into those of x that the index names."""
    sizes = [index.shape[0] if n == dim % source.ndim else 1 for n in range(source.ndim)]
    full = jnp.broadcast_to(index.reshape(sizes), source.shape)
    return _scatter_reduce(x, dim, full, source, reduce, include_self=include_self)


def _masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    """Write the elements of ``source``, in order, where the mask is true."""
    x, mask = jnp.broadcast_arrays(x, mask)
    # -1 before the first true element: clipped below, and what is read there is not used.
    places = (jnp.cumsum(mask.reshape(-1).astype("int64")) - 1).reshape(mask.shape)
    if not source.size:
        return x
    taken = jnp.take(source.reshape(-1), places, mode="clip")
    return jnp.where(mask, taken.astype(x.dtype), x)


def _masked_scatter_backward(gradient: Any, mask: Any, sizes: Any) -> Any:
    """Move the gradients at a mask to the first elements of what was scattered, in order."""
    count = math.prod(sizes)
    chosen = jnp.broadcast_to(mask, gradient.shape).reshape(-1)
    place = jnp.where(chosen, jnp.cumsum(chosen) - 1, count)
    start = jnp.zeros(count, gradient.dtype)
    return start.at[place].set(gradient.reshape(-1), mode="drop").reshape(sizes)


def _put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Write elements at linear indices, those below 0 counted from the end."""
    how = "add" if accumulate else "set"
    return _updated(x.reshape(-1), index.reshape(-1), source.reshape(-1), how).reshape(x.shape)


def _take(x: Any, index: Any) -> Any:
    """Read elements at linear indices, those below 0 counted from the end."""
    return x.reshape(-1).at[index].get(mode="clip")


def _sort(x: Any, dim: int = -1, descending: bool = False, **named: Any) -> tuple[Any, Any]:
    """Sort stably; return the values, and their indices before."""
    if not x.ndim:
        return x, jnp.zeros((), "int64")
    dim = named.get("dim", dim) % x.ndim
    descending = named.get("descending", descending)
    places = jnp.argsort(x, axis=dim, stable=True, descending=descending)
    return jnp.take_along_axis(x, places, axis=dim), places.astype("int64")


def _topk(
    x: Any, k: int, dim: int = -1, largest: bool = True, is_sorted: bool = True
) -> tuple[Any, Any]:
    values, places = _sort(x, dim, largest)
    if not x.ndim:
        return values, places
    return tuple(lax.slice_in_dim(y, 0, k, axis=dim % x.ndim) for y in (values, places))  # type: ignore[return-value]


def _searched(boundaries: Any, values: Any, right: bool) -> Any:
    """Find the place of each value in sorted boundaries, by rows if those have several.

    It is ATen's search: a boundary is passed unless it is larger (or, from the left, equal), and so
    is each one for NaN, and NaN for each value.
    """
    values = jnp.asarray(values)
    if 0 in (boundaries.size, values.size):
        return jnp.zeros(values.shape, "int64")
    count = boundaries.shape[-1]
    rows = boundaries.reshape(-1, count)
    wanted = values.reshape(rows.shape[0], -1)

    def halved(_: Any, bounds: tuple[Any, Any]) -> tuple[Any, Any]:
        start, end = bounds
        middle = (start + end) // 2
        found = jnp.take_along_axis(rows, jnp.minimum(middle, count - 1), axis=1)
        passes = ~(found > wanted if right else found >= wanted) & (start < end)
        return jnp.where(passes, middle + 1, start), jnp.where(passes, end, middle)

    first = jnp.zeros(wanted.shape, "int64"), jnp.full(wanted.shape, count, "int64")
    start, _ = lax.fori_loop(0, count.bit_length(), halved, first)
    return start.reshape(values.shape)


def _searchsorted(
    boundaries: Any, values: Any, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Any = None,
) -> Any:  # fmt: skip
    if sorter is not None:
        boundaries = jnp.take_along_axis(boundaries, sorter, axis=-1)
    return _searched(boundaries, values, right or side == "right")


def _bucketize(
    values: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False
) -> Any:
    return _searched(boundaries, values, right)


OPS: dict[str, Operation] = {
    "embedding": unpromoted(_embedding),
    "embedding_renorm": unpromoted(_embedding_renorm),
    "embedding_dense_backward": unpromoted(_embedding_backward),
    "index": unpromoted(_index),
    "_unsafe_index": unpromoted(_index),
    "index_put": unpromoted(_index_put),
    "_unsafe_index_put": unpromoted(_index_put),
    "index_add": _index_write("add"),
    "index_copy": _index_write("set"),
    "index_fill": unpromoted(_index_fill),
    "index_reduce": unpromoted(_index_reduce),
    "index_select": unpromoted(_taken),
    "gather": unpromoted(_gather),
    "masked_scatter": unpromoted(_masked_scatter),
    "masked_scatter_backward": unpromoted(_masked_scatter_backward),
    "put": unpromoted(_put),
    "scatter": _scattered("set"),
    "scatter_add": _scattered("add"),
    "scatter_reduce": unpromoted(_scatter_reduce),
    "sort": unpromoted(_sort),
    "argsort": unpromoted(lambda *given, **named: _sort(*given, **named)[1]),
    "topk": unpromoted(_topk),
    "searchsorted": unpromoted(_searchsorted),
    "bucketize": unpromoted(_bucketize),
    "take": unpromoted(_take),
}
