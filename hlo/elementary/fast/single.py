"""Evaluate in f32 alone the functions of f32 whose other sequences take a little float64.

For processors that compute float64 in software. What float64 is for elsewhere, a remainder that
cancels or an angle modulo pi/2, is here the sum of f32 products that are exact: of halves of 12
bits (Dekker, "A floating-point technique for extending the available precision", 1971).
"""

from __future__ import annotations

from hlo.elementary.double_double import fast_two_sum
from hlo.elementary.fast.exponential import ACCURATE_TAIL, reduced, tail
from hlo.elementary.fast.hyperbolic import SINH
from hlo.elementary.fast.logarithm import INFINITY
from hlo.elementary.fast.machine import BIAS, MANTISSA_BITS, FloatMachine, horner
from hlo.elementary.fast.quotients import leading_bits, product_error, reciprocal, remainder
from hlo.elementary.fast.roots import cube_root_guess
from hlo.elementary.fast.trigonometric import (
    NEAR,
    Quadrant,
    cosine_of,
    near_quadrant_of,
    sine_of,
)
from hlo.elementary.machine import V

# pi/2 to 48 bits, the first part of 12: products with numbers of as many are exact.
_HALF_PI = (1.57080078125, -4.454455e-06)
_HALF_PI_NEAREST = 1.5707964


def rsqrt(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate 1 / sqrt(x): y of f32 operations errs by 2**-23, and one Newton step,
    y + y (1 - x y**2) / 2 with the difference from exact products, by 2**-45.

    The step makes NaN of 0 and infinity, whose y is right.
    """
    y = 1.0 / machine.sqrt(x)
    root = x * y
    rest = remainder(1.0, root, y, machine) - product_error(x, y, root, machine) * y
    result = machine.fused(y * 0.5, rest, y)
    return machine.select((y > 0.0) & (y < INFINITY), result, y)


def cbrt(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate the cube root for x >= 0 as ``roots`` does, with w - y**3 from exact products."""
    guess = cube_root_guess(x, machine)
    w, y = guess.w, guess.y
    square = y * y
    rest = remainder(w, square, y, machine) - product_error(y, y, square, machine) * y
    result = (y + rest / (square * 3.0)) * guess.scale
    return machine.select((x > 0.0) & (x < INFINITY), result, x)


def _halves(x: V, machine: FloatMachine[V]) -> tuple[V, V, V]:
    """Return e**x / 2 as a sum of two f32, and e**-x / 2, as ``hyperbolic`` has them in float64."""
    parts = reduced(machine.select(x > 89.5, 89.5, x), machine)
    rest = tail(parts, ACCURATE_TAIL, machine)
    # Two sums that lose nothing: 1 is the largest, and ``high`` is above what is left of it.
    first = parts.high + 1.0
    lost = parts.high - (first - 1.0)
    second = first + rest
    low = (rest - (second - first)) + lost
    inverse = reciprocal(second, low, machine)
    quarter = machine.from_bits((machine.bits(parts.biased) - (BIAS + 2)) << MANTISSA_BITS)
    few = machine.select(parts.k > 40.0, parts.biased - (parts.k - 40.0), parts.biased)
    word = (machine.bits(few) & 0) + (3 * BIAS - 1)
    other = machine.from_bits((word - machine.bits(few)) << MANTISSA_BITS)
    # Doubled first: twice the power of two may be none.
    return second * 2.0 * quarter, low * 2.0 * quarter, inverse * other


def cosh(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate (e**x + e**-x) / 2 for x >= 0."""
    high, low, falling = _halves(x, machine)
    return high + (low + falling)


def sinh(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate (e**x - e**-x) / 2 for x >= 0; up to 1, where these cancel, by a polynomial."""
    high, low, falling = _halves(x, machine)
    square = x * x
    near = machine.fused(x * square, horner(square, SINH, machine), x)
    return machine.select(x > 1.0, high + (low - falling), near)


def _quadrant(x: V, machine: FloatMachine[V]) -> Quadrant[V]:
    """Reduce x >= 0 modulo pi/2: by Cody and Waite up to NEAR, else by Payne and Hanek in integers.

    Quarters of turns are a fraction in integers; times pi/2 it is a product of halves again.
    """
    near = near_quadrant_of(machine.select(x > NEAR, NEAR, x), machine)
    k, turns, rest = machine.quarter_turns(x)
    product = turns * _HALF_PI_NEAREST
    first, second = leading_bits(turns, machine), turns - leading_bits(turns, machine)
    error = (first * _HALF_PI[0] - product) + second * _HALF_PI[0]
    error = error + (turns * _HALF_PI[1] + rest * _HALF_PI_NEAREST)
    angle = fast_two_sum(product, error)
    is_near = x <= NEAR
    # NaN for infinity.
    high = machine.select(is_near, near.high, angle.high + (x - x))
    return Quadrant(
        machine.bits(machine.select(is_near, machine.from_bits(near.k), machine.from_bits(k))),
        high,
        machine.select(is_near, near.low, angle.low),
    )


def sine(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate sin(x) for x >= 0; NaN for infinity."""
    return sine_of(_quadrant(x, machine), machine)


def cosine(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate cos(x) for x >= 0; NaN for infinity."""
    return cosine_of(_quadrant(x, machine), machine)
