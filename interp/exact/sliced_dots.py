"""Products of float64 matrices in slices that BLAS multiplies without any error.

After Ozaki, Ogita, Oishi and Rump, "Error-free transformations of matrix multiplication by using
fast routines of matrix multiplication" (2012). With rows of lhs and columns of rhs scaled to below
1, slice p holds multiples of 2**(-p width); a product of slices p and q has at most
2 width + log2(depth) bits. Products with p + q > _SLICES + 1 are left out, and bounded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hlo.types import F64, ElementType
from hlo.values import Array
from interp.exact.accumulator import carried, composed, cut, two_sum
from interp.exact.rounding import rounded_sum
from interp.exact.sums import ends_agree

_SLICES = 5
_ELEMENTS = 1 << 22  # of an operand at a time: its slices take six times the memory
# Veltkamp's constant for 53 bits: both parts have 26, so products of parts are exact.
_SPLIT = 2.0**27 + 1


def two_product(one: Array, other: Array) -> tuple[Array, Array]:
    """Return the rounded product and its rounding error, which is exact unless something over- or
    underflows (Dekker)."""
    product = one * other
    (one_high, one_low), (other_high, other_low) = _halved(one), _halved(other)
    error = one_high * other_high - product
    error += one_high * other_low
    error += one_low * other_high
    error += one_low * other_low
    return product, error


def _halved(values: Array) -> tuple[Array, Array]:
    scaled = _SPLIT * values
    high = scaled - (scaled - values)
    return high, values - high


class _Sliced(NamedTuple):
    """A matrix as integer slices: matrix[b, r, k] = 2**exponents[b, r] times the sum of 2**(-p
    width) slices[p - 1]. ``used`` is the number of slices that row r needs, beyond their number if
    they do not hold all of it."""

    exponents: Array
    slices: list[Array]
    used: Array


def _sliced(matrix: Array, width: int) -> _Sliced:
    exponents = np.frexp(np.abs(matrix).max(axis=2))[1]
    residual = np.ldexp(matrix, -exponents[:, :, None])
    lost = (np.ldexp(residual, exponents[:, :, None]) != matrix).any(axis=2)  # below 2**-1074
    slices, used = [], np.zeros(exponents.shape, np.int64)
    for p in range(1, _SLICES + 1):
        part = cut(residual, -p * width)
        residual -= part
        part *= 2.0 ** (p * width)
        is_used = part.any(axis=2)
        if not is_used.any() and not residual.any():
            break
        used = np.where(is_used, p, used)
        slices.append(part)
    return _Sliced(exponents, slices, np.where(residual.any(axis=2) | lost, 2 * _SLICES, used))


def dot_sliced(lhs: Array, rhs: Array, element_type: ElementType) -> tuple[Array, Array]:
    """Multiply finite lhs[b, m, k] and rhs[b, k, n], rounded once; return the result and a mask of
    where it is proven correct."""
    _, rows, depth = lhs.shape
    columns = rhs.shape[2]
    if rhs.size > _ELEMENTS and columns > 1:
        half = columns // 2
        parts = [dot_sliced(lhs, x, element_type) for x in (rhs[:, :, :half], rhs[:, :, half:])]
        return _joined(parts, axis=2)
    if lhs.size > _ELEMENTS and rows > 1:
        half = rows // 2
        parts = [dot_sliced(x, rhs, element_type) for x in (lhs[:, :half], lhs[:, half:])]
        return _joined(parts, axis=1)
    # One digit sums up to _SLICES products of slices: 2 width + log2(depth _SLICES) <= 52 bits,
    # what `carried` takes.
    width = (52 - (depth * _SLICES).bit_length()) // 2
    left, right = _sliced(lhs, width), _sliced(rhs.transpose(0, 2, 1), width)
    zero = np.zeros((*lhs.shape[:2], rhs.shape[2]))
    digits = [zero] * _SLICES
    for p, one in enumerate(left.slices, 1):
        for q, other in enumerate(right.slices, 1):
            if p + q <= _SLICES + 1:
                level = _SLICES + 1 - (p + q)
                digits[level] = digits[level] + one @ other.transpose(0, 2, 1)
    unit = -(_SLICES + 1) * width
    high, low = composed(carried(digits, width), width, unit)
    # Left out are s - 1 products for each s = p + q > _SLICES + 1, of at most 2**-((s - 2) width).
    is_all = left.used[:, :, None] + right.used[:, None, :] <= _SLICES + 1
    left_out = depth * (_SLICES + 2) * 2.0 ** (-_SLICES * width)
    bound = np.where(is_all, 0.0, left_out + np.abs(low) * 2.0**-50)
    exponents = left.exponents[:, :, None] + right.exponents[:, None, :]
    least = _scaled(high, low - bound, exponents, element_type)
    most = _scaled(high, low + bound, exponents, element_type)
    certain = ends_agree(least, most, high + low, bound)
    if element_type is F64:  # scaling to a subnormal would round twice
        certain &= (np.abs(most) >= np.finfo(np.float64).tiny) | (high == 0) & is_all
    return most, certain


def _joined(parts: list[tuple[Array, Array]], axis: int) -> tuple[Array, Array]:
    results, certain = zip(*parts)
    return np.concatenate(results, axis=axis), np.concatenate(certain, axis=axis)


def _scaled(high: Array, low: Array, exponents: Array, element_type: ElementType) -> Array:
    high, low = two_sum(high, low)
    return rounded_sum(np.ldexp(high, exponents), np.ldexp(low, exponents), element_type)
