"""Evaluate e**x and what is built on it for f32: expm1, logistic, tanh."""

from __future__ import annotations

from typing import Generic, NamedTuple

from hlo.elementary.fast.machine import BIAS, MANTISSA_BITS, ROUND, FloatMachine, horner
from hlo.elementary.fast.quotients import reciprocal
from hlo.elementary.machine import V, Word

_LOG2_E = 1.4426950216293335
_LN2_HIGH = 0.693145751953125  # 15 bits: k * _LN2_HIGH is exact for |k| < 2**9
_LN2_LOW = 1.428606765330187e-06

# r is taken from [-0.2877, 0.4055] and not from [-ln(2)/2, ln(2)/2]: e**r - 1 is then between -1/4
# and 1/2, and a quarter of a last bit of e**r is saved where that is below 1 and its last bit
# half as large. This is what to subtract from x log2(e) before it is rounded.
_SHIFT = -0.0849625

# (e**r - 1 - r) / r**2 for those r, of ``python -m selftest.prove.fit_fast``, as are all
# polynomials of the fast sequences; the error of e**r is 2**-28.3.
TAIL = (0.5000003, 0.16666603, 0.04165551, 0.008356284, 0.0014828551)
# The same with an error of 2**-30 of e**r - 1.
ACCURATE_TAIL = (0.5, 0.1666667, 0.041666582, 0.008332, 0.0013918164, 0.00020974093)

# Twice the bias is in the rounding constant, so that the low bits of a sum with it are k + 254,
# which is not negative for k >= -254 and so can be halved by a shift.
_ROUND_BIASED = ROUND + 2 * BIAS


class Reduced(NamedTuple, Generic[V]):
    """Represent x = k ln(2) + r with r = high - low, where ``high`` is exact and ``low`` small.

    ``biased`` is k + _ROUND_BIASED, ``k`` the number itself.
    """

    biased: V
    k: V
    high: V
    low: V


def reduced(x: V, machine: FloatMachine[V]) -> Reduced[V]:
    """Reduce the argument (Cody and Waite), for |x| <= 128.

    ln(2) is subtracted in two parts: the first product is exact, and so is its difference from x
    by Sterbenz' lemma.
    """
    biased = machine.fused(x, _LOG2_E, _SHIFT) + _ROUND_BIASED
    k = biased - _ROUND_BIASED
    return Reduced(biased, k, machine.fused(k, -_LN2_HIGH, x), k * _LN2_LOW)


def tail(reduced_: Reduced[V], coefficients: tuple[float, ...], machine: FloatMachine[V]) -> V:
    """Evaluate e**r - 1 - ``high``, the addend to the exact part of r."""
    r = reduced_.high - reduced_.low
    return machine.fused(r * r, horner(r, coefficients, machine), -reduced_.low)


def grown(r: V, machine: FloatMachine[V]) -> V:
    """Evaluate e**r - 1 for -0.288 < r < 0.406."""
    return machine.fused(r * r, horner(r, TAIL, machine), r)


def scaled(y: V, word: Word, machine: FloatMachine[V]) -> V:
    """Return y * 2**k, rounded once, for a word with k + 254 in its low bits, |k| <= 254.

    2**k need not be an f32: y is multiplied by two powers of two of half the exponent each, of
    which only the second product can round. A shift to the exponent field drops what else the
    words hold.
    """
    half = word >> 1
    first = machine.from_bits(half << MANTISSA_BITS)
    second = machine.from_bits((word - half) << MANTISSA_BITS)
    return y * first * second


def clamped(x: V, low: float, high: float, machine: FloatMachine[V]) -> V:
    """Clamp ``x`` to the bounds; NaN, for which both comparisons are false, stays NaN."""
    x = machine.select(x > high, high, x)
    return machine.select(x < low, low, x)


