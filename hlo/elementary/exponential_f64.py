"""Evaluate e**x and what is built on it for f64, in double-double arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from hlo.elementary.double_double import (
    Pair,
    add,
    add_value,
    constant,
    divide,
    fast_two_sum,
    multiply,
    rounded_sum,
    select,
    to_odd,
    two_product,
    two_sum,
)
from hlo.elementary.double_double import scaled as scaled_pair
from hlo.elementary.exponential import LN2_HIGH, LOG2_E
from hlo.elementary.machine import ROUND, Machine, V, horner, power_of_two, with_sign_of

# ln(2) = LN2_HIGH + LN2_MIDDLE + LN2_LOW to 130 bits, for Cody and Waite's reduction. LN2_MIDDLE
# has 42 bits, as LN2_HIGH has: its products with k are exact, too.
LN2_MIDDLE = 5.49792301870721e-14
LN2_LOW = 1.1612227229362532e-26
LN2: Pair[Any] = Pair(0.6931471805599453, 2.3190468138462996e-17)

# (e**r - 1) / r by Taylor's series: for |r| <= 0.347 what is left out is below 2**-108, and the
# terms of _TAIL, evaluated in one float64, are below 2**-53 of the sum, so that their errors vanish
# in it.
_PAIRS = tuple(constant(Fraction(1, math.factorial(n + 1))) for n in range(13))
_TAIL = tuple(1.0 / math.factorial(n + 1) for n in range(13, 23))


def horner_pairs(x: Pair[V], tail: V, coefficients: tuple[Pair[V], ...]) -> Pair[V]:
    """Evaluate a polynomial by Horner's rule in double-double arithmetic.

    The sum of coefficients[i] x**i, and tail x**n for what is of higher degree (n =
    len(coefficients)). Each coefficient must be larger than all that follows it, for FastTwoSum.
    """
    result = Pair(tail, tail * 0.0)
    for coefficient in reversed(coefficients):
        product = multiply(result, x)
        total = fast_two_sum(coefficient.high, product.high)
        result = fast_two_sum(total.high, total.low + (product.low + coefficient.low))
    return result


def slope_near_zero(r: Pair[V]) -> Pair[V]:
    """Evaluate (e**r - 1) / r for |r| <= 0.347."""
    return horner_pairs(r, horner(r.high, _TAIL), _PAIRS)


def exponential_minus_one_near_zero(r: Pair[V]) -> Pair[V]:
    """Evaluate e**r - 1 for |r| <= 0.347."""
    return multiply(r, slope_near_zero(r))


def reduced(x: Pair[V]) -> tuple[Pair[V], V]:
    """Reduce x = k ln(2) + r with |r| <= ln(2)/2 for |x| < 2000; return e**r - 1, and k + ROUND."""
    biased = x.high * LOG2_E + ROUND
    k = biased - ROUND
    high = two_sum(x.high - k * LN2_HIGH, -(k * LN2_MIDDLE))
    r = fast_two_sum(high.high, high.low + (x.low - k * LN2_LOW))
    return exponential_minus_one_near_zero(r), biased


def times_power_of_two(a: Pair[V], k: V, machine: Machine[V]) -> V:
    """Multiply a pair by 2**k and round once to f64, also to a subnormal.

    For 1/16 < |a| < 16 or a = 0, and |k| <= 1100. A subnormal result has fewer bits: adding a
    number whose last bit is that of the result (scaled by 2**-k) makes the addition round there,
    and what it loses is folded back, rounded to odd.
    """
    below = machine.select(k > 0.0, 0.0, k)
    below = machine.select(below > -900.0, -900.0, below)
    least_normal = power_of_two((-1022.0 - below) + ROUND, machine)
    is_subnormal = (k < -900.0) & (machine.absolute(a.high) < least_normal)
    magic = machine.select(is_subnormal, with_sign_of(least_normal, a.high, machine), 0.0)
    total = two_sum(magic, a.high)
    rest = to_odd(two_sum(total.low, a.low), machine)
    whole = (total.high + rest) - magic
    # 2**k may be no float64, but the powers of two halves of k are; neither product rounds, as the
    # bits are those of the result already.
    biased_half = k * 0.5 + ROUND
    half = biased_half - ROUND
    other = power_of_two((k - half) + ROUND, machine)
    return (whole * power_of_two(biased_half, machine)) * other


def clamped(x: V, low: float, high: float, machine: Machine[V]) -> V:
    """Clamp ``x`` to the bounds; NaN, for which both comparisons are false, stays NaN."""
    x = machine.select(x > high, high, x)
    return machine.select(x < low, low, x)


def exponential(x: V, machine: Machine[V]) -> V:
    """Evaluate e**x: 0 below -746, infinity above 710."""
    x = clamped(x, -746.0, 710.0, machine)
    fraction, biased = reduced(Pair(x, x * 0.0))
    # For k = 0 the 1 and x may make a midpoint, off which only a part of the fraction below 2**-106
    # leads: beside the 1 a pair has no room for it.
    near_one = rounded_sum(x * 0.0 + 1.0, fraction, machine)
    k = biased - ROUND
    far = times_power_of_two(add_value(fraction, 1.0), k, machine)
    return machine.select(machine.equal(k, 0.0), near_one, far)


def exponential_minus_one_pair(x: V, machine: Machine[V]) -> Pair[V]:
    """Evaluate e**x - 1 as a pair, for -80 <= x <= 700."""
    fraction, biased = reduced(Pair(x, x * 0.0))
    scale = power_of_two(biased, machine)
    return add(scaled_pair(fraction, scale), two_sum(scale, x * 0.0 - 1.0))


def near_identity(x: V, square: float, cube: float, machine: Machine[V]) -> V:
    """Evaluate x + square x**2 + cube x**3, rounded once, for |x| < 2**-40.

    ``square`` is a power of two. The first terms of e**x - 1, log(1 + x) and their like, whose
    results are next to x itself, and may be next to a midpoint.
    """
    product = two_product(x, x)
    low = product.low * square + product.high * x * cube
    return rounded_sum(x, fast_two_sum(product.high * square, low), machine)


def identity_if_tiny(x: V, result: V, machine: Machine[V]) -> V:
    """Return ``x`` where |x| < 2**-55, so that f(x) = x + O(x**2) rounds to it, else ``result``."""
    return machine.select(machine.absolute(x) < 2.0**-55, x, result)


def exponential_minus_one(x: V, machine: Machine[V]) -> V:
    """Evaluate e**x - 1. Above 40 as (e**r - 2**-k) 2**k: the 1 is small there."""
    high = clamped(x, -80.0, 40.0, machine)
    result = exponential_minus_one_pair(high, machine).high
    y = clamped(x, 40.0, 710.0, machine)
    fraction, biased = reduced(Pair(y, y * 0.0))
    k = biased - ROUND
    one = power_of_two(clamped(-k, -1000.0, 0.0, machine) + ROUND, machine)
    large = add_value(add_value(fraction, 1.0), -one)
    result = machine.select(x > 40.0, times_power_of_two(large, k, machine), result)
    series = near_identity(x, 0.5, 1.0 / 6.0, machine)
    result = machine.select(machine.absolute(x) < 2.0**-40, series, result)
    return identity_if_tiny(x, result, machine)


def logistic(x: V, machine: Machine[V]) -> V:
    """Evaluate 1 / (1 + e**-x): for x >= 0 as it stands, for x < 0 as e**x / (1 + e**x).

    Next to 0 it is 1/2 + x/4 - x**3/48, whose terms are rounded together once.
    """
    magnitude = clamped(machine.absolute(x), 0.0, 746.0, machine)
    zero = magnitude * 0.0
    fraction, biased = reduced(Pair(-magnitude, zero))
    k = biased - ROUND
    power = add_value(fraction, 1.0)
    scale = power_of_two(clamped(k, -1000.0, 0.0, machine) + ROUND, machine)
    below = add_value(scaled_pair(power, scale), 1.0)
    is_negative = x < 0.0
    above = select(is_negative, power, Pair(zero + 1.0, zero), machine)
    quotient = divide(above, below)
    result = times_power_of_two(quotient, machine.select(is_negative, k, zero), machine)
    near_half = rounded_sum(zero + 0.5, Pair(x * 0.25, x * x * x * (-1.0 / 48.0)), machine)
    return machine.select(machine.absolute(x) < 2.0**-26, near_half, result)


def tanh(x: V, machine: Machine[V]) -> V:
    """Evaluate (e**2x - 1) / (e**2x + 1) for x >= 0; 1 from 20 on."""
    grown = exponential_minus_one_pair(clamped(x, 0.0, 25.0, machine) * 2.0, machine)
    return identity_if_tiny(x, divide(grown, add_value(grown, 2.0)).high, machine)


def _half_power(x: V, machine: Machine[V]) -> tuple[Pair[V], V, Pair[V]]:
    """Evaluate e**x / 2**k, k, and e**-x / 2**k for 0 <= x <= 711: e**x itself may overflow."""
    fraction, biased = reduced(Pair(x, x * 0.0))
    k = biased - ROUND
    power = add_value(fraction, 1.0)
    inverse = divide(Pair(x * 0.0 + 1.0, x * 0.0), power)
    # e**-x is ``inverse`` / 2**k; from 2**-1000 on it is nothing beside e**x.
    scale = power_of_two(clamped(k * -2.0, -1000.0, 0.0, machine) + ROUND, machine)
    return power, k, scaled_pair(inverse, scale)


def sinh(x: V, machine: Machine[V]) -> V:
    """Evaluate (e**x - e**-x) / 2 for x >= 0; up to 1 as (f + f/(f + 1)) / 2 with f = e**x - 1."""
    power, k, inverse = _half_power(clamped(x, 0.0, 711.0, machine), machine)
    large = times_power_of_two(add(power, Pair(-inverse.high, -inverse.low)), k - 1.0, machine)
    grown = exponential_minus_one_pair(clamped(x, 0.0, 2.0, machine), machine)
    small = add(grown, divide(grown, add_value(grown, 1.0))).high * 0.5
    return identity_if_tiny(x, machine.select(x > 1.0, large, small), machine)


def cosh(x: V, machine: Machine[V]) -> V:
    """Evaluate (e**x + e**-x) / 2 for x >= 0; next to 0 as 1 + x**2/2 + x**4/24, rounded once."""
    power, k, inverse = _half_power(clamped(x, 0.0, 711.0, machine), machine)
    large = times_power_of_two(add(power, inverse), k - 1.0, machine)
    square = two_product(x, x)
    series = Pair(square.high * 0.5, square.low * 0.5 + square.high * square.high * (1.0 / 24.0))
    small = rounded_sum(x * 0.0 + 1.0, series, machine)
    return machine.select(x < 2.0**-26, small, large)
