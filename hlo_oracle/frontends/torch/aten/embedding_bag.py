"""Operations of ATen that reduce rows of a table in bags, with gradients.

Bag b has the indices from offsets[b] up to offsets[b + 1]; those equal to ``padding_idx`` do not
count, nor do those after the last offset where it is an end.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from hlo_oracle.frontends.torch.aten.promotion import Operation, unpromoted

_SUM, _MEAN, _MAX = range(3)  # ATen's modes


def _embedding_bag(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = _SUM,
    *rest: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Reduce the rows of each bag; return also each index's bag, the bags' sizes, and for ``max``
    the indices of the largest elements.

    ``rest`` is whether gradients are sparse, a factor of each row, whether the last offset is an
    end, and the index that does not count.
    """
    defaults: tuple[Any, ...] = False, None, False, -1
    _, factors, has_end, padding_idx = (*rest, *defaults[len(rest) :])
    count = offsets.shape[0] - int(has_end)
    bags = _bags(indices, offsets)
    counts = (indices != padding_idx) & (bags < count)
    added = counts.astype(indices.dtype)
    sizes = jnp.zeros(count, indices.dtype).at[bags].add(added, mode="drop")
    rows = jnp.take(weight, indices, axis=0, mode="clip")
    if factors is not None:
        rows = rows * factors[:, None]
    if mode == _MAX:
        result, best = _largest(rows, bags, counts, indices, count)
        return result, bags, sizes, best
    kept = jnp.where(counts[:, None], rows, jnp.zeros((), rows.dtype))
    total = jnp.zeros((count, rows.shape[1]), rows.dtype).at[bags].add(kept, mode="drop")
    if mode == _MEAN:
        total = total / jnp.maximum(sizes, 1)[:, None].astype(total.dtype)
    return total, bags, sizes, jnp.zeros_like(sizes)


def _bags(indices: Any, offsets: Any) -> Any:
    """Find each index's bag, the last one that begins at or before it: of bags with equal offsets
    all but the last are empty."""
    at = jnp.arange(indices.shape[0], dtype=offsets.dtype)
    return jnp.searchsorted(offsets, at, side="right").astype(indices.dtype) - 1


def _largest(rows: Any, bags: Any, counts: Any, indices: Any, count: int) -> tuple[Any, Any]:
    """Pick each bag's largest elements, 0 of an empty bag, and the indices of their rows.

    An element takes the place of those before it if it is larger: so NaN is the largest one where
    it is the first, and is passed over elsewhere.
    """
    end, columns = rows.shape
    if not end:
        return jnp.zeros((count, columns), rows.dtype), jnp.full(
            (count, columns), -1, indices.dtype
        )
    at = jnp.where(counts, jnp.arange(end), end)
    begins = jnp.full(count, end, at.dtype).at[bags].min(at, mode="drop")
    lowest = jnp.asarray(-jnp.inf, rows.dtype)
    kept = jnp.where(counts[:, None] & ~jnp.isnan(rows), rows, lowest)
    best = jnp.full((count, columns), lowest).at[bags].max(kept, mode="drop")
    is_best = kept == jnp.take(best, bags, axis=0, mode="clip")
    place = jnp.full(best.shape, end, at.dtype)
    place = place.at[bags].min(jnp.where(is_best, at[:, None], end), mode="drop")
    last = end - 1
    starts_with_nan = jnp.isnan(rows[jnp.minimum(begins, last)])
    place = jnp.where(starts_with_nan, begins[:, None], place)
    empty, place = place == end, jnp.minimum(place, last)
    values = jnp.take_along_axis(rows, place, axis=0)
    return jnp.where(empty, jnp.zeros((), rows.dtype), values), jnp.where(empty, -1, indices[place])


def _backward(
    gradient: Any, indices: Any, offsets: Any, bags: Any, sizes: Any, best: Any, *rest: Any
) -> Any:
    """Sum the gradients of each row; ``rest`` is the number of rows, whether to scale, the mode,
    whether the gradient is sparse, factors, and the index that does not count."""
    count, scale, mode, is_sparse, *others = rest
    if is_sparse:
        raise NotImplementedError("sparse gradients")
    bags = _known(bags, indices, offsets)
    return _dense_backward(gradient, indices, bags, sizes, best, count, scale, mode, *others)


def _known(bags: Any, indices: Any, offsets: Any) -> Any:
    """Return each index's bag: ATen leaves them out of the results of some sums."""
    return bags if bags.shape == indices.shape else _bags(indices, offsets)


def _factors_backward(
    gradient: Any, weight: Any, indices: Any, offsets: Any, bags: Any, *rest: Any
) -> Any:
    """Compute the gradient of the factor of each row; ``rest`` is the mode, which is a sum, and
    the index that does not count."""
    _, padding_idx = (*rest, -1)[:2]
    bags = _known(bags, indices, offsets)
    rows = jnp.take(weight, indices, axis=0, mode="clip")
    products = jnp.sum(jnp.take(gradient, bags, axis=0, mode="clip") * rows, axis=1)
    counts = (indices != padding_idx) & (bags < gradient.shape[0])
    return jnp.where(counts, products, jnp.zeros((), products.dtype))


def _dense_backward(
    gradient: Any, indices: Any, bags: Any, sizes: Any, best: Any, *rest: Any
) -> Any:
    """Sum the gradients of each row of a dense gradient; see :func:`_backward`."""
    count, scale, mode, factors, *padding = rest
    if scale:
        raise NotImplementedError("gradients scaled by the frequency of their indices")
    zeros = jnp.zeros((count, gradient.shape[1]), gradient.dtype)
    if mode == _MAX:
        columns = jnp.broadcast_to(jnp.arange(gradient.shape[1]), best.shape)
        place = jnp.where(best < 0, count, best)  # of an empty bag: dropped
        return zeros.at[place, columns].add(gradient, mode="drop")
    rows = jnp.take(gradient, bags, axis=0, mode="clip")
    if mode == _MEAN:
        divisors = jnp.take(jnp.maximum(sizes, 1), bags, mode="clip")
        rows = rows / divisors[:, None].astype(rows.dtype)
    if factors is not None:
        rows = rows * factors[:, None]
    counts = (indices != (padding[0] if padding else -1)) & (bags < gradient.shape[0])
    rows = jnp.where(counts[:, None], rows, jnp.zeros((), rows.dtype))
    return zeros.at[indices].add(rows, mode="drop")


OPS: dict[str, Operation] = {
    "_embedding_bag": unpromoted(_embedding_bag),
    "_embedding_bag_forward_only": unpromoted(_embedding_bag),
    "_embedding_bag_backward": unpromoted(_backward),
    "_embedding_bag_dense_backward": unpromoted(_dense_backward),
    "_embedding_bag_per_sample_weights_backward": unpromoted(_factors_backward),
}