def exponential(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate e**x. Beyond [-104, 89] every f32 is 0 or infinite, so x is clamped there.

    Where it is 0, as of a score that a mask puts at -1e10, e**0 is computed: processors take ten
    times as long for a product that is rounded to a subnormal number or to 0.
    """
    vanishes = x < -104.0
    x = machine.select(vanishes, 0.0, machine.select(x > 89.0, 89.0, x))
    biased = machine.fused(x, _LOG2_E, _SHIFT) + _ROUND_BIASED
    k = biased - _ROUND_BIASED
    r = machine.fused(k, -_LN2_LOW, machine.fused(k, -_LN2_HIGH, x))
    result = scaled(grown(r, machine) + 1.0, machine.bits(biased), machine)
    return machine.select(vanishes, 0.0, result)


def exponential_minus_one(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate e**x - 1, without the cancellation of the literal formula near 0.

    With e**x = s (1 + high + rest), s = 2**k, it is (s - 1) + s high + s rest: the first two
    sums are taken without error. Half of each term is added, as 2**128 is no f32. Below -18 it is
    -1.
    """
    parts = reduced(clamped(x, -18.0, 89.0, machine), machine)
    half = machine.from_bits((machine.bits(parts.biased) - (BIAS + 1)) << MANTISSA_BITS)
    constant = half - 0.5
    linear = half * parts.high
    total = constant + linear
    lost = (linear - (total - constant)) + ((half - constant) - 0.5)
    result = (total + machine.fused(half, tail(parts, ACCURATE_TAIL, machine), lost)) * 2.0
    # There e**x - 1 is x to a quarter of a last bit, also where x is subnormal or -0.
    return machine.select(machine.absolute(x) < 2.0**-25, x, result)


def logistic(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate 1 / (1 + e**-x).

    With e**-x = 2**k (1 + p) it is 1 / (1 + c + c p) for c = 2**k if k < 0, else c / (1 + c + p)
    for c = 2**-k. The denominator is a sum of two f32, by whose high part 1 is divided; one Newton
    step with the 12 leading bits of both, whose product is exact, makes up for the rest. Where
    e**-x is below 2**-115 the result is 1, and c shall not be subnormal, which takes long.
    """
    parts = reduced(clamped(-x, -80.0, 104.0, machine), machine)
    # 2**(64 - |k|) is a normal f32 for every k, as 2**-|k| is not: the result is scaled by both.
    biased = (ROUND + (BIAS + 64)) - machine.absolute(parts.k)
    scale = machine.from_bits(machine.bits(biased) << MANTISSA_BITS)
    c = scale * 2.0**-64
    falling = parts.k < 0.0
    p = (parts.high + tail(parts, TAIL, machine)) * machine.select(falling, c, 1.0)
    one = c + 1.0
    below = one + p
    lost = (p - (below - one)) + (c - (one - 1.0))
    result = reciprocal(below, lost, machine)
    return result * machine.select(falling, 2.0**64, scale) * 2.0**-64


# tanh(x) / x - 1 in x**2 - MIDDLE for |x| <= 0.9375
MIDDLE = 0.40625
TANH = (
    -0.11651841,
    -0.2468626,
    0.084463745,
    -0.029336007,
    0.010199671,
    -0.003557967,
    0.0012923883,
    -0.00041812853,
)


# (e**2r - 1 - 2r) / r**2 for |r| <= ln(2) / 4
DOUBLED = (2.0, 1.3333212, 0.6666633, 0.26781562, 0.089188926)
# ln(2) / 2 in two parts, the first of 15 bits
_HALF_LN2 = (0.5 * _LN2_HIGH, 0.5 * _LN2_LOW)


def tanh(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate the hyperbolic tangent for x >= 0.

    Up to 0.9375 by a polynomial; above as 1 - 2/(e**2x + 1), whose second term is below 0.3 there,
    and so is its share in the error. f32 has reached 1 at 10 already. With 2x = k ln(2) + 2r the
    second term is c / (c/2 + e**2r) for c = 2**(1 - k).
    """
    centred = machine.fused(x, x, -MIDDLE)
    near = machine.fused(x, horner(centred, TANH, machine), x)
    limited = machine.select(x > 10.0, 10.0, x)
    biased = machine.fused(limited, 2.0 * _LOG2_E, ROUND - (BIAS + 2))
    k = biased - (ROUND - (BIAS + 2))
    high, low = _HALF_LN2
    r = machine.fused(k, -low, machine.fused(k, -high, limited))
    # The low bits of the sum are k - 129, those of its complement are 127 + (1 - k).
    c = machine.from_bits((machine.bits(biased) ^ -1) << MANTISSA_BITS)
    slope = machine.fused(horner(r, DOUBLED, machine), r, 2.0)
    far = 1.0 - c / machine.fused(slope, r, machine.fused(c, 0.5, 1.0))
    return machine.select(x > 0.9375, far, near)
