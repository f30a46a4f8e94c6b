"""Compute pi to any number of bits in integer arithmetic."""

from __future__ import annotations

from fractions import Fraction


def _inverse_arc_tangent(n: int, unit: int) -> int:
    """Sum Taylor's series of atan(1/n) * unit; a truncated term is off by less than two units."""
    total, power, k = 0, unit // n, 0
    while power:
        total += (-1) ** k * (power // (2 * k + 1))
        power //= n * n
        k += 1
    return total


def pi(bits: int) -> Fraction:
    """Return pi with an error below 2**-bits, by Machin's formula (1706).

    pi/4 = 4 atan(1/5) - atan(1/239)
    """
    # 20 guard bits: the truncation of some hundred terms stays far below the last bit asked for.
    unit = 1 << (bits + 20)
    quarter = 4 * _inverse_arc_tangent(5, unit) - _inverse_arc_tangent(239, unit)
    return Fraction(4 * quarter, unit)
