"""pi to any number of bits, in integers."""

from __future__ import annotations

from fractions import Fraction


def _inverse_arc_tangent(n: int, unit: int) -> int:
    """atan(1/n) * unit, a little below."""
    total, power, k = 0, unit // n, 0
    while power:
        total += (-1) ** k * (power // (2 * k + 1))
        power //= n * n
        k += 1
    return total


def pi(bits: int) -> Fraction:
    """pi with an error below 2**-bits (Machin, 1706)."""
    unit = 1 << (bits + 20)
    quarter = 4 * _inverse_arc_tangent(5, unit) - _inverse_arc_tangent(239, unit)
    return Fraction(4 * quarter, unit)
