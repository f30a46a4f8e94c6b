"""Reduce modulo pi/2 by the method of Cody and Waite.

It has pi/2 in pieces, of which those before the last have so few bits that their products with a
quadrant are exact. Source: Software Manual for the Elementary Functions (1980), chapter 8.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Generic, NamedTuple

from hlo.elementary.fast.machine import FusingMachine
from hlo.elementary.machine import V
from hlo.elementary.pi import pi

Pieces = tuple[float, float, float, float]


class Quadrant(NamedTuple, Generic[V]):
    """Represent x = k pi/2 + high + low: ``biased`` is k + ROUND, and |high + low| <= pi/4."""

    biased: V
    high: V
    low: V


def half_pi_pieces(*bits: int) -> Pieces:
    """Return pi/2 in four pieces; the last bit of each of the first three is worth 2**-bits."""
    rest = pi(300) / 2
    pieces = []
    for last in bits:
        pieces.append(math.floor(rest * 2**last) * Fraction(1, 2**last))
        rest -= pieces[-1]
    first, second, third = map(float, pieces)
    return first, second, third, float(rest)


def near_quadrant(x: V, pieces: Pieces, rounding: float, machine: FusingMachine[V]) -> Quadrant[V]:
    """Reduce x >= 0 modulo pi/2: subtract the multiples of the pieces one by one.

    For quadrants whose products with the first three pieces are exact, and as long as ``rounding``
    rounds to integers (its last bit is worth 1). The first two differences are exact: multiples of
    the last bit of the second piece and of that of x, below 1. The third is in ``high``, and what
    rounding it loses, which is exact as in FastTwoSum, part of ``low``.
    """
    biased = machine.fused(x, 2.0 / math.pi, rounding)
    count = biased - rounding
    first, second, third, fourth = (-piece for piece in pieces)
    rest = machine.fused(count, second, machine.fused(count, first, x))
    high = machine.fused(count, third, rest)
    lost = machine.fused(count, third, rest - high)
    return Quadrant(biased, high, machine.fused(count, fourth, lost))
