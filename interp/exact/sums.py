"""Sums of floats: the exact real sum, rounded once to the element type.

First the sum in float64 (for f64, in pairs of float64) with an error bound: where every number
within the bound rounds to the same bits, those are the result. The other outputs, a few in ten
thousand, are added up again on the fixed grid of :mod:`interp.exact.accumulator`.

Error bound (Higham, Accuracy and Stability, 2nd ed., 4.2): n addends in any order give a total
within gamma(n - 1) * sum|x|, and ``magnitude``, their sum of magnitudes, is itself computed: hence
(n + 2) * 1.2e-16 * magnitude. 1.2e-16 = 1.08 u pays for second order terms, n < 2**40.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from hlo.attributes import WindowDimension
from hlo.types import F32, F64, ElementType
from hlo.values import Array
from interp.exact.accumulator import Accumulator, two_sum
from interp.exact.rounding import rounded
from interp.windows import is_trivial, positions, window_totals

_LEAF = 1 << 17  # elements at a time in float64: 1 MiB, stays in the second level cache
_CHUNK = 1 << 21  # elements at a time in an exact sum
_WINDOWED = 1 << 22  # elements at a time in sums over windows
_UNIT = 1.2e-16
_UNIT_SQUARED = 1.3e-32  # 1.05 u**2
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def per_component(function: Callable[..., Array], values: Array, *others: Array) -> Array:
    """Apply a function to the real and to the imaginary parts of arrays; return the complex
    result."""
    parts = [[getattr(x, part) for x in (values, *others)] for part in ("real", "imag")]
    real, imag = (function(*arrays) for arrays in parts)
    result = np.empty(real.shape, values.dtype)
    result.real, result.imag = real, imag
    return result


def component_type(element_type: ElementType) -> ElementType:
    """Return the type of the parts of a complex type."""
    return F32 if element_type.bits == 64 else F64


def is_minus_zero(values: Array) -> Array:
    """Test for −0."""
    return np.asarray((values == 0) & np.signbit(values))


def same_bits(one: Array, other: Array) -> Array:
    """Compare the bits of two arrays of one type (not complex)."""
    bits = _BITS[one.dtype.itemsize]
    return np.asarray(one.view(bits) == other.view(bits))


def ends_agree(least: Array, most: Array, total: Array, bound: Array) -> Array:
    """Test where an interval rounds to one number, given its rounded ends ``least`` and ``most``;
    it is ``total`` plus and minus ``bound``."""
    agree = same_bits(least, most)
    if most.dtype.itemsize == 1:  # in types without infinity both overflows are the same NaN
        agree &= (np.abs(total) > bound) | (bound == 0) | ~np.isnan(most)
    return agree


def decided(total: Array, bound: Array, element_type: ElementType) -> tuple[Array, Array]:
    """Round float64 totals; return the results, and a mask of those that every number within
    ``bound`` of the total rounds to.

    For addends that cannot overflow float64: a total that is not finite is right.
    """
    result = rounded(total + bound, element_type)
    least = rounded(total - bound, element_type)
    certain = ends_agree(least, result, total, bound) & np.isfinite(bound)
    if not np.isfinite(total).all():
        special = ~np.isfinite(total)
        result = np.where(special, rounded(total, element_type), result)
        certain = certain | special
    return result, certain


def decided_f64(high: Array, low: Array, bound: Array) -> tuple[Array, Array]:
    """Decide sums of f64 from a double-double total: only finite totals are decided, and a zero
    loses its sign."""
    result = high + (low + bound)
    return result, same_bits(high + (low - bound), result) & np.isfinite(result)


@np.errstate(all="ignore")
def sum_along(values: Array, axes: Sequence[int], init: Array, element_type: ElementType) -> Array:
    """Sum the values along ``axes``, and the init (broadcast to the result), rounded once."""
    if element_type.is_complex:
        part = component_type(element_type)
        return per_component(lambda v, i: sum_along(v, axes, i, part), values, init)
    kept = [axis for axis in range(values.ndim) if axis not in axes]
    dims = tuple(values.shape[axis] for axis in kept)
    start = np.broadcast_to(np.asarray(init), dims).astype(np.float64).ravel()
    if 0 in dims:
        return np.empty(dims, element_type.numpy)
    if not values.size:
        return rounded(start, element_type).reshape(dims)
    count = values.size // start.size + 1
    result, certain = (_fast_f64 if element_type is F64 else _fast)(
        values, tuple(axes), start, count, element_type
    )
    if not certain.all():
        rows = np.flatnonzero(~certain)
        arranged = values.transpose([*kept, *axes])
        result[rows] = _exact_rows(arranged, dims, rows, start[rows], element_type)
    return result.reshape(dims)


def _fast(
    values: Array, axes: tuple[int, ...], start: Array, count: int, element_type: ElementType
) -> tuple[Array, Array]:
    total, magnitude = (part.ravel() for part in _totals(values, axes))
    total, magnitude = total + start, magnitude + np.abs(start)
    result, certain = decided(total, (count + 2) * _UNIT * magnitude, element_type)
    zero = magnitude == 0
    if zero.any():  # the sign of a sum of zeros is that of IEEE's additions
        minus = is_minus_zero(start) & zero
        if minus.any():
            minus &= np.signbit(values).all(axis=axes).ravel()
        zeros = np.where(minus, -0.0, 0.0).astype(result.dtype)
        result = np.where(zero, zeros, result)
        certain = certain | zero
    return result, certain


def _totals(values: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Sum the values, and their magnitudes, in float64, by pieces that fit in the cache."""
    if values.size <= _LEAF:
        wide = values.astype(np.float64)
        total = wide.sum(axis=axes)
        np.abs(wide, out=wide)
        return total, wide.sum(axis=axes)
    (one, other), axis = _halves(values)
    first, second = _totals(one, axes), _totals(other, axes)
    if axis in axes:
        return first[0] + second[0], first[1] + second[1]
    place = _kept_position(axis, axes)
    return tuple(np.concatenate(pair, axis=place) for pair in zip(first, second))  # type: ignore[return-value]


