"""sine, cosine and tan, for results of f32 and narrower types; x >= 0."""

from __future__ import annotations

from hlo.elementary.double_double import two_sum
from hlo.elementary.machine import MANTISSA_BITS, ROUND, Machine, V, horner

# 2/pi in pieces of 27 bits: their products with an f32 are exact. Each row serves the x below its
# bound, where what stands before its first piece makes multiples of 4 only, and the last number is
# all the rest, rounded.
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
_BOUNDS = (2.0**52, 2.0**79, 2.0**106)

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
    """The five numbers whose sum times ``x`` is 2/pi x, but for a multiple of 4."""
    rows = [(*_TWO_OVER_PI[start : start + 4], _REST[start]) for start in range(4)]
    numbers = []
    for column in zip(*rows, strict=True):
        chosen: V | float = column[3]
        for bound, number in reversed(list(zip(_BOUNDS, column))):
            chosen = machine.select(x < bound, number, chosen)
        numbers.append(x * chosen)
    return numbers


def _quadrant(x: V, machine: Machine[V]) -> tuple[V, V, V]:
    """k + ROUND, r_high and r_low with x = pi/2 (k + r), k modulo 4, |r| <= 1/2, r_high of 26 bits.

    Payne and Hanek's reduction; x is an f32, which is what makes the products exact.
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
    """sin and cos of pi/2 (high + low)."""
    r = high + low
    z = r * r
    tail = r * z * horner(z, SINE)
    sine = high * _HALF_PI_HIGH + (low * _HALF_PI_HIGH + (r * _HALF_PI_LOW + tail))
    return sine, z * horner(z, COSINE) + 1.0


def of_quadrant(biased: V, even: V, odd: V, machine: Machine[V]) -> V:
    """``even`` in quadrants 0 and 2, ``odd`` in 1 and 3, negated in 2 and 3."""
    word = machine.bits(biased)
    is_odd = machine.from_bits((word & 1) << MANTISSA_BITS) > 0.0
    chosen = machine.select(is_odd, odd, even)
    return machine.from_bits(machine.bits(chosen) ^ ((word & 2) << 62))


def sine(x: V, machine: Machine[V]) -> V:
    """sin(x) for x >= 0; NaN for infinity."""
    biased, high, low = _quadrant(x, machine)
    sine_, cosine_ = _sine_and_cosine(high, low)
    return of_quadrant(biased, sine_, cosine_, machine)


def cosine(x: V, machine: Machine[V]) -> V:
    """cos(x) for x >= 0: the sine one quadrant further."""
    biased, high, low = _quadrant(x, machine)
    sine_, cosine_ = _sine_and_cosine(high, low)
    return of_quadrant(biased + 1.0, sine_, cosine_, machine)


def tan(x: V, machine: Machine[V]) -> V:
    """tan(x) for x >= 0."""
    biased, high, low = _quadrant(x, machine)
    sine_, cosine_ = _sine_and_cosine(high, low)
    is_odd = machine.from_bits((machine.bits(biased) & 1) << MANTISSA_BITS) > 0.0
    above = machine.select(is_odd, -cosine_, sine_)
    return above / machine.select(is_odd, sine_, cosine_)
