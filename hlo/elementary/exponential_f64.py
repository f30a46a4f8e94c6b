"""exponential and its relatives on f64, in double-double."""

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

LN2_MIDDLE = 5.49792301870721e-14  # 42 bits again: k * LN2_MIDDLE is exact too
LN2_LOW = 1.1612227229362532e-26
LN2: Pair[Any] = Pair(0.6931471805599453, 2.3190468138462996e-17)

# (e**r - 1) / r by Taylor: for |r| <= 0.347 what is left out is below 2**-108, and the terms that
# are evaluated in one float64 below 2**-53
_PAIRS = tuple(constant(Fraction(1, math.factorial(n + 1))) for n in range(13))
_TAIL = tuple(1.0 / math.factorial(n + 1) for n in range(13, 23))


def horner_pairs(x: Pair[V], tail: V, coefficients: tuple[Pair[V], ...]) -> Pair[V]:
    """The polynomial with these ``coefficients``, then ``tail`` as that of the next power. Each
    coefficient is larger than all that comes after it."""
    result = Pair(tail, tail * 0.0)
    for coefficient in reversed(coefficients):
        product = multiply(result, x)
        total = fast_two_sum(coefficient.high, product.high)
        result = fast_two_sum(total.high, total.low + (product.low + coefficient.low))
    return result


def slope_near_zero(r: Pair[V]) -> Pair[V]:
    """(e**r - 1) / r for |r| <= 0.347."""
    return horner_pairs(r, horner(r.high, _TAIL), _PAIRS)


def minus_one_near_zero(r: Pair[V]) -> Pair[V]:
    """e**r - 1 for |r| <= 0.347."""
    return multiply(r, slope_near_zero(r))


def reduced(x: Pair[V]) -> tuple[Pair[V], V]:
    """e**r - 1 and k + ROUND with x = k ln(2) + r, |r| <= ln(2)/2; for |x| < 2000."""
    biased = x.high * LOG2_E + ROUND
    k = biased - ROUND
    high = two_sum(x.high - k * LN2_HIGH, -(k * LN2_MIDDLE))
    r = fast_two_sum(high.high, high.low + (x.low - k * LN2_LOW))
    return minus_one_near_zero(r), biased


def times_power_of_two(a: Pair[V], k: V, machine: Machine[V]) -> V:
    """a * 2**k rounded once, also to a subnormal, for 1/16 < |a| < 16 or a = 0, |k| <= 1100.

    Adding a number whose last bit is the result's rounds there; what is lost is kept, to odd.
    """
    below = machine.select(k > 0.0, 0.0, k)
    below = machine.select(below > -900.0, -900.0, below)
    least_normal = power_of_two((-1022.0 - below) + ROUND, machine)
    is_subnormal = (k < -900.0) & (machine.absolute(a.high) < least_normal)
    magic = machine.select(is_subnormal, with_sign_of(least_normal, a.high, machine), 0.0)
    total = two_sum(magic, a.high)
    rest = to_odd(two_sum(total.low, a.low), machine)
    whole = (total.high + rest) - magic
    biased_half = k * 0.5 + ROUND
    half = biased_half - ROUND
    other = power_of_two((k - half) + ROUND, machine)
    return (whole * power_of_two(biased_half, machine)) * other


def clamped(x: V, low: float, high: float, machine: Machine[V]) -> V:
    """``x`` between the bounds; NaN stays NaN."""
    x = machine.select(x > high, high, x)
    return machine.select(x < low, low, x)


def exponential(x: V, machine: Machine[V]) -> V:
    """e**x: 0 below -746, infinity above 710."""
    x = clamped(x, -746.0, 710.0, machine)
    fraction, biased = reduced(Pair(x, x * 0.0))
    near_one = rounded_sum(x * 0.0 + 1.0, fraction, machine)
    k = biased - ROUND
    far = times_power_of_two(add_value(fraction, 1.0), k, machine)
    return machine.select(machine.equal(k, 0.0), near_one, far)