def _halves(values: Array) -> tuple[tuple[Array, Array], int]:
    """Split an array in halves along its outermost dimension in memory; return them and that
    axis."""
    axis = max(
        (axis for axis in range(values.ndim) if values.shape[axis] > 1),
        key=lambda axis: (abs(values.strides[axis]), -axis),
    )
    middle = values.shape[axis] // 2
    before, after = [slice(None)] * values.ndim, [slice(None)] * values.ndim
    before[axis], after[axis] = slice(middle), slice(middle, None)
    return (values[tuple(before)], values[tuple(after)]), axis


def _kept_position(axis: int, axes: tuple[int, ...]) -> int:
    return axis - sum(reduced < axis for reduced in axes)


def _fast_f64(
    values: Array, axes: tuple[int, ...], start: Array, count: int, element_type: ElementType
) -> tuple[Array, Array]:
    """Sum f64 values in double-double, by halving: ``depth`` additions on the way of each addend.

    Each addition leaves an exact error of at most u |partial sum|, together at most u depth sum|x|;
    they are added on the way, in at most 2 depth additions each.
    """
    del element_type
    high, low, magnitude = (part.ravel() for part in _pairs(values, axes))
    high, error = two_sum(high, start)
    low, magnitude = low + error, magnitude + np.abs(start)
    depth = count.bit_length() + values.ndim + 2
    bound = (2 * depth + 2) * depth * _UNIT_SQUARED * magnitude
    result, certain = decided_f64(high, low, bound)
    zero = magnitude == 0  # then ``high`` has the sign that IEEE's additions give
    return np.where(zero, high, result), certain | zero


def _pairs(values: Array, axes: tuple[int, ...]) -> tuple[Array, Array, Array]:
    if values.size > _LEAF:
        (one, other), axis = _halves(values)
        first, second = _pairs(one, axes), _pairs(other, axes)
        if axis not in axes:
            place = _kept_position(axis, axes)
            return tuple(np.concatenate(pair, axis=place) for pair in zip(first, second))  # type: ignore[return-value]
        high, error = two_sum(first[0], second[0])
        return high, error + (first[1] + second[1]), first[2] + second[2]
    kept = [axis for axis in range(values.ndim) if axis not in axes]
    dims = tuple(values.shape[axis] for axis in kept)
    high = values.transpose([*axes, *kept]).reshape(-1, *dims)
    low, magnitude = np.zeros_like(high), np.abs(high).sum(axis=0)
    while len(high) > 1:
        middle = (len(high) + 1) // 2
        rest = len(high) - middle
        summed, error = two_sum(high[:rest], high[middle:])
        error += low[:rest] + low[middle:]
        high = np.concatenate((summed, high[rest:middle]))
        low = np.concatenate((error, low[rest:middle]))
    return high[0], low[0], magnitude


