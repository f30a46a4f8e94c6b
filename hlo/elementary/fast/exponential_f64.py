"""Evaluate e**x and what is built on it for f64, in f64 arithmetic.

Beside e**x itself the sequences carry a few bits more than 53: with x = k ln(2) + r, e**r - 1 as a
sum of two numbers whose error is below 2**-58. Rounded once at the end, results have errors little
above a half.
"""

from __future__ import annotations

from hlo.elementary.double_double import Pair, fast_two_sum, select, two_sum
from hlo.elementary.exponential import LN2_HIGH, LN2_LOW, LOG2_E, TAIL
from hlo.elementary.exponential_f64 import clamped
from hlo.elementary.fast.machine import DoubleMachine, divided, exact_product, horner, quotient
from hlo.elementary.machine import BIAS, MANTISSA_BITS, ROUND, SIGN, V

# Adding this rounds to an integer k, and leaves k + 2 BIAS > 0 in the low bits of the encoding.
_ROUND_BIASED = ROUND + 2.0 * BIAS


def power_of_two(biased: V, machine: DoubleMachine[V]) -> V:
    """Return 2**k for ``biased == k + _ROUND_BIASED``, -1022 <= k <= 1023."""
    return machine.from_bits((machine.bits(biased) - BIAS) << MANTISSA_BITS)


def scaled(y: V, biased: V, machine: DoubleMachine[V]) -> V:
    """Return y 2**k for ``biased == k + _ROUND_BIASED``, -1100 <= k <= 1100.

    2**k may be no float64, but the powers of two halves of k are. Only the second product rounds,
    where it is subnormal.
    """
    word = machine.bits(biased)
    half = word >> 1
    y = y * machine.from_bits(half << MANTISSA_BITS)
    return y * machine.from_bits((word - half) << MANTISSA_BITS)


def exponential(x: V, machine: DoubleMachine[V]) -> V:
    """Evaluate e**x: 0 below -746, infinity above 710.

    With x = k ln(2) + r the roundings of r and of e**r - 1 are 2**-55 each: in e**r, where it
    is below 1 and its last bit 2**-53, 0.18 and 0.25 of that; other roundings are some 0.03 of it.
    Adding 1 rounds by a half, so that the error is below 0.97. A subnormal result has a last bit at
    least twice as large, and is rounded once more. Where it is 0, e**0 is computed: processors take
    ten times as long for a product that is rounded to a subnormal number or to 0.
    """
    vanishes = x < -746.0
    limited = machine.select(vanishes, 0.0, machine.select(x > 710.0, 710.0, x))
    fraction, biased = reduced_once(limited, machine)
    return machine.select(vanishes, 0.0, scaled(fraction + 1.0, biased, machine))


def reduced_once(x: V, machine: DoubleMachine[V]) -> tuple[V, V]:
    """Reduce x = k ln(2) + r, |r| <= ln(2)/2, |x| < 750; return e**r - 1, and k + _ROUND_BIASED.

    The error is below 2**-53.7: 2**-55 of r, 2**-55 of the sum where it is 1/4 or more.
    """
    biased = machine.fused(x, LOG2_E, _ROUND_BIASED)
    k = biased - _ROUND_BIASED
    r = machine.fused(k, -LN2_LOW, machine.fused(k, -LN2_HIGH, x))
    return machine.fused(r * r, horner(r, TAIL, machine), r), biased


def reduced(x: Pair[V], machine: DoubleMachine[V]) -> tuple[Pair[V], V]:
    """Reduce x = k ln(2) + r, |r| <= ln(2)/2, |x| <= 750; return e**r - 1, and k + _ROUND_BIASED.

    The pair is e**r - 1 = (r + r**2/2) + rest: the first number is rounded, and the second one, up
    to 0.0084, holds what that loses and r**3 (1/6 + r/24 + …), whose four roundings are below
    2**-58.
    """
    biased = machine.fused(x.high, LOG2_E, _ROUND_BIASED)
    k = biased - _ROUND_BIASED
    rest = machine.fused(k, -LN2_HIGH, x.high)  # exact, as the product is
    r, r_low = fast_two_sum(rest, machine.fused(k, -LN2_LOW, x.low))
    square = exact_product(r, r, machine)
    cubic = machine.fused(square.high * r, horner(r, TAIL[1:], machine), square.low * 0.5)
    total = fast_two_sum(r, square.high * 0.5)
    return Pair(total.high, (total.low + cubic) + machine.fused(r_low, r, r_low)), biased


def _widened(x: V) -> Pair[V]:
    """Return a number as a pair."""
    return Pair(x, x * 0.0)


