"""Compute reciprocals, and the errors of products, to more than the precision of f32."""

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


def product_error(a: V, b: V, product: V, machine: FloatMachine[V]) -> V:
    """Return a * b - product for the rounded product, but for what is beyond f32's exponents."""
    return -remainder(product, a, b, machine)


def remainder(near: V | float, a: V, b: V, machine: FloatMachine[V]) -> V:
    """Evaluate near - a * b for a product that differs by a few last bits of 12, to 2**-34 of it.

    Products of halves are exact, and the first one differs from ``near`` by so little that the
    difference is exact, too (Sterbenz' lemma).
    """
    first, other = leading_bits(a, machine), leading_bits(b, machine)
    a_rest, b_rest = a - first, b - other
    rest = (-(first * other) + near) - first * b_rest
    return (rest - a_rest * other) - a_rest * b_rest
