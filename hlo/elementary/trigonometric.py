"""Evaluate sine, cosine and tan for f32 and narrower, x >= 0.

Argument reduction by Payne and Hanek ("Radian reduction for trigonometric functions", SIGNUM
Newsletter 18(1), 1983) for every x, large or small: only those bits of 2/pi are multiplied that can
matter modulo 4 quadrants.
"""

from __future__ import annotations

from hlo.elementary.double_double import two_sum
from hlo.elementary.machine import MANTISSA_BITS, ROUND, Machine, V, horner

# 2/pi in pieces of 27 bits, each of which times an f32 (24 bits) is exact. A row of four pieces
# serves the x below its bound: what stands before its first piece contributes multiples of 4 only,
# and the row's entry of _REST is all that follows the row, rounded.
_TWO_OVER_PI = (
    float.fromhex("0x1.45f306c000000p-1"),
    float.fromhex("0x1.c9c8828000000p-29"),
    float.fromhex("0x1.29fc270000000p-56"),
    float.fromhex("0x1.5f47d4c000000p-82"),
    float.fromhex("0x1.3770368000000p-110"),
    float.fromhex("0x1.6295990000000p-136"),
    float.fromhex("0x1.e21c820000000p-163"),
)
_REST = (
    float.fromhex("0x1.377036d8a5665p-110"),
    float.fromhex("0x1.6295993c43904p-136"),
    float.fromhex("0x1.e21c820ff28b2p-163"),
    float.fromhex("0x1.fe5163abdebbcp-192"),
)
# An f32 from 2**52 on is a multiple of 2**29, and the first piece one of 2**-27, so that their
# product is a multiple of 4; each further piece has its last bit 27 places lower.
_BOUNDS = (2.0**52, 2.0**79, 2.0**106)

# Rounding constants: adding and subtracting one rounds to a multiple of 4, or of 2**-27.
_ROUND_TO_FOURS = 1.5 * 2.0**54
_ROUND_TO_26_BITS = 1.5 * 2.0**25

_HALF_PI_HIGH = 1.5707963109016418  # 26 bits
_HALF_PI_LOW = 1.5893254773528196e-08

# (sin(pi/2 r) - pi/2 r) / r**3 in r**2 for |r| <= 1/2; error 4.5e-20
SINE = (
    -0.6459640975062463,
    0.07969262624616703,
    -0.004681754135317559,
    0.00016044118476026293,
    -3.5988429255546176e-06,
    5.691991220020721e-08,
    -6.635131315160467e-10,
)
# (cos(pi/2 r) - 1) / r**2 in r**2; error 4.9e-19
COSINE = (
    -1.2337005501361697,
    0.2536695079010478,
    -0.02086348076334075,
    0.000919260274546377,
    -2.5202039024022038e-05,
    4.71067824882157e-07,
    -6.329373560219462e-09,
)


def _window(x: V, machine: Machine[V]) -> list[V]:
    """Select, by the size of ``x``, the row of 2/pi; return x times its five numbers.

    Their sum is 2/pi x, but for a multiple of 4.
    """
    rows = [(*_TWO_OVER_PI[start : start + 4], _REST[start]) for start in range(4)]
    numbers = []
    for column in zip(*rows, strict=True):
        chosen: V | float = column[3]
        for bound, number in reversed(list(zip(_BOUNDS, column))):
            chosen = machine.select(x < bound, number, chosen)
        numbers.append(x * chosen)
    return numbers


def _quadrant(x: V, machine: Machine[V]) -> tuple[V, V, V]:
    """Reduce x = pi/2 (k + r) with |r| <= 1/2; return k + ROUND (k modulo 4), and r as high + low.

    ``high`` has at most 26 bits. The first two products are exact and large: only their remainders
    modulo 4 are kept, exactly, before anything is added.
    """
    first, second, third, fourth, rest = _window(x, machine)
    first = first - ((first + _ROUND_TO_FOURS) - _ROUND_TO_FOURS)
    second = second - ((second + _ROUND_TO_FOURS) - _ROUND_TO_FOURS)
    total, error = two_sum(first, second)
    total, another = two_sum(total, third)
    biased = total + ROUND
    fraction = total - (biased - ROUND)
    low = ((error + another) + fourth) + rest
    high = ((fraction + low) + _ROUND_TO_26_BITS) - _ROUND_TO_26_BITS
    return biased, high, (fraction - high) + low


def _sine_and_cosine(high: V, low: V) -> tuple[V, V]:
    """Evaluate sin and cos of pi/2 (high + low), |high + low| <= 1/2."""
    r = high + low
    z = r * r
    tail = r * z * horner(z, SINE)
    # 26 by 26 bits: the leading product is exact.
    sine = high * _HALF_PI_HIGH + (low * _HALF_PI_HIGH + (r * _HALF_PI_LOW + tail))
    return sine, z * horner(z, COSINE) + 1.0


def select_by_quadrant(biased: V, even: V, odd: V, machine: Machine[V]) -> V:
    """Select ``even`` or ``odd`` by the parity of the quadrant k; negate in quadrants 2, 3."""
    word = machine.bits(biased)
    # The machine makes conditions of values only: the last bit of k moves to the exponent field,
    # where it is 2**-1022; the one before it moves to the sign.
    is_odd = machine.from_bits((word & 1) << MANTISSA_BITS) > 0.0
    chosen = machine.select(is_odd, odd, even)
    return machine.from_bits(machine.bits(chosen) ^ ((word & 2) << 62))


def sine(x: V, machine: Machine[V]) -> V:
    """Evaluate sin(x) for x >= 0; NaN for infinity."""
    biased, high, low = _quadrant(x, machine)
    sine_, cosine_ = _sine_and_cosine(high, low)
    return select_by_quadrant(biased, sine_, cosine_, machine)


def cosine(x: V, machine: Machine[V]) -> V:
    """Evaluate cos(x) for x >= 0, as the sine one quadrant further."""
    biased, high, low = _quadrant(x, machine)
    sine_, cosine_ = _sine_and_cosine(high, low)
    return select_by_quadrant(biased + 1.0, sine_, cosine_, machine)


def tan(x: V, machine: Machine[V]) -> V:
    """Evaluate tan(x) for x >= 0: sin/cos in even quadrants, -cos/sin in odd ones."""
    biased, high, low = _quadrant(x, machine)
    sine_, cosine_ = _sine_and_cosine(high, low)
    is_odd = machine.from_bits((machine.bits(biased) & 1) << MANTISSA_BITS) > 0.0
    above = machine.select(is_odd, -cosine_, sine_)
    return above / machine.select(is_odd, sine_, cosine_)