def _grown(fraction: Pair[V], scale: V, machine: DoubleMachine[V]) -> Pair[V]:
    """Return e**x - 1 = (2**k - 1) + 2**k (e**r - 1), for -60 <= k < 1023, not normalised."""
    whole = scale - 1.0
    lost = (scale - whole) - 1.0
    total = fast_two_sum(whole, scale * fraction.high)
    return Pair(total.high, total.low + machine.fused(scale, fraction.low, lost))


def _grown_from(x: V, machine: DoubleMachine[V]) -> tuple[Pair[V], V]:
    """Evaluate e**x - 1 for -40 <= x <= 712, as a pair that is not normalised, times 1.

    For x > 650, where the 1 is small, e**x 2**-64, which is finite as its products' errors are,
    times 2**64.
    """
    fraction, biased = reduced(_widened(x), machine)
    is_large = x > 650.0
    biased = machine.select(is_large, biased - 64.0, biased)
    grown = _grown(fraction, power_of_two(biased, machine), machine)
    return grown, machine.select(is_large, 2.0**64, 1.0)


def exponential_minus_one(x: V, machine: DoubleMachine[V]) -> V:
    """Evaluate e**x - 1, as -1 from -40 on.

    For k = 1 the result is 0.41 at least, where a unit is 2**-54, and the error of the pair, twice
    2**-58, 0.13 of it: below 0.7.
    """
    grown, scale = _grown_from(clamped(x, -40.0, 710.0, machine), machine)
    result = (grown.high + grown.low) * scale
    # The sign is that of x already, but for -0.
    return machine.from_bits(machine.bits(result) | (machine.bits(x) & SIGN))


def logistic(x: V, machine: DoubleMachine[V]) -> V:
    """Evaluate 1 / (1 + e**-x): for x >= 0 as it stands, for x < 0 as e**x / (1 + e**x).

    A quotient of pairs, rounded once, or twice where it is subnormal: below 0.6, or 0.8.
    """
    limited = clamped(-machine.absolute(x), -746.0, 0.0, machine)
    fraction, biased = reduced(_widened(limited), machine)
    power = fast_two_sum(fraction.high * 0.0 + 1.0, fraction.high)
    power = fast_two_sum(power.high, power.low + fraction.low)
    least = _ROUND_BIASED - 1000.0  # 1 + e**-1000 is 1
    scale = power_of_two(machine.select(biased < least, least, biased), machine)
    below = fast_two_sum(scale * 0.0 + 1.0, scale * power.high)
    below = Pair(below.high, machine.fused(scale, power.low, below.low))
    is_negative = x < 0.0
    zero = scale * 0.0
    above = select(is_negative, power, Pair(zero + 1.0, zero), machine)
    result = quotient(above, below, machine)
    return scaled(result, machine.select(is_negative, biased, _ROUND_BIASED), machine)


def tanh(x: V, machine: DoubleMachine[V]) -> V:
    """Evaluate (e**2x - 1) / (e**2x + 1) for x >= 0; 1 from 22 on.

    A quotient of pairs, rounded once: below 0.7, as e**2x - 1 in :func:`exponential_minus_one`.
    """
    limited = machine.select(x > 22.0, 22.0, x)
    fraction, biased = reduced(_widened(limited + limited), machine)
    grown = _grown(fraction, power_of_two(biased, machine), machine)
    grown = fast_two_sum(grown.high, grown.low)
    below = two_sum(grown.high, grown.high * 0.0 + 2.0)
    return quotient(grown, Pair(below.high, below.low + grown.low), machine)


def sinh(x: V, machine: DoubleMachine[V]) -> V:
    """Evaluate (e**x - e**-x) / 2 for x >= 0, as (f + f/(f + 1)) / 2 with f = e**x - 1.

    A sum of pairs, rounded once: below 0.7, as e**x - 1.
    """
    grown, scale = _grown_from(machine.select(x > 712.0, 712.0, x), machine)
    grown = fast_two_sum(grown.high, grown.low)
    below = two_sum(grown.high, grown.high * 0.0 + 1.0)
    other = divided(grown, Pair(below.high, below.low + grown.low), machine)
    return _half_sum(grown, other, scale)


def cosh(x: V, machine: DoubleMachine[V]) -> V:
    """Evaluate (e**x + e**-x) / 2 for x >= 0. A sum of pairs, rounded once: below 0.6."""
    grown, scale = _grown_from(machine.select(x > 712.0, 712.0, x), machine)
    total = two_sum(grown.high, grown.high * 0.0 + 1.0)
    power = fast_two_sum(total.high, total.low + grown.low)
    zero = scale * 0.0
    return _half_sum(power, divided(Pair(zero + 1.0, zero), power, machine), scale)


def _half_sum(a: Pair[V], b: Pair[V], scale: V) -> V:
    """Return (a + b) / 2 times a power of two, for |a| >= |b|."""
    total = fast_two_sum(a.high, b.high)
    return (total.high + (total.low + (a.low + b.low))) * (scale * 0.5)
