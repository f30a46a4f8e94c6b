"""log and its relatives, for results of f32 and narrower types."""

from __future__ import annotations

from hlo.elementary.double_double import fast_two_sum, to_odd
from hlo.elementary.exponential import LN2_HIGH, LN2_LOW
from hlo.elementary.machine import BIAS, MANTISSA_BITS, Machine, V, horner

INFINITY = float("inf")
NAN = float("nan")

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
    """k, m and 2**-k with x = 2**k m and m in [sqrt(1/2), sqrt(2)), for x positive, normal and
    below 2**1022."""
    word = machine.bits(x)
    biased = (word + (_ONE_BITS - _SQRT_HALF_BITS)) >> MANTISSA_BITS
    k = machine.from_bits(biased | _TWO_52_BITS) - (2.0**52 + BIAS)
    shift = biased << MANTISSA_BITS
    m = machine.from_bits((word - shift) + _ONE_BITS)
    zero = word & 0
    return k, m, machine.from_bits((zero + 2 * _ONE_BITS) - shift)


def log_of_product(k: V, f: V, machine: Machine[V]) -> V:
    """k ln(2) + log(1 + f) for sqrt(1/2) <= 1 + f < sqrt(2), rounded to odd.

    f, the exact part, is kept apart as in fdlibm's e_log.c: so the error is relative if k is 0.
    """
    half_square = f * f * 0.5
    s = f / (f + 2.0)
    z = s * s
    tail = s * (half_square + z * horner(z, TAIL))
    total = fast_two_sum(k * LN2_HIGH, f)
    rest = total.low - (half_square - (tail + k * LN2_LOW))
    return to_odd(fast_two_sum(total.high, rest), machine)


def outside(x: V, result: V, machine: Machine[V]) -> V:
    """``result``, log(x), where x is positive and finite."""
    result = machine.select(x < INFINITY, result, x)
    return machine.select(x > 0.0, result, machine.select(machine.equal(x, 0.0), -INFINITY, NAN))


def log(x: V, machine: Machine[V]) -> V:
    """The natural logarithm: -infinity for zeros, NaN below."""
    k, m, _ = exponent_and_significand(x, machine)
    return outside(x, log_of_product(k, m - 1.0, machine), machine)


def log_plus_one(x: V, machine: Machine[V]) -> V:
    """log(1 + x): what the rounding of 1 + x loses is added to the significand of the sum."""
    u = x + 1.0
    t = u - 1.0
    lost = (1.0 - (u - t)) + (x - t)
    k, m, scale = exponent_and_significand(u, machine)
    result = outside(u, log_of_product(k, (m - 1.0) + lost * scale, machine), machine)
    return machine.select(machine.equal(x, 0.0), x, result)


def asinh(x: V, machine: Machine[V]) -> V:
    """log(x + sqrt(x**2 + 1)) for x >= 0."""
    square = x * x
    result = log_plus_one(x + square / (machine.sqrt(square + 1.0) + 1.0), machine)
    return machine.select(x < INFINITY, result, x)


def acosh(x: V, machine: Machine[V]) -> V:
    """log(x + sqrt(x**2 - 1)); NaN below 1."""
    beyond = x - 1.0
    result = log_plus_one(beyond + machine.sqrt(beyond * (beyond + 2.0)), machine)
    return machine.select(x >= 1.0, result, NAN)


def atanh(x: V, machine: Machine[V]) -> V:
    """log((1 + x) / (1 - x)) / 2 for x >= 0; NaN above 1."""
    result = log_plus_one((x + x) / (1.0 - x), machine) * 0.5
    return machine.select(x <= 1.0, result, NAN)
