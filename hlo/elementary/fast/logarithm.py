"""Evaluate log(x) and log(1 + x) for f32."""

from __future__ import annotations

from hlo.elementary.fast.machine import MANTISSA_BITS, FloatMachine, horner
from hlo.elementary.machine import V, Word

INFINITY = float("inf")
NAN = float("nan")

_LN2_HIGH = 0.693145751953125  # 15 bits: k * _LN2_HIGH is exact for |k| < 2**9
_LN2_LOW = 1.428606765330187e-06

_SQRT_HALF_BITS = 0x3F3504F3
_ONE_BITS = 0x3F800000
_TWO_23_BITS = 0x4B000000
_SMALLEST_NORMAL = 2.0**-126

# (log(1 + f) - f + f**2 / 2) / f**3 for sqrt(1/2) <= 1 + f <= sqrt(2)
TAIL = (
    0.33333328,
    -0.25000846,
    0.20001446,
    -0.16622764,
    0.14197353,
    -0.13161117,
    0.12788995,
    -0.07664696,
)


def split(word: Word, machine: FloatMachine[V]) -> tuple[V, V, Word]:
    """Split the encoding of a positive normal x = 2**k m with m in [sqrt(1/2), sqrt(2)).

    Return k + 127 + 2**23, whose encoding has k + 127 in its low bits, m, and that exponent field.
    """
    biased = (word + (_ONE_BITS - _SQRT_HALF_BITS)) >> MANTISSA_BITS
    shift = biased << MANTISSA_BITS
    m = machine.from_bits((word - shift) + _ONE_BITS)
    return machine.from_bits(biased | _TWO_23_BITS), m, shift


def log_of_product(k: V, f: V, lost: V | float, machine: FloatMachine[V]) -> V:
    """Evaluate k ln(2) + log(1 + f) + lost for sqrt(1/2) <= 1 + f < sqrt(2).

    The series is f - f**2/2 + f**3 P(f). k * _LN2_HIGH is exact, and so is its sum with what has
    the other sign and at least half its size; the rest is small, and is added up first.
    """
    square = f * f
    tail = machine.fused(square * f, horner(f, TAIL, machine), lost)
    rest = machine.fused(k, _LN2_LOW, machine.fused(square, -0.5, tail))
    return machine.fused(k, _LN2_HIGH, f + rest)


def with_limits_of_log(x: V, result: V, machine: FloatMachine[V]) -> V:
    """Return ``result``, which is log(x), where x is positive and finite, else its limits:
    -infinity for zeros, NaN for negative numbers, and x for infinity and NaN."""
    result = machine.select(x < INFINITY, result, x)
    return machine.select(x > 0.0, result, machine.select(machine.equal(x, 0.0), -INFINITY, NAN))


def log(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate the natural logarithm: -infinity for zeros, NaN for negative numbers."""
    small = x < _SMALLEST_NORMAL
    normal = machine.select(small, x * 2.0**24, x)
    k, m, _ = split(machine.bits(normal), machine)
    k = k - machine.select(small, 2.0**23 + 127 + 24, 2.0**23 + 127)
    return with_limits_of_log(x, log_of_product(k, m - 1.0, 0.0, machine), machine)


def log_plus_one(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate log(1 + x); what the rounding of u = 1 + x loses, divided by u, is added at the end.

    1 / m is 1 - f + f**2 to one part in 30, enough for half a last bit.
    """
    u = x + 1.0
    t = u - 1.0
    # TwoSum's error term: u + lost == 1 + x exactly.
    lost = (1.0 - (u - t)) + (x - t)
    k, m, shift = split(machine.bits(u), machine)
    # 2**(1 - k), as 2**-k is no normal f32 for the largest k.
    scale = machine.from_bits(((shift & 0) + (2 * _ONE_BITS + (1 << MANTISSA_BITS))) - shift)
    f = m - 1.0
    lost = lost * 0.5 * scale
    lost = machine.fused(lost, machine.fused(f, f, -f), lost)
    result = log_of_product(k - (2.0**23 + 127), f, lost, machine)
    result = with_limits_of_log(u, result, machine)
    # There log(1 + x) is x to a quarter of a last bit, also where x is subnormal or -0.
    return machine.select(machine.absolute(x) < 2.0**-25, x, result)
