"""Divide with more than the precision of an f32."""

from __future__ import annotations

from hlo.elementary.fast.machine import FloatMachine
from hlo.elementary.machine import V


def reciprocal(high: V, low: V, machine: FloatMachine[V]) -> V:
    """Evaluate 1 / (high + low) with an error little above half a last bit."""
    guess = 1.0 / high
    leading = leading_bits(guess, machine)
    first = leading_bits(high, machine)
    rest = machine.fused(-leading, first, 1.0)
    rest = machine.fused(-leading, (high - first) + low, rest)
    return machine.fused(guess, rest, leading)


def leading_bits(x: V, machine: FloatMachine[V]) -> V:
    """Truncate x to 12 bits: products of two such numbers are exact."""
    return machine.from_bits(machine.bits(x) & -(1 << 12))