def _exact_rows(
    arranged: Array, dims: tuple[int, ...], rows: Array, start: Array, element_type: ElementType
) -> Array:
    """Sum exactly over all but the first ``len(dims)`` dimensions, for the given flat rows only."""
    length = math.prod(arranged.shape[len(dims) :])
    step = max(1, _CHUNK // length)
    parts = []
    for first in range(0, len(rows), step):
        chosen, init = rows[first : first + step], start[first : first + step]
        addends = arranged[np.unravel_index(chosen, dims)] if dims else arranged
        addends = addends.reshape(len(chosen), length)
        minus_zero = bool(is_minus_zero(init).any())
        sums = Accumulator(init.shape, length + 1, minus_zero)
        sums.add(init, lambda values: values)
        for left in range(0, length, _CHUNK):
            piece = addends[:, left : left + _CHUNK].astype(np.float64)
            sums.add(piece, lambda values: values.sum(axis=1))
        parts.append(sums.rounded(element_type))
    return np.concatenate(parts)


@np.errstate(all="ignore")
def segment_sum(
    values: Array, segment_ids: Array, count: int, init: Array, element_type: ElementType
) -> Array:
    """Sum by segments: result[s] = init[s] + all values[i] with segment_ids[i] == s, rounded once.

    ``values`` has shape (n, ...), ``init`` broadcasts to (count, ...); every id is in range.
    """
    if element_type.is_complex:
        part = component_type(element_type)
        return per_component(
            lambda v, i: segment_sum(v, segment_ids, count, i, part), values, np.asarray(init)
        )
    dims = (count, *values.shape[1:])
    result = np.broadcast_to(np.asarray(init), dims).astype(element_type.numpy)
    if values.size == 0 or count == 0:
        return result
    # A segment without values keeps its init, which is rounded already.
    is_used = np.bincount(segment_ids, minlength=count) > 0
    used, segments = np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[segment_ids]
    columns = values.size // len(values)
    flat, sums = values.reshape(len(values), columns), result.reshape(count, columns)
    step = max(1, _CHUNK // len(values))
    for left in range(0, columns, step):
        right = left + step
        start = sums[used, left:right]
        sums[used, left:right] = _segments(flat[:, left:right], segments, start, element_type)
    return result


def _segments(values: Array, segment_ids: Array, start: Array, element_type: ElementType) -> Array:
    """Sum (n, columns) values by segment; each (segment, column) that has values is one sum."""
    columns = start.shape[1]
    where = (segment_ids[:, None] * columns + np.arange(columns)).ravel()
    wide, init = values.astype(np.float64).ravel(), start.astype(np.float64).ravel()
    counts = np.bincount(segment_ids) + 1.0
    if element_type is F64:
        # A total in float64 decides no sum of f64: its error bound exceeds half an ulp.
        result, certain = init.copy(), np.zeros(init.shape, np.bool_)
    else:
        total = np.bincount(where, wide, init.size) + init
        magnitude = np.bincount(where, np.abs(wide), init.size) + np.abs(init)
        bound = (np.repeat(counts, columns) + 2) * _UNIT * magnitude
        result, certain = decided(total, bound, element_type)
        certain &= (magnitude != 0) | ~np.signbit(init)  # a sum of -0 only is -0
    if certain.all():
        return result.reshape(start.shape)
    chosen = np.flatnonzero(~certain)
    number = np.full(init.size, -1)
    number[chosen] = np.arange(len(chosen))
    where = number[where]
    wide, where = wide[where >= 0], where[where >= 0]
    minus_zero = bool(is_minus_zero(init[chosen]).any())
    sums = Accumulator(chosen.shape, int(counts.max()), minus_zero)
    sums.add(init[chosen], lambda x: x)
    sums.add(wide, lambda x: np.bincount(where, x, len(chosen)))
    result[chosen] = sums.rounded(element_type)
    return result.reshape(start.shape)


@np.errstate(all="ignore")
def window_sum(
    values: Array, windows: Sequence[WindowDimension], init: Array, element_type: ElementType
) -> Array:
    """Sum the values in each window, and the init; time does not depend on the windows' sizes."""
    if element_type.is_complex:
        part = component_type(element_type)
        return per_component(lambda v, i: window_sum(v, windows, i, part), values, np.asarray(init))
    dims = tuple(map(positions, windows, values.shape))
    if values.size > _WINDOWED and windows and is_trivial(windows[0]) and len(values) > 1:
        middle = len(values) // 2
        halves = values[:middle], values[middle:]
        return np.concatenate([window_sum(v, windows, init, element_type) for v in halves])
    start = np.broadcast_to(np.asarray(init), dims).astype(np.float64).ravel()
    addends = math.prod(n for n, w in zip(values.shape, windows) if not is_trivial(w)) + 1
    sums = Accumulator(start.shape, addends, bool(is_minus_zero(start).any()))
    sums.add(start, lambda x: x)
    sums.add(values.astype(np.float64), lambda x: window_totals(x, windows).ravel())
    return sums.rounded(element_type).reshape(dims)
