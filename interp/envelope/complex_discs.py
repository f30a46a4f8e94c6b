"""Bound how far a complex function moves when its operands move inside discs.

Every bound holds for all points of the discs: by the mean value theorem with the largest derivative
there, or directly. It is infinite where a disc meets a pole or a branch cut, or where nothing is
known.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlo.values import Array

Disc = tuple[Array, Array]  # middle (complex128) and radius
Spread = Callable[..., Array]


def _known(bound: Array, mask: Array) -> Array:
    return np.where(mask & np.isfinite(bound), bound, np.inf)


def _least_size(z: Array) -> Array:
    """Return |z|, or the largest float64 where that is less: in a denominator an infinity would
    make a bound 0."""
    return np.minimum(np.abs(z), np.finfo(np.float64).max)


def _off_cut(z: Array, radius: Array) -> Array:
    """Test for discs that do not meet the branch cut of log and sqrt, the negative real axis with
    zero."""
    off_axis = (z.real > radius) | (np.abs(z.imag) > radius)
    return np.asarray((np.abs(z) > radius) & off_axis)


def _multiply(lhs: Disc, rhs: Disc) -> Array:
    (a, r), (b, s) = lhs, rhs
    return np.asarray(np.abs(a) * s + np.abs(b) * r + r * s)


def _divide(lhs: Disc, rhs: Disc) -> Array:
    (a, r), (b, s) = lhs, rhs
    # a' / b' − a / b = ((a' − a) − (a / b) (b' − b)) / b', and |b'| ≥ |b| − s.
    gap = _least_size(b) - s
    return _known((r + np.abs(a / b) * s) / gap, gap > 0)


def _exponential(disc: Disc) -> Array:
    z, r = disc
    # By the power series |exp(t) − 1| ≤ exp(|t|) − 1, for t = w − z.
    return _known(np.exp(z.real) * np.expm1(r), np.asarray(True))


def _log(disc: Disc) -> Array:
    z, r = disc
    # By the power series |log(1 + t)| ≤ −log(1 − |t|), for t = (w − z) / z.
    return _known(-np.log1p(-np.minimum(r / _least_size(z), 1.0)), _off_cut(z, r))


def _sqrt(disc: Disc) -> Array:
    """Bound sqrt: |sqrt(w) − sqrt(z)| = |w − z| / |sqrt(w) + sqrt(z)|.

    A disc that holds neither zero nor a point of the cut lies within 90° of its centre, seen from
    zero. So the roots are less than 45° apart, and their sum is at least as long as sqrt(z).
    """
    z, r = disc
    return _known(r / np.sqrt(_least_size(z)), _off_cut(z, r))


def _rsqrt(disc: Disc) -> Array:
    z, r = disc
    size = _least_size(z)
    # |1 / sqrt(w) − 1 / sqrt(z)| = |sqrt(w) − sqrt(z)| / sqrt(|w| |z|), the numerator as in _sqrt.
    # Not r / (|z| · sqrt(…)): beyond 1e205 the product overflows, and the bound would be 0.
    return _known(r / size / np.sqrt(size - r), _off_cut(z, r) & (size > r))


def _along(part: str) -> Spread:
    """Bound sine, cosine, sinh and cosh by their derivative: |cosh(x + iy)| ≤ cosh(x)."""

    def spread(disc: Disc) -> Array:
        z, r = disc
        return _known(r * np.cosh(np.abs(getattr(z, part)) + r), np.asarray(True))

    return spread


def _over_square(scale: float, part: str) -> Spread:
    """Bound tanh and tan of ``scale`` · z by the derivative, 1 / cosh² or 1 / cos²; how far cosh
    and cos move in the disc is bounded by :func:`_along`."""
    along = _along(part)

    def spread(disc: Disc) -> Array:
        z, r = disc[0] * scale, disc[1] * scale
        wave = np.abs(np.cosh(z) if part == "real" else np.cos(z))
        least = wave - along((z, r))
        return _known(r / least**2, least > 0)

    return spread


def _logistic(disc: Disc) -> Array:
    """Bound logistic(z) = (1 + tanh(z / 2)) / 2."""
    return np.asarray(_over_square(0.5, "real")(disc) / 2)


def _sign(disc: Disc) -> Array:
    z, r = disc
    size = _least_size(z)
    return _known(2 * r / size, size > r)


def _by_derivative(sign: int, power: float, off_cut: Callable[[Array, Array], Array]) -> Spread:
    """Bound inverse functions, whose derivative is 1 / |1 + sign · z²|^power."""

    def spread(disc: Disc) -> Array:
        z, r = disc
        size = np.abs(z)
        # The least |1 ± w²| in the disc; the last term covers the roundings of the first in
        # float64.
        gap = np.abs(1 + sign * z * z) - r * (2 * size + r) - 2.0**-45 * (1 + size * size)
        return _known(r / gap**power, (gap > 0) & off_cut(z, r))

    return spread


def _off_both_sides(z: Array, r: Array) -> Array:
    """Test for discs that do not meet the real axis from 1 to ∞ and from −∞ to −1."""
    return np.asarray((np.abs(z.imag) > r) | (np.abs(z.real) + r < 1))


def _off_left_of_one(z: Array, r: Array) -> Array:
    return np.asarray((np.abs(z.imag) > r) | (z.real - r > 1))


def _power(base: Disc, exponent: Disc) -> Array:
    """Bound power(x, y) = exp(y · log(x))."""
    logarithm = np.log(base[0]), _log(base)
    product = logarithm[0] * exponent[0], _multiply(logarithm, exponent)
    return _exponential(product)


def _atan2(y: Disc, x: Disc) -> Array:
    """Bound atan2(y, x) = −i · log((x + iy) / sqrt(x² + y²))."""
    squares = x[0] * x[0] + y[0] * y[0], _multiply(x, x) + _multiply(y, y)
    root = np.sqrt(squares[0]), _sqrt(squares)
    direction = x[0] + 1j * y[0], x[1] + y[1]
    quotient = direction[0] / root[0], _divide(direction, root)
    return _log(quotient)


SPREADS: dict[str, Spread] = {
    "abs": lambda disc: disc[1],
    "acos": _by_derivative(-1, 0.5, _off_both_sides),
    "acosh": _by_derivative(-1, 0.5, _off_left_of_one),
    "asin": _by_derivative(-1, 0.5, _off_both_sides),
    "asinh": _by_derivative(1, 0.5, lambda z, r: _off_both_sides(1j * z, r)),
    "atan2": _atan2,
    "atanh": _by_derivative(-1, 1.0, _off_both_sides),
    "cosh": _along("real"),
    "cosine": _along("imag"),
    "divide": _divide,
    "exponential": _exponential,
    "exponential-minus-one": _exponential,
    "log": _log,
    "log-plus-one": lambda disc: _log((disc[0] + 1, disc[1])),
    "logistic": _logistic,
    "multiply": _multiply,
    "power": _power,
    "rsqrt": _rsqrt,
    "sign": _sign,
    "sine": _along("imag"),
    "sinh": _along("real"),
    "sqrt": _sqrt,
    "tan": _over_square(1.0, "imag"),
    "tanh": _over_square(1.0, "real"),
}
