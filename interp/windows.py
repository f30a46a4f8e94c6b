"""Sliding windows: where they lie, and folds over their elements.

Positions in padding and in the holes of base dilation hold no element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hlo.attributes import WindowDimension
from hlo.values import Array

Windows = Sequence[WindowDimension]


def positions(window: WindowDimension, extent: int) -> int:
    """Count the positions of a window along a dimension."""
    reach = (window.size - 1) * window.window_dilation + 1
    padded = _dilated(window, extent) + window.padding_low + window.padding_high
    return (padded - reach) // window.stride + 1 if padded >= reach else 0


def _dilated(window: WindowDimension, extent: int) -> int:
    return (extent - 1) * window.base_dilation + 1 if extent else 0


def elements_at(window: WindowDimension, extent: int, offset: int) -> tuple[Array, Array]:
    """Compute, for each position of a window, the index of the element at this offset within it (0
    where there is none), and a mask of where there is one."""
    position = _starts(window, extent) + offset * window.window_dilation
    inside = (position >= 0) & (position < _dilated(window, extent))
    inside &= position % window.base_dilation == 0
    return np.where(inside, position // window.base_dilation, 0), inside


def _starts(window: WindowDimension, extent: int) -> Array:
    return np.arange(positions(window, extent)) * window.stride - window.padding_low


def trimmed(window: WindowDimension, extent: int) -> WindowDimension:
    """Leave out the first and last offsets within a window that have no element at any position: a
    window may be far longer than what it slides over."""
    count, step = positions(window, extent), window.window_dilation
    low, reach = window.padding_low, (count - 1) * window.stride
    if not count:
        return window
    # Offset k of position p lies at p * stride - low + k * step, inside from 0 to the dilated size.
    first = min(max(0, -((reach - low) // step)), window.size - 1)
    last = min(window.size - 1, (_dilated(window, extent) - 1 + low) // step)
    size = max(1, last - first + 1)
    low -= first * step
    high = reach + (size - 1) * step + 1 - _dilated(window, extent) - low
    return replace(window, size=size, padding_low=low, padding_high=high)


def is_trivial(window: WindowDimension) -> bool:
    """Test for a window that shows each element alone; reversed it shows the same."""
    return window == WindowDimension(1, reversal=window.reversal)


class Running(NamedTuple):
    """A running fold: the dimension that it goes along, and whether each window ends at its element
    (True) or begins there."""

    axis: int
    ends: bool


def running(windows: Windows, dims: Sequence[int]) -> Running | None:
    """Find the dimension along which windows are a running fold, as those of a cumulative sum; None
    for other windows."""
    axes = [d for d, one in enumerate(windows) if not is_trivial(one)]
    if len(axes) != 1:
        return None
    (axis,) = axes
    for ends, along in ((True, up_to), (False, from_)):
        if windows[axis] == along(dims[axis]):
            return Running(axis, ends)
    return None


def up_to(length: int) -> WindowDimension:
    """Make the window of all elements up to each one."""
    return WindowDimension(length, padding_low=length - 1)


def from_(length: int) -> WindowDimension:
    """Make the window of all elements from each one on."""
    return WindowDimension(length, padding_high=length - 1)


def padded(data: Array, axis: int, window: WindowDimension, fill: object = 0) -> Array:
    """Dilate an array along an axis and pad it at both ends; negative padding crops."""
    step, low = window.base_dilation, window.padding_low
    size = max(0, _dilated(window, data.shape[axis]) + low + window.padding_high)
    if size == data.shape[axis] and low == 0 and step == 1:
        return data
    dims = (*data.shape[:axis], size, *data.shape[axis + 1 :])
    result = np.full(dims, fill, data.dtype)
    # Element i is at i * step + low: `first` and `last` are ceil(-low / step) and
    # ceil((size - low) / step).
    first = max(0, -(low // step))  # the first element that is not cropped
    last = min(data.shape[axis], -((low - size) // step))
    if first < last:
        before = (slice(None),) * axis
        target = slice(first * step + low, (last - 1) * step + low + 1, step)
        result[(*before, target)] = data[(*before, slice(first, last))]
    return result


def window_totals(values: Array, windows: Windows) -> Array:
    """Sum over windows by differences of prefix sums, in the values' type, whose additions must be
    exact or wrap."""
    for axis, window in enumerate(windows):
        if window.size == 1 and not is_trivial(window):
            index, inside = elements_at(window, values.shape[axis], 0)
            shown = np.expand_dims(inside, tuple(range(1, values.ndim - axis)))
            values = (
                np.take(values, index, axis) * shown
                if values.shape[axis]
                else np.zeros(
                    (*values.shape[:axis], len(index), *values.shape[axis + 1 :]), values.dtype
                )
            )
        elif window.size > 1:
            values = np.moveaxis(_totals(np.moveaxis(values, axis, 0), window), 0, axis)
    return values


def _totals(values: Array, window: WindowDimension) -> Array:
    """Sum windows along the first dimension. A window of dilation d takes elements of one residue
    modulo d, so prefix sums run within a residue, a row of d positions at a time."""
    dilation, rest = window.window_dilation, values.shape[1:]
    holes = WindowDimension(1, base_dilation=window.base_dilation)
    dilated = padded(values, 0, holes)
    rows = -(-len(dilated) // dilation)
    dilated = padded(dilated, 0, WindowDimension(1, padding_high=rows * dilation - len(dilated)))
    prefixes = np.zeros(((rows + 1) * dilation, *rest), values.dtype)
    below = prefixes[dilation:]
    if dilation > 1:
        dilated = dilated.reshape(rows, dilation, *rest)
        below = below.reshape(dilated.shape)
    np.add.accumulate(dilated, axis=0, dtype=values.dtype, out=below)
    start = _starts(window, len(values))
    # The prefix at p covers p - d, p - 2 d, …: those of start and end differ by the elements at
    # start, start + d, …, start + (size - 1) d.
    end = start + window.size * dilation

    def prefix(position: Array) -> Array:
        # A window may begin in front of the data, or end behind it: nothing is added up there.
        row = np.clip(position // dilation, 0, rows)
        return np.asarray(prefixes[row * dilation + position % dilation])

    return prefix(end) - prefix(start)


def window_fold(
    values: Array, windows: Windows, operation: Callable[[Array, Array], Array], identity: object
) -> Array:
    """Fold over windows by an associative and commutative operation in O(log size) steps: windows
    of power-of-two sizes by doubling, then each size as a combination of those."""
    for axis, window in enumerate(windows):
        if not is_trivial(window):
            filled = np.moveaxis(padded(values, axis, window, identity), axis, 0)
            count = positions(window, values.shape[axis])
            values = np.moveaxis(_folded(filled, window, count, operation), 0, axis)
    return values


def _folded(
    filled: Array,
    window: WindowDimension,
    count: int,
    operation: Callable[[Array, Array], Array],
) -> Array:
    if not count:
        return filled[:0]
    result, done, size = None, 0, 1
    last = (count - 1) * window.stride + 1
    while True:
        if window.size & size:
            start = done * window.window_dilation
            piece = filled[start : start + last : window.stride]
            result = piece if result is None else operation(result, piece)
            done += size
        if done == window.size:
            assert result is not None
            return result
        shift = size * window.window_dilation
        filled = operation(filled[:-shift], filled[shift:])
        size *= 2
