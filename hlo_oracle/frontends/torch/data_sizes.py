"""Decompose operations whose results have as many elements as the data says, while a trace has the
data: each becomes one whose size is a number.

PyTorch's indices of nonzero elements are in row-major order, its unique elements in ascending
order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

_ops = torch.ops.aten


def _nonzero(x: Any) -> Any:
    return torch.nonzero_static(x, size=_count(x))


def _count(x: Any) -> int:
    return int(torch.count_nonzero(x).item())


def _index(x: Any, indices: Sequence[Any]) -> Any:
    """Read at indices of which some are masks: a mask is the indices of its true elements."""
    if not any(map(_is_mask, indices)):
        return NotImplemented
    return _ops.index(x, _without_masks(indices))


def _index_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """Write at indices of which some are masks; one number at one mask needs no size."""
    if not any(map(_is_mask, indices)) or (values.numel() == 1 and not accumulate):
        return NotImplemented
    return _ops.index_put(x, _without_masks(indices), values, accumulate)


def _is_mask(index: Any) -> bool:
    return index is not None and index.dtype in (torch.bool, torch.uint8)


def _without_masks(indices: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for index in indices:
        found += _nonzero(index).unbind(1) if _is_mask(index) else [index]
    return found


def _masked_select(x: Any, mask: Any) -> Any:
    x, mask = torch.broadcast_tensors(x, mask)
    return x.reshape(-1)[_nonzero(mask.reshape(-1))[:, 0]]


def _unique(
    x: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Any, Any, Any]:
    """Find the distinct elements, the place of each element among them, and how often they are."""
    return _runs(x, *torch.sort(x.reshape(-1)))


def _unique_consecutive(
    x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Find the first elements of runs of equal ones."""
    if dim is not None:
        return NotImplemented
    flat = x.reshape(-1)
    return _runs(x, flat, torch.arange(flat.numel()))


def _runs(x: Any, row: Any, places: Any) -> tuple[Any, Any, Any]:
    """Return the first elements of the runs of equal elements in a row, the number of the run of
    each element of ``x``, whose places in the row's order are given, and the lengths of the
    runs."""
    if not row.numel():
        empty = torch.empty(0, dtype=torch.int64)
        return row, empty.reshape(x.shape), empty
    begins = torch.cat([torch.ones(1, dtype=torch.bool), row[1:] != row[:-1]])
    first = _nonzero(begins)[:, 0]
    run = torch.cumsum(begins.to(torch.int64), 0) - 1
    inverse = torch.zeros_like(run).scatter(0, places, run)
    counts = torch.diff(first, append=torch.full((1,), row.numel()))
    return row[first], inverse.reshape(x.shape), counts


def _repeats(repeats: Any, *, output_size: int | None = None) -> Any:
    if output_size is not None:
        return NotImplemented
    return _ops.repeat_interleave(repeats, output_size=int(repeats.sum().item()))


def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Sum weights, 1 without any, for each of the integers from 0 to the largest."""
    count = max(minlength, int(x.max().item()) + 1 if x.numel() else 0)
    if weights is None:
        weights = torch.ones(x.shape, dtype=torch.int64)
    elif not weights.is_floating_point():
        weights = weights.to(torch.float64)
    return torch.zeros(count, dtype=weights.dtype).index_add(0, x, weights)


TABLE: dict[Any, Callable[..., Any]] = {
    _ops.nonzero.default: _nonzero,
    _ops.index.Tensor: _index,
    _ops.index_put.default: _index_put,
    _ops.masked_select.default: _masked_select,
    _ops._unique2.default: _unique,
    _ops.unique_consecutive.default: _unique_consecutive,
    _ops.repeat_interleave.Tensor: _repeats,
    _ops.bincount.default: _bincount,
}
