"""Complex arithmetic: each component of a product is its exact value rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.errors import Unsupported
from hlo.types import F32
from interp.rounding import rounded_sum

Array = np.ndarray[Any, Any]


def multiply(lhs: Array, rhs: Array) -> Array:
    """(a + bi)(c + di) = (ac - bd) + (ad + bc)i."""
    if lhs.dtype != np.complex64:
        raise Unsupported("multiply on c128 is not implemented")
    a, b, c, d = (x.astype(np.float64) for x in (lhs.real, lhs.imag, rhs.real, rhs.imag))
    result = np.empty(np.broadcast_shapes(lhs.shape, rhs.shape), np.complex64)
    result.real = _sum_of_two(a * c, -(b * d))  # products of two f32 are exact in float64
    result.imag = _sum_of_two(a * d, b * c)
    return result


def divide(lhs: Array, rhs: Array) -> Array:
    """Not defined yet by the numerics contract."""
    raise Unsupported(f"divide on {lhs.dtype} by {rhs.dtype} is not implemented")


def magnitude(operand: Array) -> Array:
    """sqrt(a**2 + b**2)."""
    raise Unsupported(f"abs on {operand.dtype} is not implemented")


def sign(operand: Array) -> Array:
    """operand / abs(operand)."""
    raise Unsupported(f"sign on {operand.dtype} is not implemented")


def _sum_of_two(one: Array, other: Array) -> Array:
    """The exact sum of two float64 rounded once to float32 (Knuth's two-sum)."""
    high = one + other
    tail = high - one
    low = (one - (high - tail)) + (other - tail)
    return rounded_sum(high, low, F32)
