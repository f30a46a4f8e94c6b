"""Evaluate rsqrt and cbrt for f32."""

from __future__ import annotations

import math
from typing import Generic, NamedTuple

from hlo.elementary.fast.logarithm import INFINITY, split
from hlo.elementary.fast.machine import BIAS, MANTISSA_BITS, ROUND, FloatMachine, horner
from hlo.elementary.machine import V

_SMALLEST_NORMAL = 2.0**-126
_INFINITY_BITS = 0x7F800000
_ROOT_OF_TWO = 1.2599210498948732
_ROOT_OF_HALF = 0.7937005259840998

# cbrt(m) for sqrt(1/2) <= m <= sqrt(2)
CUBE_ROOT = (0.45298326, 0.89954203, -0.52785903, 0.21194997, -0.03661016)


# A guess of 1 / sqrt(x) by the bits of x, which are about its logarithm, and one Newton step of it
# whose constants leave 0.065 % (Kadlec, "Improving the fast inverse square root", 2010).
_GUESS, _FACTOR, _LESS = 0x5F1FFFF9, 0.70395225, 2.3892446


def rsqrt(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate 1 / sqrt(x): an infinity of the same sign for a zero, NaN for negative numbers.

    With r = 1 - w y**2 for a guess y of 1 / sqrt(w) it is y (1 - r)**(-1/2) = y (1 + r/2 + 3/8 r**2
    + …); what is left out is 2**-30. Of the roundings only that of y**2 shows, by 0.36 units.
    It takes 0.6 of the time of 1 / sqrt(x) with a Newton step, as it neither divides nor takes a
    root.
    """
    # The bits are to be those of a normal number, and y**2 is to be one, too.
    small = x < 2.0**-100
    w = x * machine.select(small, 2.0**24, 2.0**-24)
    half = machine.bits(w) >> 1
    guess = machine.from_bits((half ^ -1) + (_GUESS + 1))  # _GUESS - half
    y = guess * _FACTOR * machine.fused(-w * guess, guess, _LESS)
    r = machine.residual(w, y * y, 1.0)
    result = machine.fused(y * r, machine.fused(r, 0.375, 0.5), y)
    result = result * machine.select(small, 2.0**12, 2.0**-12)
    # Of 0, -0 and infinity the bits are those of infinity, -infinity and 0 with the exponent's
    # inverted.
    special = machine.from_bits(machine.bits(x) ^ _INFINITY_BITS)
    special = machine.select(x >= 0.0, special, math.nan)
    return machine.select((x > 0.0) & (x < INFINITY), result, special)


class CubeRoot(NamedTuple, Generic[V]):
    """Represent x = scale**3 w with w in [sqrt(1/8), sqrt(8)), and y next to the root of w."""

    w: V
    y: V
    scale: V


def cube_root_guess(x: V, machine: FloatMachine[V]) -> CubeRoot[V]:
    """Evaluate a polynomial next to the cube root of finite x > 0."""
    small = x < _SMALLEST_NORMAL
    normal = machine.select(small, x * 2.0**24, x)
    k, m, _ = split(machine.bits(normal), machine)
    k = k - machine.select(small, 2.0**23 + BIAS + 24, 2.0**23 + BIAS)
    # With the bias in it, the low bits of the sum are the exponent field of 2**(k/3).
    biased = machine.fused(k, 1.0 / 3.0, ROUND + BIAS)
    left = machine.fused(biased - (ROUND + BIAS), -3.0, k)
    above, below = left > 0.5, left < -0.5
    w = m * machine.select(above, 2.0, machine.select(below, 0.5, 1.0))
    root = machine.select(above, _ROOT_OF_TWO, machine.select(below, _ROOT_OF_HALF, 1.0))
    y = horner(m, CUBE_ROOT, machine) * root
    return CubeRoot(w, y, machine.from_bits(machine.bits(biased) << MANTISSA_BITS))


def cbrt(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate the cube root for x >= 0.

    One Newton step, y + (w - y**3) / (3 y**2), takes a guess to the rest; w - y**3 cancels, and so
    is taken in float64.
    """
    w, y, scale = cube_root_guess(x, machine)
    wide = machine.widened(y)
    rest = machine.narrowed(machine.widened(w) - wide * wide * wide)
    result = y + rest / (y * y * 3.0)
    return machine.select((x > 0.0) & (x < INFINITY), result * scale, x)