def minus_one(x: V, machine: Machine[V]) -> Pair[V]:
    """e**x - 1 for -80 <= x <= 700."""
    fraction, biased = reduced(Pair(x, x * 0.0))
    scale = power_of_two(biased, machine)
    return add(scaled_pair(fraction, scale), two_sum(scale, x * 0.0 - 1.0))


def near_identity(x: V, square: float, cube: float, machine: Machine[V]) -> V:
    """x + square x**2 + cube x**3 rounded once, for |x| < 2**-40; ``square`` is a power of two."""
    product = two_product(x, x)
    low = product.low * square + product.high * x * cube
    return rounded_sum(x, fast_two_sum(product.high * square, low), machine)


def keeps(x: V, result: V, machine: Machine[V]) -> V:
    """``x`` where it is so small that f(x) = x + O(x**2) rounds to it, else ``result``."""
    return machine.select(machine.absolute(x) < 2.0**-55, x, result)


def exponential_minus_one(x: V, machine: Machine[V]) -> V:
    """e**x - 1. Above 40 the 1 is a small perturbation, which e**x * 2**-k takes."""
    high = clamped(x, -80.0, 40.0, machine)
    result = minus_one(high, machine).high
    y = clamped(x, 40.0, 710.0, machine)
    fraction, biased = reduced(Pair(y, y * 0.0))
    k = biased - ROUND
    one = power_of_two(clamped(-k, -1000.0, 0.0, machine) + ROUND, machine)
    large = add_value(add_value(fraction, 1.0), -one)
    result = machine.select(x > 40.0, times_power_of_two(large, k, machine), result)
    series = near_identity(x, 0.5, 1.0 / 6.0, machine)
    result = machine.select(machine.absolute(x) < 2.0**-40, series, result)
    return keeps(x, result, machine)


def logistic(x: V, machine: Machine[V]) -> V:
    """1 / (1 + e**-x), as e**x / (1 + e**x) for x < 0."""
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
    """(e**2x - 1) / (e**2x + 1) for x >= 0."""
    grown = minus_one(clamped(x, 0.0, 25.0, machine) * 2.0, machine)
    return keeps(x, divide(grown, add_value(grown, 2.0)).high, machine)


def _half_power(x: V, machine: Machine[V]) -> tuple[Pair[V], V, Pair[V]]:
    """e**x / 2**k, k and e**-x / 2**k for 0 <= x <= 711."""
    fraction, biased = reduced(Pair(x, x * 0.0))
    k = biased - ROUND
    power = add_value(fraction, 1.0)
    inverse = divide(Pair(x * 0.0 + 1.0, x * 0.0), power)
    scale = power_of_two(clamped(k * -2.0, -1000.0, 0.0, machine) + ROUND, machine)
    return power, k, scaled_pair(inverse, scale)


def sinh(x: V, machine: Machine[V]) -> V:
    """(e**x - e**-x) / 2 for x >= 0."""
    power, k, inverse = _half_power(clamped(x, 0.0, 711.0, machine), machine)
    large = times_power_of_two(add(power, Pair(-inverse.high, -inverse.low)), k - 1.0, machine)
    grown = minus_one(clamped(x, 0.0, 2.0, machine), machine)
    small = add(grown, divide(grown, add_value(grown, 1.0))).high * 0.5
    return keeps(x, machine.select(x > 1.0, large, small), machine)


def cosh(x: V, machine: Machine[V]) -> V:
    """(e**x + e**-x) / 2 for x >= 0."""
    power, k, inverse = _half_power(clamped(x, 0.0, 711.0, machine), machine)
    large = times_power_of_two(add(power, inverse), k - 1.0, machine)
    square = two_product(x, x)
    series = Pair(square.high * 0.5, square.low * 0.5 + square.high * square.high * (1.0 / 24.0))
    small = rounded_sum(x * 0.0 + 1.0, series, machine)
    return machine.select(x < 2.0**-26, small, large)
