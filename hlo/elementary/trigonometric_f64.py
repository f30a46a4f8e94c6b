"""Evaluate sine, cosine and tan for f64, in double-double arithmetic; x >= 0.

Payne and Hanek's reduction, as in ``trigonometric.py``, with ten pieces of 2/pi.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from hlo.elementary.double_double import (
    Pair,
    constant,
    divide,
    fast_two_sum,
    multiply,
    negative,
    select,
    two_sum,
    veltkamp_split,
)
from hlo.elementary.exponential_f64 import horner_pairs, identity_if_tiny
from hlo.elementary.machine import MANTISSA_BITS, ROUND, Machine, V, horner
from hlo.elementary.pi import pi
from hlo.elementary.trigonometric import select_by_quadrant

HALF_PI: Pair[Any] = Pair(1.5707963267948966, 6.123233995736766e-17)

_BITS = 27  # of a piece of 2/pi: its product with half an f64 is exact
_PIECES = 10  # enough for 168 bits behind the point, 62 of which the worst x loses
# The last row serves x from 2**(54 + 27 * 35) = 2**999 on; no f64 needs another. In all they
# take 27 * 46 = 1242 bits of 2/pi, for which those of pi suffice.
_ROWS = 36
_TWO_OVER_PI = int((2 << (_BITS * (_ROWS + _PIECES))) / pi(1300))

_ROUND_TO_2_40 = 1.5 * 2.0**92
_ROUND_TO_FOURS = 1.5 * 2.0**54

# sin(a) / a and cos(a) by Taylor's series in a**2, for a <= pi/4; the tails in one float64.
_SINE = tuple(constant(Fraction((-1) ** n, math.factorial(2 * n + 1))) for n in range(9))
_SINE_TAIL = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(9, 15))
_COSINE = tuple(constant(Fraction((-1) ** n, math.factorial(2 * n))) for n in range(9))
_COSINE_TAIL = tuple((-1) ** n / math.factorial(2 * n) for n in range(9, 15))


def _piece(row: int, column: int) -> float:
    """Return piece ``row + column`` of 2/pi, times 2**(_BITS * row)."""
    shift = _BITS * (_ROWS + _PIECES - 1 - row - column)
    return math.ldexp((_TWO_OVER_PI >> shift) & (2**_BITS - 1), -_BITS * (column + 1))


def _window(x: V, machine: Machine[V]) -> tuple[V, list[V | float]]:
    """Select the row of 2/pi that x needs; return x / 2**(27 r) and its pieces, times 2**(27 r).

    The products add up to 2/pi x, but for a multiple of 4: what stands before the r-th piece
    contributes such a multiple if x >= 2**(54 + 27 r). The factors keep the products within range.
    """
    chosen: list[V | float] = [_piece(0, column) for column in range(_PIECES)]
    scale: V | float = 1.0
    for row in range(1, _ROWS):
        beyond = x >= 2.0 ** (54 + _BITS * row)
        scale = machine.select(beyond, 2.0 ** (-_BITS * row), scale)
        for column in range(_PIECES):
            chosen[column] = machine.select(beyond, _piece(row, column), chosen[column])
    return x * scale, chosen


def _modulo_four(t: V) -> V:
    """Reduce t modulo 4, exactly, for |t| < 2**91."""
    # A rounding constant reaches over 53 bits: multiples of 2**40 go first, then those of 4.
    t = t - ((t + _ROUND_TO_2_40) - _ROUND_TO_2_40)
    return t - ((t + _ROUND_TO_FOURS) - _ROUND_TO_FOURS)


def quadrant(x: V, machine: Machine[V]) -> tuple[V, Pair[V]]:
    """Reduce x = pi/2 (k + r), |r| <= 1/2; return k + ROUND (k modulo 4), and pi/2 r as a pair."""
    limited, pieces = _window(x, machine)
    first = second = third = x * 0.0
    for column, piece in enumerate(pieces):
        # 26 bits by 27 bits: each product is exact. Only those of the first three pieces reach 4.
        for half in veltkamp_split(limited):
            product = half * piece
            product = _modulo_four(product) if column < 3 else product
            first, error = two_sum(first, product)
            second, error = two_sum(second, error)
            third = third + error
    biased = first + ROUND
    high, error = two_sum(first - (biased - ROUND), second)
    r = fast_two_sum(high, error + third)
    return biased, multiply(r, HALF_PI)


def sine_slope(square: Pair[V]) -> Pair[V]:
    """Evaluate sin(a) / a for a**2 = ``square``, |a| <= pi/4."""
    return horner_pairs(square, horner(square.high, _SINE_TAIL), _SINE)


def cosine_curvature(square: Pair[V]) -> Pair[V]:
    """Evaluate (cos(a) - 1) / a**2 for a**2 = ``square``, |a| <= pi/4."""
    return horner_pairs(square, horner(square.high, _COSINE_TAIL), _COSINE[1:])


def sine_and_cosine(angle: Pair[V]) -> tuple[Pair[V], Pair[V]]:
    """Evaluate sin and cos of a pair, |angle| <= pi/4."""
    square = multiply(angle, angle)
    cosine_ = horner_pairs(square, horner(square.high, _COSINE_TAIL), _COSINE)
    return multiply(angle, sine_slope(square)), cosine_


def sine(x: V, machine: Machine[V]) -> V:
    """Evaluate sin(x) for x >= 0; NaN for infinity."""
    biased, angle = quadrant(x, machine)
    sine_, cosine_ = sine_and_cosine(angle)
    return identity_if_tiny(
        x, select_by_quadrant(biased, sine_.high, cosine_.high, machine), machine
    )


def cosine(x: V, machine: Machine[V]) -> V:
    """Evaluate cos(x) for x >= 0, as the sine one quadrant further."""
    biased, angle = quadrant(x, machine)
    sine_, cosine_ = sine_and_cosine(angle)
    return select_by_quadrant(biased + 1.0, sine_.high, cosine_.high, machine)


def tan(x: V, machine: Machine[V]) -> V:
    """Evaluate tan(x) for x >= 0: sin/cos in even quadrants, -cos/sin in odd ones."""
    biased, angle = quadrant(x, machine)
    sine_, cosine_ = sine_and_cosine(angle)
    is_odd = machine.from_bits((machine.bits(biased) & 1) << MANTISSA_BITS) > 0.0
    above = select(is_odd, negative(cosine_), sine_, machine)
    quotient = divide(above, select(is_odd, sine_, cosine_, machine))
    return identity_if_tiny(x, quotient.high, machine)
