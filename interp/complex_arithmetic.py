"""Complex arithmetic: each component of a product is its exact value rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.errors import Unsupported
from hlo.types import C128, F32
from interp.accumulator import two_sum
from interp.exact_dot import dot_exact
from interp.rounding import rounded_sum
from interp.sliced_dot import two_product

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
    """((ac + bd) + (bc - ad)i) / (c**2 + d**2), each component rounded once; where something is
    not finite or the divisor is zero, as IEEE 754 evaluates this formula."""
    if lhs.dtype != np.complex64:
        raise Unsupported("divide of c128 is not implemented")
    a, b, c, d = (x.astype(np.float64) for x in (lhs.real, lhs.imag, rhs.real, rhs.imag))
    divisor = two_sum(c * c, d * d)
    result = np.empty(np.broadcast_shapes(lhs.shape, rhs.shape), np.complex64)
    result.real = _quotient(two_sum(a * c, b * d), divisor)
    result.imag = _quotient(two_sum(b * c, -(a * d)), divisor)
    return result


def magnitude(operand: Array) -> Array:
    """sqrt(a**2 + b**2), rounded once; infinite if a component is."""
    a, b = _components(operand, "abs")
    # Of the low part only the sign counts, and only where the root is the middle of two f32.
    result = rounded_sum(*_root(a, b), F32)
    return np.where(np.isinf(a) | np.isinf(b), np.float32(np.inf), result)


def sign(operand: Array) -> Array:
    """operand / abs(operand), each component rounded once; a zero is kept."""
    a, b = _components(operand, "sign")
    root = _root(a, b)
    result = np.empty(operand.shape, np.complex64)
    for part, component in (("real", a), ("imag", b)):
        setattr(result, part, _quotient((component, np.zeros_like(component)), root))
    return np.where(operand == 0, operand, result)


def _components(operand: Array, name: str) -> tuple[Array, Array]:
    if operand.dtype != np.complex64:
        raise Unsupported(f"{name} of c128 is not implemented")
    return operand.real.astype(np.float64), operand.imag.astype(np.float64)


def _root(a: Array, b: Array) -> tuple[Array, Array]:
    """sqrt(a**2 + b**2) of values of f32, in two parts: exact where the first part is all."""
    high, low = two_sum(a * a, b * b)
    root = np.sqrt(high)
    square, error = two_product(root, root)
    rest = ((high - square) - error) + low
    return root, np.where(root == 0, 0.0, rest / (2 * root))


def _signed(total: Array, one: tuple[Array, Array], other: tuple[Array, Array]) -> Array:
    """Where both products have a factor zero, the sum has the sign that IEEE 754 gives it."""
    (a, b), (c, d) = one, other
    nothing = ((a == 0) | (b == 0)) & ((c == 0) | (d == 0))
    return np.where(nothing, a * b + c * d, total)


def _quotient(dividend: tuple[Array, Array], divisor: tuple[Array, Array]) -> Array:
    """The quotient of two exact sums rounded once to float32; its error before that is 2**-100."""
    (high, low), (divisor_high, divisor_low) = dividend, divisor
    first = high / divisor_high
    product, error = two_product(first, divisor_high)
    other_product, other_error = two_product(first, divisor_low)
    rest = (((high - product) - error) + (low - other_product)) - other_error
    return rounded_sum(first, rest / divisor_high, F32)


def _sum_of_two(one: Array, other: Array) -> Array:
    """The exact sum of two float64 rounded once to float32."""
    return rounded_sum(*two_sum(one, other), F32)
