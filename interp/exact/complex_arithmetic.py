"""Complex arithmetic: each component of a product is its exact value rounded once."""

from __future__ import annotations

import numpy as np

from hlo.types import C128, F32
from hlo.values import Array
from interp.exact.accumulator import two_sum
from interp.exact.dots import dot_exact
from interp.exact.elementary_functions import elementary
from interp.exact.rounding import rounded_sum
from interp.exact.sliced_dots import two_product


def multiply(lhs: Array, rhs: Array) -> Array:
    """Multiply: (a + bi)(c + di) = (ac - bd) + (ad + bc)i, each component rounded once."""
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
    """Divide: ((ac + bd) + (bc - ad)i) / (c**2 + d**2), each component rounded once; by zero and
    with infinities as in C's annex G."""
    if lhs.dtype == np.complex128:
        return elementary("divide", lhs, rhs)
    lhs, rhs = np.broadcast_arrays(lhs, rhs)
    a, b, c, d = (x.astype(np.float64) for x in (lhs.real, lhs.imag, rhs.real, rhs.imag))
    divisor = two_sum(c * c, d * d)
    result = np.empty(lhs.shape, np.complex64)
    result.real = _quotient(two_sum(a * c, b * d), divisor)
    result.imag = _quotient(two_sum(b * c, -(a * d)), divisor)
    ordinary = np.isfinite(lhs) & np.isfinite(rhs) & (rhs != 0)
    return result if ordinary.all() else np.where(ordinary, result, _annex_g(lhs, rhs))


def _annex_g(lhs: Array, rhs: Array) -> Array:
    """Compute quotients by zero, of infinities by finite numbers and of finite numbers by
    infinities as C's annex G does; NaN for all others."""
    (a, b), (c, d) = (lhs.real, lhs.imag), (rhs.real, rhs.imag)
    (u, v), (s, t) = _boxed(lhs), _boxed(rhs)
    finite, infinite = np.isfinite(lhs), np.isinf(rhs)
    infinity = np.float32(np.inf)
    cases = [
        (rhs == 0, np.copysign(infinity, c) * a, np.copysign(infinity, c) * b),
        (np.isinf(lhs) & np.isfinite(rhs), *_times(infinity, u * c + v * d, v * c - u * d)),
        (finite & infinite, *_times(np.float32(0), a * s + b * t, b * s - a * t)),
    ]
    result = np.empty(lhs.shape, lhs.dtype)
    conditions = [case[0] for case in cases]
    result.real = np.select(conditions, [case[1] for case in cases], np.nan)
    result.imag = np.select(conditions, [case[2] for case in cases], np.nan)
    return result


def _times(factor: np.float32, *parts: Array) -> tuple[Array, ...]:
    return tuple(factor * part for part in parts)


def _boxed(x: Array) -> tuple[Array, Array]:
    """Replace infinite components by 1 and others by 0, keeping their signs."""
    one = [np.copysign(np.isinf(part).astype(np.float32), part) for part in (x.real, x.imag)]
    return one[0], one[1]


def magnitude(operand: Array) -> Array:
    """Compute sqrt(a**2 + b**2), rounded once; infinite if a component is."""
    if operand.dtype == np.complex128:
        return elementary("abs", operand)
    a, b = _components(operand)
    # Of the low part only the sign counts, and only where the root is the middle of two f32.
    result = rounded_sum(*_root(a, b), F32)
    return np.where(np.isinf(a) | np.isinf(b), np.float32(np.inf), result)


def sign(operand: Array) -> Array:
    """Compute operand / abs(operand), each component rounded once; a zero is kept."""
    if operand.dtype == np.complex128:
        return elementary("sign", operand)
    a, b = _components(operand)
    root = _root(a, b)
    result = np.empty(operand.shape, np.complex64)
    for part, component in (("real", a), ("imag", b)):
        setattr(result, part, _quotient((component, np.zeros_like(component)), root))
    return np.where(operand == 0, operand, result)


def _components(operand: Array) -> tuple[Array, Array]:
    return operand.real.astype(np.float64), operand.imag.astype(np.float64)


def _root(a: Array, b: Array) -> tuple[Array, Array]:
    """Compute sqrt(a**2 + b**2) of f32 values as a double-double, exact where the root is
    representable."""
    high, low = two_sum(a * a, b * b)
    root = np.sqrt(high)
    # One step of Newton's method: sqrt(s) is about root + (s - root**2) / (2 root), where
    # high - square is exact (Sterbenz), and so is the product's error.
    square, error = two_product(root, root)
    rest = ((high - square) - error) + low
    return root, np.where(root == 0, 0.0, rest / (2 * root))


def _signed(total: Array, one: tuple[Array, Array], other: tuple[Array, Array]) -> Array:
    """Give zero sums of two products their IEEE 754 sign, where both products have a factor
    zero."""
    (a, b), (c, d) = one, other
    nothing = ((a == 0) | (b == 0)) & ((c == 0) | (d == 0))
    return np.where(nothing, a * b + c * d, total)


def _quotient(dividend: tuple[Array, Array], divisor: tuple[Array, Array]) -> Array:
    """Divide two double-doubles and round once to float32; the error before that is 2**-100."""
    (high, low), (divisor_high, divisor_low) = dividend, divisor
    first = high / divisor_high
    product, error = two_product(first, divisor_high)
    other_product, other_error = two_product(first, divisor_low)
    rest = (((high - product) - error) + (low - other_product)) - other_error
    return rounded_sum(first, rest / divisor_high, F32)


def _sum_of_two(one: Array, other: Array) -> Array:
    """Return the exact sum of two float64 rounded once to float32."""
    return rounded_sum(*two_sum(one, other), F32)
