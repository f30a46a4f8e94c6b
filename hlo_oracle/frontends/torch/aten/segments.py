"""Operations of ATen that reduce segments of a dimension, with gradients.

Segments lie one after the other along ``axis``, as long as ``lengths`` say, or from each offset to
the next one; dimensions before it are batches, each with lengths of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from hlo_oracle.frontends.torch.aten.promotion import Operation, unpromoted

_WAYS = {"sum": "add", "mean": "add", "prod": "multiply", "max": "max", "min": "min"}
_FIRST = {"sum": 0, "mean": 0, "prod": 1, "max": -jnp.inf, "min": jnp.inf}


class _Segments(NamedTuple):
    """The segment of each element, as an index [batch, element], that of elements after the last
    one being the number of segments; and the segments' lengths [batch, segment]."""

    of: Any
    lengths: Any

    def place(self) -> tuple[Any, Any]:
        """Return the index of each element's segment."""
        return jnp.arange(self.of.shape[0])[:, None], self.of


def _segments(shape: Any, axis: int, lengths: Any, offsets: Any) -> _Segments:
    if offsets is None:
        if lengths is None:
            raise NotImplementedError("segments that are not given by lengths or offsets")
        rows = lengths.reshape(-1, lengths.shape[-1])
        ends = jnp.cumsum(rows, axis=1)
    else:
        bounds = offsets.reshape(-1, offsets.shape[-1])
        rows, ends = jnp.diff(bounds, axis=1), bounds[:, 1:]
    # The number of segments that end at or before an element is that of its own.
    places = jnp.arange(shape[axis], dtype=ends.dtype)
    return _Segments(jnp.sum(ends[:, None, :] <= places[:, None], axis=-1), rows)


def _batched(x: Any, axis: int) -> Any:
    """Arrange an array as [batch, along the axis, what lies within]."""
    batch, within = x.shape[:axis], x.shape[axis + 1 :]
    count = [1, 1]
    for size in batch:
        count[0] *= size
    for size in within:
        count[1] *= size
    return x.reshape(count[0], x.shape[axis], count[1])


def _segment_reduce(
    x: Any, reduce: str, *, lengths: Any = None, indices: Any = None, offsets: Any = None,
    axis: int = 0, unsafe: bool = False, initial: Any = None,
) -> Any:  # fmt: skip
    axis %= x.ndim
    segments, rows = _segments(x.shape, axis, lengths, offsets), _batched(x, axis)
    count = segments.lengths.shape[1]
    first = jnp.asarray(_FIRST[reduce] if initial is None else initial, x.dtype)
    start = jnp.full((rows.shape[0], count, rows.shape[2]), first)
    found = getattr(start.at[segments.place()], _WAYS[reduce])(rows, mode="drop")
    if reduce == "mean":
        size = segments.lengths[..., None].astype(x.dtype)
        empty = jnp.asarray(jnp.nan if initial is None else initial, x.dtype)
        found = jnp.where(size == 0, empty, found / jnp.where(size == 0, 1, size))
    return found.reshape(*x.shape[:axis], count, *x.shape[axis + 1 :])


def _segment_reduce_backward(
    gradient: Any, output: Any, x: Any, reduce: str, *, lengths: Any = None, offsets: Any = None,
    axis: int = 0, initial: Any = None,
) -> Any:  # fmt: skip
    """Compute the gradient: that of extremes is shared by equal elements, as NaN are. (ATen does so
    with gradients above 0 alone.)"""
    axis %= x.ndim
    segments, rows = _segments(x.shape, axis, lengths, offsets), _batched(x, axis)
    pulled = _of_each(_batched(gradient, axis), segments)
    if reduce == "mean":
        size = _of_each(segments.lengths[..., None], segments)
        pulled = pulled / jnp.maximum(size, 1).astype(x.dtype)
    elif reduce == "prod":
        pulled = pulled * _products_of_others(rows, segments, initial)
    elif reduce != "sum":
        value = _batched(output, axis)
        chosen = (rows == _of_each(value, segments)) | jnp.isnan(rows)
        counts = jnp.zeros(value.shape, x.dtype).at[segments.place()].add(
            chosen.astype(x.dtype), mode="drop"
        )  # fmt: skip
        share = _of_each(jnp.maximum(counts, 1), segments)
        pulled = jnp.where(chosen, pulled / share, 0)
    is_within = segments.of < segments.lengths.shape[1]
    return jnp.where(is_within[..., None], pulled, 0).astype(x.dtype).reshape(x.shape)


def _of_each(values: Any, segments: _Segments) -> Any:
    """Repeat values of segments for their elements; 0 after the last one."""
    return values.at[segments.place()].get(mode="fill", fill_value=0)


def _products_of_others(rows: Any, segments: _Segments, initial: Any) -> Any:
    """Multiply the other elements of each element's segment, and the initial one: zeros and NaN
    are counted, as nothing can be divided by them."""
    shape = rows.shape[0], segments.lengths.shape[1], rows.shape[2]
    one = jnp.ones((), rows.dtype)
    is_zero, is_nan = rows == 0, jnp.isnan(rows)
    rest = jnp.where(is_zero | is_nan, one, rows)
    start = jnp.full(shape, one if initial is None else jnp.asarray(initial, rows.dtype))
    product = _of_each(start.at[segments.place()].multiply(rest, mode="drop"), segments) / rest
    for marks, value in ((is_zero, 0), (is_nan, jnp.nan)):
        number = marks.astype(rows.dtype)
        total = jnp.zeros(shape, rows.dtype).at[segments.place()].add(number, mode="drop")
        others = _of_each(total, segments) - number
        product = jnp.where(others > 0, product * jnp.asarray(value, rows.dtype), product)
    return product


OPS: dict[str, Operation] = {
    "segment_reduce": unpromoted(_segment_reduce),
    "_segment_reduce_backward": unpromoted(_segment_reduce_backward),
}
