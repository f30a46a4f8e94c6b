"""Products of integer matrices modulo a power of two, by BLAS.

float64 adds integers up to 2**53 exactly; larger operands are cut into digits of 16 bits.
"""

from __future__ import annotations

import numpy as np

from hlo.types import ElementType
from hlo.values import Array
from interp.exact.conversion import wrapped
from interp.exact.dots import pieces

_RESULTS = 1 << 23  # at a time
_DEPTH = 1 << 20  # of digits: 4 sums of 2**20 products of 2**30 stay below 2**53
_DIGIT = 16


def dot_integers(lhs: Array, rhs: Array, element_type: ElementType) -> Array:
    """Multiply lhs[b, m, k] and rhs[b, k, n] modulo 2**bits of the integer ``element_type``."""
    result = np.zeros((*lhs.shape[:2], rhs.shape[2]), element_type.numpy)
    if not result.size or not lhs.size:
        return result
    one, other = _signed(lhs), _signed(rhs)
    largest = lhs.shape[2] * _magnitude(one) * _magnitude(other)
    for batch, rows in pieces(lhs.shape, rhs.shape[2], _RESULTS):
        if largest < 2**53:
            left, right = one[batch, rows].astype(np.float64), other[batch].astype(np.float64)
            total = (left @ right).astype(np.int64)
        else:
            total = _in_digits(one[batch, rows], other[batch], element_type.bits)
        result[batch, rows] = wrapped(total, element_type)
    return result


def dot_pred(lhs: Array, rhs: Array) -> Array:
    """Multiply matrices over the Boolean semiring: or of ands."""
    return np.asarray(lhs.astype(np.float32) @ rhs.astype(np.float32) > 0)


def _signed(values: Array) -> Array:
    return values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64)


def _magnitude(values: Array) -> int:
    return max(int(values.max()), -int(values.min()))


def _in_digits(lhs: Array, rhs: Array, bits: int) -> Array:
    total = np.zeros((*lhs.shape[:2], rhs.shape[2]), np.int64)
    count = -(-bits // _DIGIT)
    for first in range(0, lhs.shape[2], _DEPTH):
        part = slice(first, first + _DEPTH)
        left, right = _digits(lhs[:, :, part], count), _digits(rhs[:, part], count)
        # Products of digits p + q >= count are multiples of 2**bits: they vanish modulo 2**bits.
        for p, one in enumerate(left):
            for q, other in enumerate(right[: count - p]):
                total += (one @ other).astype(np.int64) << (_DIGIT * (p + q))
    return total


def _digits(values: Array, count: int) -> list[Array]:
    """Split integers into ``count`` digits from -2**15 to 2**15 - 1, lowest first."""
    half = 1 << (_DIGIT - 1)
    digits = []
    for _ in range(count):
        digit = ((values + half) & (2 * half - 1)) - half
        digits.append(digit.astype(np.float64))
        values = (values - digit) >> _DIGIT
    return digits
