"""Complex arithmetic: each component of a product is its exact value rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.errors import Unsupported
from hlo.types import C128, F32
from interp.exact_dot import dot_exact
from interp.rounding import rounded_sum

Array = np.ndarray[Any, Any]


def multiply(lhs: Array, rhs: Array) -> Array:
    """(a + bi)(c + di) = (ac - bd) + (ad + bc)i."""
    lhs, rhs = np.broadcast_arrays(lhs, rhs)
    a, b, c, d = (x.astype(np.float64) for x in (lhs.real, lhs.imag, rhs.real, rhs.imag))
    result = np.empty(lhs.shape, lhs.dtype)
    if lhs.dtype == np.complex128:
        product = dot_exact(lhs.reshape(-1, 1, 1), rhs.reshape(-1, 1, 1), C128).reshape(lhs.shape)
        result.real = _signed(product.real, (a, c), (-b, d))
        result.imag = _signed(product.imag, (a, d), (b, c))
        return result
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


def _signed(total: Array, one: tuple[Array, Array], other: tuple[Array, Array]) -> Array:
    """Where both products have a factor zero, the sum has the sign that IEEE 754 gives it."""
    (a, b), (c, d) = one, other
    nothing = ((a == 0) | (b == 0)) & ((c == 0) | (d == 0))
    return np.where(nothing, a * b + c * d, total)


def _sum_of_two(one: Array, other: Array) -> Array:
    """The exact sum of two float64 rounded once to float32 (Knuth's two-sum)."""
    high = one + other
    tail = high - one
    low = (one - (high - tail)) + (other - tail)
    return rounded_sum(high, low, F32)
