"""Evaluate log(x) and what is built on it for f32 and narrower: log1p, asinh, acosh, atanh."""

from __future__ import annotations

from hlo.elementary.double_double import fast_two_sum, to_odd
from hlo.elementary.exponential import LN2_HIGH, LN2_LOW
from hlo.elementary.machine import BIAS, MANTISSA_BITS, Machine, V, horner

INFINITY = float("inf")
NAN = float("nan")

# Encodings: of sqrt(1/2), of 1, and of 2**52, whose low bits count integers.
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_ONE_BITS = BIAS << MANTISSA_BITS
_TWO_52_BITS = (BIAS + 52) << MANTISSA_BITS

# (2 artanh(s) - 2 s) / s**3 in s**2 for |s| <= (sqrt(2) - 1) / (sqrt(2) + 1); error 2.1e-18
TAIL = (
    0.6666666666666666,
    0.4000000000000088,
    0.28571428570802404,
    0.22222222391987728,
    0.18181795610879042,
    0.15386241293734357,
    0.13268730539100895,
    0.1308707158006738,
)


def exponent_and_significand(x: V, machine: Machine[V]) -> tuple[V, V, V]:
    """Split x = 2**k m with m in [sqrt(1/2), sqrt(2)); return k, m and 2**-k as float64.

    For x positive, normal and below 2**1022. The interval is centred on 1, so that log(m) is small
    and k log(2) does not cancel it.
    """
    word = machine.bits(x)
    # fdlibm's trick: adding what 1 exceeds sqrt(1/2) by in the encoding carries into the exponent
    # field exactly where the significand is at least that of sqrt(1/2).
    biased = (word + (_ONE_BITS - _SQRT_HALF_BITS)) >> MANTISSA_BITS
    # An integer or-ed into the low bits of 2**52 is 2**52 plus the integer: a conversion to float64
    # that needs no instruction of its own, of which AVX2 has none for 64 bits.
    k = machine.from_bits(biased | _TWO_52_BITS) - (2.0**52 + BIAS)
    shift = biased << MANTISSA_BITS
    m = machine.from_bits((word - shift) + _ONE_BITS)
    zero = word & 0
    return k, m, machine.from_bits((zero + 2 * _ONE_BITS) - shift)


def log_of_product(k: V, f: V, machine: Machine[V]) -> V:
    """Evaluate k ln(2) + log(1 + f) for sqrt(1/2) <= 1 + f < sqrt(2), rounded to odd.

    As fdlibm's e_log.c: with s = f/(2 + f), log(1 + f) = 2 artanh(s) = f - (f**2/2 - s (f**2/2 +
    R)), where R = z P(z), z = s**2. The large terms, k ln(2) and f, are added without error, so
    that the error is relative to the result for k = 0, too. To odd: a result next to a midpoint of
    two f32, as f - f**2/2 of a tiny f is, must not be rounded onto it.
    """
    half_square = f * f * 0.5
    s = f / (f + 2.0)
    z = s * s
    tail = s * (half_square + z * horner(z, TAIL))
    total = fast_two_sum(k * LN2_HIGH, f)
    rest = total.low - (half_square - (tail + k * LN2_LOW))
    return to_odd(fast_two_sum(total.high, rest), machine)


def with_limits_of_log(x: V, result: V, machine: Machine[V]) -> V:
    """Return ``result``, which is log(x), where x is positive and finite, else its limits:
    -infinity for zeros, NaN for negative numbers, and x for infinity and NaN."""
    result = machine.select(x < INFINITY, result, x)
    return machine.select(x > 0.0, result, machine.select(machine.equal(x, 0.0), -INFINITY, NAN))


def log(x: V, machine: Machine[V]) -> V:
    """Evaluate the natural logarithm: -infinity for zeros, NaN for negative numbers."""
    k, m, _ = exponent_and_significand(x, machine)
    return with_limits_of_log(x, log_of_product(k, m - 1.0, machine), machine)


def log_plus_one(x: V, machine: Machine[V]) -> V:
    """Evaluate log(1 + x); what the rounding of u = 1 + x loses is added to u's significand."""
    u = x + 1.0
    t = u - 1.0
    # TwoSum's error term: u + lost == 1 + x exactly.
    lost = (1.0 - (u - t)) + (x - t)
    k, m, scale = exponent_and_significand(u, machine)
    result = with_limits_of_log(u, log_of_product(k, (m - 1.0) + lost * scale, machine), machine)
    return machine.select(machine.equal(x, 0.0), x, result)


def asinh(x: V, machine: Machine[V]) -> V:
    """Evaluate log(x + sqrt(x**2 + 1)) for x >= 0, as log1p(x + x**2 / (sqrt(x**2 + 1) + 1))."""
    square = x * x
    result = log_plus_one(x + square / (machine.sqrt(square + 1.0) + 1.0), machine)
    return machine.select(x < INFINITY, result, x)


def acosh(x: V, machine: Machine[V]) -> V:
    """Evaluate log(x + sqrt(x**2 - 1)), with d = x - 1 as log1p(d + sqrt(d (d + 2))); else NaN."""
    beyond = x - 1.0
    result = log_plus_one(beyond + machine.sqrt(beyond * (beyond + 2.0)), machine)
    return machine.select(x >= 1.0, result, NAN)


def atanh(x: V, machine: Machine[V]) -> V:
    """Evaluate log((1 + x) / (1 - x)) / 2 for x >= 0, as log1p(2x / (1 - x)) / 2; NaN above 1."""
    result = log_plus_one((x + x) / (1.0 - x), machine) * 0.5
    return machine.select(x <= 1.0, result, NAN)
