"""Stable sorting by any comparator, in batches of comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hlo.values import Array
from hlo.walk import Callee
from interp.exact.conversion import total_order, type_of, widened


def ranking(operand: Array, descending: bool) -> Array:
    """Return the stable argsort of the last dimension by value; of floats, by total order: -0 comes
    before +0, a NaN with the sign bit before all numbers, and any other behind them."""
    is_float = type_of(operand).is_float
    found = total_order(operand).astype(np.int64) if is_float else keys(operand)
    return np.argsort(~found if descending else found, axis=-1, kind="stable")


def sorting_order(rows: tuple[Array, ...], comparator: Callee[Any]) -> Array:
    """Return the indices that sort the last dimension of ``rows``, stably.

    Most comparators order by their first operands, one way or the other: such orders are guessed
    and proved by comparing neighbours. If no guess is right, the rows are merged.
    """
    if rows[0].shape[-1] < 2 or not rows[0].size:
        return np.broadcast_to(np.arange(rows[0].shape[-1]), rows[0].shape)
    for guess in _guesses(rows):
        if _is_sorted(rows, guess, comparator):
            return guess
    return _merged(rows, comparator)


def keys(operand: Array) -> Array:
    """Map values to integers in the same order, every NaN to the largest one."""
    element_type = type_of(operand)
    if element_type.is_float:
        order = total_order(operand).astype(np.int64)  # with room above the numbers of fewer bits
        return np.where(np.isnan(widened(operand)), np.iinfo(np.int64).max, order)
    return operand.view(np.uint8) if element_type.kind == "pred" else widened(operand)


def _guesses(rows: tuple[Array, ...]) -> Iterator[Array]:
    """Yield stable orders by the first operand, by the first two, …, ascending and descending. Both
    zeros of floats are equal, all NaNs the largest."""
    if any(row.dtype.kind == "c" for row in rows):
        return
    columns = [keys(np.where(widened(row) == 0, row.dtype.type(0), row)) for row in rows]
    for count in range(1, min(len(rows), 3) + 1):
        first = columns[:count]
        yield np.lexsort(first[::-1], axis=-1)
        yield np.lexsort([~key for key in first[::-1]], axis=-1)


def _compared(rows: tuple[Array, ...], lhs: Array, rhs: Array, comparator: Callee[Any]) -> Array:
    """Apply the comparator to the elements at ``lhs`` and ``rhs``: True where the first comes
    before."""
    pairs = ((np.take_along_axis(r, lhs, -1), np.take_along_axis(r, rhs, -1)) for r in rows)
    return comparator(*(side for pair in pairs for side in pair))  # type: ignore[no-any-return]


def _is_sorted(rows: tuple[Array, ...], order: Array, comparator: Callee[Any]) -> bool:
    """Test whether ``order`` is the stable one: each element comes before its successor, or they
    tie and keep their order. That suffices, since a comparator is a strict weak order."""
    lhs, rhs = order[..., :-1], order[..., 1:]
    before = _compared(rows, lhs, rhs, comparator)
    if not np.all(before | (lhs < rhs)):
        return False
    return not np.any(_compared(rows, rhs, lhs, comparator))


def _merged(rows: tuple[Array, ...], comparator: Callee[Any]) -> Array:
    """Sort by a bottom-up merge sort, merging all pairs of runs of one width at once. The result is
    a permutation even if the comparator is inconsistent."""
    dims = rows[0].shape
    flat = tuple(row.reshape(-1, dims[-1]) for row in rows)
    order = np.broadcast_to(np.arange(dims[-1]), flat[0].shape)
    width = 1
    while width < dims[-1]:
        order = _merged_pairs(flat, order, width, comparator)
        width *= 2
    return order.reshape(dims)


def _merged_pairs(
    rows: tuple[Array, ...], order: Array, width: int, comparator: Callee[Any]
) -> Array:
    """Merge the sorted runs of ``width`` in ``order`` two by two.

    A binary search finds how many of the left run each element of the right run goes behind.
    """
    place = np.arange(order.shape[-1])
    run = place // width
    right = place[run % 2 == 1]
    left_start = (run[right] - 1) * width
    low = np.zeros((len(order), len(right)), np.int64)
    high = np.full_like(low, width)
    moving = np.take_along_axis(order, np.broadcast_to(right, low.shape), -1)
    # A right run exists only behind a full left run, so each search has width + 1 outcomes, which
    # bit_length steps tell apart. One that ended at `width` would read past its run.
    for _ in range(width.bit_length()):
        middle = np.minimum((low + high) // 2, width - 1)
        against = np.take_along_axis(order, left_start + middle, -1)
        goes_before = _compared(rows, moving, against, comparator)
        searching = low < high
        high = np.where(searching & goes_before, middle, high)
        low = np.where(searching & ~goes_before, middle + 1, low)
    # The maximum keeps targets distinct even if an inconsistent comparator gives places that fall.
    separate = run[right] * width  # keeps the runs apart in the running maximum
    behind = np.maximum.accumulate(low + separate, axis=-1) - separate
    target = left_start + behind + right % width
    result, is_free = np.empty_like(order), np.ones(order.shape, np.bool_)
    np.put_along_axis(result, target, moving, -1)
    np.put_along_axis(is_free, target, False, -1)
    # Free places ascend by rows and pairs of runs, as the left runs do, which keep their order.
    result[is_free] = order[:, run % 2 == 0].reshape(-1)
    return result
