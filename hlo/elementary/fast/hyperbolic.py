"""Evaluate sinh and cosh for f32; tanh is in exponential.py."""

from __future__ import annotations

from typing import Any

from hlo.elementary.fast.exponential import ACCURATE_TAIL, reduced, tail
from hlo.elementary.fast.machine import BIAS, MANTISSA_BITS, FloatMachine, horner
from hlo.elementary.machine import V

# (sinh(x) - x) / x**3 in x**2 for |x| <= 1
SINH = (0.16666667, 0.008333316, 0.0001984142, 2.7915382e-06)


def _halves(x: V, machine: FloatMachine[V]) -> tuple[Any, Any]:
    """Return e**x / 2 and e**-x / 2 as float64, with an error of some 2**-28, for x >= 0.

    e**r and its inverse, which is a division of f32 and one Newton step in float64, times powers of
    two. At 89.5, where x is clamped, both results are infinite in f32. From 2**40 on the second one
    is too small to count: its power of two stays there.
    """
    parts = reduced(machine.select(x > 89.5, 89.5, x), machine)
    growth = machine.widened(parts.high) + machine.widened(tail(parts, ACCURATE_TAIL, machine))
    growth = growth + 1.0
    guess = machine.widened(1.0 / machine.narrowed(growth))
    inverse = guess * (2.0 - growth * guess)
    # The low bits of ``biased`` are k + 254; 2**(k - 2) and 2**(-k - 1) have k + 125 and 126 - k.
    quarter = machine.from_bits((machine.bits(parts.biased) - (BIAS + 2)) << MANTISSA_BITS)
    few = machine.select(parts.k > 40.0, parts.biased - (parts.k - 40.0), parts.biased)
    word = (machine.bits(few) & 0) + (3 * BIAS - 1)
    other = machine.from_bits((word - machine.bits(few)) << MANTISSA_BITS)
    return growth * (machine.widened(quarter) * 2.0), inverse * machine.widened(other)


def cosh(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate (e**x + e**-x) / 2 for x >= 0."""
    growing, falling = _halves(x, machine)
    return machine.narrowed(growing + falling)


def sinh(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate (e**x - e**-x) / 2 for x >= 0; up to 1, where these cancel, by a polynomial."""
    growing, falling = _halves(x, machine)
    square = x * x
    near = machine.fused(x * square, horner(square, SINH, machine), x)
    return machine.select(x > 1.0, machine.narrowed(growing - falling), near)
