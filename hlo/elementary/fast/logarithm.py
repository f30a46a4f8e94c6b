"""Evaluate log(x) and what is built on it for f32: log1p, asinh, acosh, atanh."""

from __future__ import annotations

from typing import Any

from hlo.elementary.fast.machine import MANTISSA_BITS, FloatMachine, horner
from hlo.elementary.machine import V, Word

INFINITY = float("inf")
NAN = float("nan")

_LN2_HIGH = 0.693145751953125  # 15 bits: k * _LN2_HIGH is exact for |k| < 2**9
_LN2_LOW = 1.428606765330187e-06

_SQRT_HALF_BITS = 0x3F3504F3
_ONE_BITS = 0x3F800000
_TWO_23_BITS = 0x4B000000
_BIAS = 2.0**23 + 127  # what split() adds to the exponent
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
    k = k - machine.select(small, _BIAS + 24, _BIAS)
    return with_limits_of_log(x, log_of_product(k, m - 1.0, 0.0, machine), machine)


def log_of_sum(u: V, lost: V, bias: float, machine: FloatMachine[V]) -> V:
    """Evaluate log(u + lost) for u > 0, normal, and a rounding error ``lost`` of it.

    What is lost, divided by u, is added at the end: 1 / m is 1 - f + 0.8 f**2 to one part in 20,
    enough for half a last bit. ``bias`` is what split() adds to the exponent, less the power of two
    that u + lost was divided by.
    """
    k, m, shift = split(machine.bits(u), machine)
    # 2**(1 - k), as 2**-k is no normal f32 for the largest k.
    scale = machine.from_bits(((shift & 0) + (2 * _ONE_BITS + (1 << MANTISSA_BITS))) - shift)
    f = m - 1.0
    lost = lost * 0.5 * scale
    lost = machine.fused(lost * f, machine.fused(f, 0.8, -1.0), lost)
    return log_of_product(k - bias, f, lost, machine)


def log_plus_one(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate log(1 + x); what the rounding of 1 + x loses is handed on."""
    u = x + 1.0
    t = u - 1.0
    # TwoSum's error term: u + lost == 1 + x exactly.
    lost = (1.0 - (u - t)) + (x - t)
    result = with_limits_of_log(u, log_of_sum(u, lost, _BIAS, machine), machine)
    # There log(1 + x) is x to a quarter of a last bit, also where x is subnormal or -0.
    return machine.select(machine.absolute(x) < 2.0**-25, x, result)


def atanh(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate log((1 + x) / (1 - x)) / 2 for x >= 0; NaN above 1.

    The remainder of the division of f32, exact in float64, mends the quotient.
    """
    below = 1.0 - x
    u = (x + 1.0) / below
    wide = machine.widened(x)
    rest = machine.narrowed((wide + 1.0) - machine.widened(u) * (1.0 - wide)) / below
    result = log_of_sum(u, rest, _BIAS, machine) * 0.5
    result = machine.select(x < 1.0, result, machine.select(machine.equal(x, 1.0), INFINITY, NAN))
    # There it is x to a twelfth of a last bit.
    return machine.select(x < 2.0**-13, x, result)


def _log_of_leg(x: V, square: Any, machine: FloatMachine[V]) -> V:
    """Evaluate log(x + sqrt(square)) for square = x**2 ± 1 as a float64, x finite.

    The root of f32 is mended by one Newton step with its residual in float64. Half of the sum is
    taken, which is below 2**128.
    """
    narrow = machine.narrowed(square)
    # Beyond, x**2 may be no f32; its root is x.
    root = machine.select(x > 2.0**30, x, machine.sqrt(narrow))
    wide = machine.widened(root)
    # Not by 0, where the residual is 0, too.
    rest = machine.narrowed(square - wide * wide) / machine.select(root > 0.0, root + root, 1.0)
    half = ((machine.widened(x) + wide) + machine.widened(rest)) * 0.5
    u = machine.narrowed(half)
    return log_of_sum(u, machine.narrowed(half - machine.widened(u)), _BIAS - 1.0, machine)


def asinh(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate log(x + sqrt(x**2 + 1)) for x >= 0."""
    wide = machine.widened(x)
    result = _log_of_leg(x, wide * wide + 1.0, machine)
    # There it is x to a twenty-fourth of a last bit.
    return machine.select((x >= 2.0**-13) & (x < INFINITY), result, x)


def acosh(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate log(x + sqrt(x**2 - 1)); NaN below 1."""
    wide = machine.widened(x)
    result = _log_of_leg(x, wide * wide - 1.0, machine)
    return machine.select(x < INFINITY, machine.select(x >= 1.0, result, NAN), x)
