"""Decompose views by strides into indices, which the strides of their operands give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from hlo_oracle.frontends.torch.tensors import dense_order


def place_of_view(
    x: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> tuple[tuple[int, ...], int] | None:
    """Return the order of a tensor's dimensions in memory, and the place of a view's first element
    among its elements in that order.

    Element ``index`` of the view follows the first one by Σ index[n] * stride[n]. None for symbolic
    sizes, for a tensor whose elements do not lie in its memory each once without gaps, and for a
    view with elements outside of it.
    """
    sizes, strides, own = tuple(x.shape), tuple(x.stride()), x.storage_offset()
    first = own if storage_offset is None else storage_offset
    if not all(isinstance(n, int) for n in (*sizes, *strides, own, *size, *stride, first)):
        return None
    order, start = dense_order(sizes, strides), first - own
    spans = [(n - 1) * step for n, step in zip(size, stride, strict=True)]
    if 0 not in size and not 0 <= start <= start + sum(spans) < x.numel():
        return None
    return None if order is None else (order, start)


def _places(size: Sequence[int], stride: Sequence[int], start: int) -> Any:
    places = torch.full((), start, dtype=torch.int64)
    for extent, step in zip(size, stride, strict=True):
        places = places.unsqueeze(-1) + torch.arange(extent) * step
    return places


def _as_strided(
    x: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Any:
    found = place_of_view(x, size, stride, storage_offset)
    if found is None:
        return NotImplemented
    order, start = found
    return x.permute(order).reshape(-1)[_places(size, stride, start)]


def _as_strided_scatter(
    x: Any, source: Any, size: Sequence[int], stride: Sequence[int],
    storage_offset: int | None = None,
) -> Any:  # fmt: skip
    found = place_of_view(x, size, stride, storage_offset)
    if found is None:
        return NotImplemented
    order, start = found
    places = _places(size, stride, start)
    flat = x.permute(order).reshape(-1)
    written = flat.index_put((places,), source.expand(places.shape))
    back = sorted(range(len(order)), key=order.__getitem__)
    return written.reshape([x.shape[n] for n in order]).permute(back)


# Not as_strided itself: as a result of a graph it must stay a view (:mod:`rewriting`).
TABLE: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.as_strided_copy.default: _as_strided,
    torch.ops.aten.as_strided_scatter.default: _as_strided_scatter,
}
