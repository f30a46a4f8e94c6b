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
    """Find the first elements, or slices along a dimension, of runs of equal ones."""
    if dim is not None:
        rows = _rows(x, dim)
        begins = torch.ones(rows.shape[0], dtype=torch.bool)
        begins[1:] = (rows[1:] != rows[:-1]).any(1)
        return _distinct(x, dim, torch.cumsum(begins.to(torch.int64), 0))
    flat = x.reshape(-1)
    return _runs(x, flat, torch.arange(flat.numel()))


def _unique_dim(
    x: Any, dim: int, sorted: bool = True, return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Find the distinct slices along a dimension, in lexicographic order.

    Neighbouring columns become one, of the ranks of their pairs, until one is left.
    """
    ranks = _ranks(_rows(x, dim))
    while ranks.shape[1] > 1:
        paired = ranks.shape[1] // 2 * 2
        # Ranks are less than the number of rows n: a n + b orders pairs (a, b) lexicographically.
        pairs = ranks[:, 0:paired:2] * ranks.shape[0] + ranks[:, 1:paired:2]
        ranks = torch.cat([_ranks(pairs), ranks[:, paired:]], 1)
    return _distinct(x, dim, ranks[:, 0])


def _rows(x: Any, dim: int) -> Any:
    """Arrange the slices along a dimension as rows."""
    moved = x.movedim(dim, 0)
    return moved.reshape(moved.shape[0], -1)


def _ranks(columns: Any) -> Any:
    """Number the distinct elements of each column in ascending order."""
    row, order = torch.sort(columns, stable=True, dim=0)
    steps = torch.zeros(row.shape, dtype=torch.int64)
    steps[1:] = (row[1:] != row[:-1]).to(torch.int64)
    return torch.zeros_like(steps).scatter(0, order, torch.cumsum(steps, 0))


def _distinct(x: Any, dim: int, numbers: Any) -> tuple[Any, Any, Any]:
    """Return the first slice of each number along a dimension, the place of each slice among them,
    and how often each number occurs."""
    row, order = torch.sort(numbers, stable=True)
    _, inverse, counts = _runs(row, row, order)
    first = torch.cumsum(counts, 0) - counts
    return x.index_select(dim, order[first]), inverse, counts


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


def _pack_padded_sequence(x: Any, lengths: Any, batch_first: bool) -> tuple[Any, Any]:
    """Lay the elements of sequences step by step, and count the sequences of each step."""
    steps = x.transpose(0, 1) if batch_first else x
    is_within = torch.arange(int(lengths.max().item()))[:, None] < lengths
    rows = steps.reshape(-1, *steps.shape[2:])[_places(is_within)]
    return rows, is_within.sum(1)


def _pack_padded_sequence_backward(
    gradient: Any, input_size: Sequence[int], batch_sizes: Any, batch_first: bool
) -> Any:
    sizes = list(input_size)
    if batch_first:
        sizes[:2] = sizes[1::-1]
    places = _places(torch.arange(sizes[1]) < batch_sizes[:, None])
    rows = torch.zeros(sizes[0] * sizes[1], *sizes[2:], dtype=gradient.dtype)
    steps = rows.index_add(0, places, gradient).reshape(sizes)
    return steps.transpose(0, 1) if batch_first else steps


def _places(is_within: Any) -> Any:
    """Number the true elements of a matrix in row-major order."""
    row, column = _nonzero(is_within).unbind(1)
    return row * is_within.shape[1] + column


TABLE: dict[Any, Callable[..., Any]] = {
    _ops.nonzero.default: _nonzero,
    _ops.index.Tensor: _index,
    _ops.index_put.default: _index_put,
    _ops.masked_select.default: _masked_select,
    _ops._unique.default: lambda *given, **named: _unique(*given, **named)[:2],
    _ops._unique2.default: _unique,
    _ops.unique_consecutive.default: _unique_consecutive,
    _ops.unique_dim.default: _unique_dim,
    _ops._pack_padded_sequence.default: _pack_padded_sequence,
    _ops._pack_padded_sequence_backward.default: _pack_padded_sequence_backward,
    _ops.repeat_interleave.Tensor: _repeats,
    _ops.bincount.default: _bincount,
}
