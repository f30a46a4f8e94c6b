"""Decompose views by strides into indices, which the strides of their operands give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from hlo.errors import Unsupported
from hlo_oracle.frontends.torch.graphs import at_line, op_name
from hlo_oracle.frontends.torch.tensors import order_of


def _flat(x: Any) -> tuple[Any, tuple[int, ...]] | None:
    """Return a tensor's elements as they lie in memory, and the order of its dimensions there;
    None if they do not lie there each once."""
    sizes, strides = tuple(x.shape), tuple(x.stride())
    if not all(isinstance(n, int) for n in (*sizes, *strides)):
        return None
    order = order_of(sizes, strides)
    expected = 1
    for n in reversed(order):
        if sizes[n] != 1 and strides[n] != expected:
            return None
        expected *= sizes[n]
    return x.permute(order).reshape(-1), order


def _places(x: Any, size: Sequence[int], stride: Sequence[int], first: int | None) -> Any:
    """Compute the place among a tensor's elements of each element of a view, which is
    first + Σ index[n] * stride[n] in memory; None if one lies outside of the tensor."""
    start = 0 if first is None else first - x.storage_offset()
    spans = [(n - 1) * step for n, step in zip(size, stride, strict=True)]
    if 0 not in size and not 0 <= start <= start + sum(spans) < x.numel():
        return None
    places = torch.full((), start, dtype=torch.int64)
    for extent, step in zip(size, stride, strict=True):
        places = places.unsqueeze(-1) + torch.arange(extent) * step
    return places


def _as_strided(
    x: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Any:
    found = _flat(x)
    places = _places(x, size, stride, storage_offset)
    return NotImplemented if found is None or places is None else found[0][places]


def _as_strided_scatter(
    x: Any, source: Any, size: Sequence[int], stride: Sequence[int],
    storage_offset: int | None = None,
) -> Any:  # fmt: skip
    found = _flat(x)
    places = _places(x, size, stride, storage_offset)
    if found is None or places is None:
        return NotImplemented
    flat, order = found
    written = flat.index_put((places,), source.expand(places.shape))
    back = sorted(range(len(order)), key=order.__getitem__)
    return written.reshape([x.shape[n] for n in order]).permute(back)


def require_own_memory(graph: Any) -> None:
    """Raise Unsupported for a view by strides of a view that lies in its memory otherwise than in
    order: functionalization copies that view, and the strides would count in the copy."""
    for node in graph.nodes:
        if "as_strided" not in op_name(node) or node.args[0].op == "placeholder":
            continue
        fake = node.args[0].meta["val"]
        if not fake.is_contiguous() or fake.storage_offset():
            raise Unsupported(f"{op_name(node)}{at_line(node)}: strides in the memory of a view")


TABLE: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.as_strided.default: _as_strided,
    torch.ops.aten.as_strided_copy.default: _as_strided,
    torch.ops.aten.as_strided_scatter.default: _as_strided_scatter,
}
