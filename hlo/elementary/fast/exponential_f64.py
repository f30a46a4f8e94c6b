"""Evaluate e**x for f64, in f64 arithmetic."""

from __future__ import annotations

import math

from hlo.elementary.exponential import LN2_HIGH, LN2_LOW, LOG2_E
from hlo.elementary.exponential_f64 import clamped
from hlo.elementary.machine import ROUND, Machine, V, horner, power_of_two

# (e**r - 1 - r) / r**2 by Taylor's series: what is left out is below 2**-57 for |r| <= 0.347.
_TAIL = tuple(1.0 / math.factorial(n) for n in range(2, 14))


def exponential(x: V, machine: Machine[V]) -> V:
    """Evaluate e**x: 0 below -746, infinity above 710.

    With x = k ln(2) + r the roundings of r and of r + r**2 P(r) are 2**-55 each: in e**r, where it
    is below 1 and its last bit 2**-53, 0.18 and 0.25 of that; other roundings are some 0.03 of it.
    Adding 1 rounds by a half, so that the error is below 0.97. A subnormal result has a last bit at
    least twice as large, and is rounded once more.
    """
    x = clamped(x, -746.0, 710.0, machine)
    biased = x * LOG2_E + ROUND
    k = biased - ROUND
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    y = (r + r * r * horner(r, _TAIL)) + 1.0
    # 2**k may be no float64, but the powers of two halves of k are.
    biased_half = k * 0.5 + ROUND
    other = (k - (biased_half - ROUND)) + ROUND
    return y * power_of_two(biased_half, machine) * power_of_two(other, machine)
