"""Evaluate sine, cosine and tan for f32, x >= 0.

Argument reduction by Payne and Hanek, as in ``hlo/elementary/trigonometric.py``, in float64; the
rest in f32. Where the operand is known to be small, sine and cosine have shorter sequences:
reduction by Cody and Waite (:mod:`hlo.elementary.fast.cody_waite`) up to ``NEAR``, and none up to
``UNIT``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Generic, NamedTuple

from hlo.elementary.fast.cody_waite import half_pi_pieces, near_quadrant
from hlo.elementary.fast.machine import ROUND, SIGN, FloatMachine, horner
from hlo.elementary.machine import V, Word
from hlo.elementary.pi import pi

_PIECE = 29  # bits whose product with an f32 is exact in float64
_BOUNDS = (50, 76, 102)  # a row of 2/pi serves the x between two of these powers of two
_ROUND = 2.0**52  # added to a float64 in [0, 2**52), rounds it to an integer
_HALF_PI = 1.5707963267948966
NEAR = 1608.0  # next to 2**10 quadrants
UNIT = 1.0 + 2.0**-10  # beyond what a function of results up to 1 gives


def _row(lowest: int) -> tuple[float, float, float]:
    """Return 2/pi in two pieces of 29 bits and a float64, for f32 x from 2**lowest on.

    Such an x is a multiple of 2**(lowest - 23), so that bits of 2/pi worth 2**(25 - lowest) or more
    contribute multiples of 4 quadrants, and are left out.
    """
    rest = (2 / pi(300)) % Fraction(2) ** (25 - lowest)
    pieces = []
    for count in (1, 2):
        last = Fraction(2) ** (25 - lowest - count * _PIECE)
        pieces.append(rest // last * last)
        rest -= pieces[-1]
    return float(pieces[0]), float(pieces[1]), float(rest)


_ROWS = tuple(_row(lowest) for lowest in (25, *_BOUNDS))


# The products of the first three with a quadrant of 11 bits are exact in f32.
_PIECES = half_pi_pieces(13, 24, 38)

# (sin(r) - r) / r**3 and (cos(r) - 1 + r**2 / 2) / r**4 in r**2 for |r| <= pi/4
SINE = (-0.16666667, 0.008333373, -0.00019850302, 2.8045026e-06)
COSINE = (0.041666646, -0.0013887313, 2.443297e-05)
# The same for |r| <= UNIT
UNIT_SINE = (-0.16666667, 0.0083333505, -0.0001984144, 2.7205024e-06)
UNIT_COSINE = (0.041666668, -0.0013888935, 2.4805544e-05, -2.7413427e-07)
# (tan(r) - r - r**3 / 3) / r**5 in r**2 for |r| <= pi/4
TAN = (0.13333069, 0.054023795, 0.021436898, 0.010491336, 0.0004739779, 0.0042062737)


class Quadrant(NamedTuple, Generic[V]):
    """Represent x = k pi/2 + high + low: the low bits of ``k``, and |high + low| <= pi/4."""

    k: Word
    high: V
    low: V


def quadrant(x: V, machine: FloatMachine[V]) -> Quadrant[V]:
    """Reduce x >= 0 modulo pi/2 to an angle of two f32."""
    k, angle = wide_quadrant(x, machine)
    high = machine.narrowed(angle)
    return Quadrant(k, high, machine.narrowed(angle - machine.widened(high)))


def wide_quadrant(x: V, machine: FloatMachine[V]) -> tuple[Word, Any]:
    """Reduce x >= 0 modulo pi/2 to the low bits of the quadrant and a float64 of at most pi/4.

    The products of x with the pieces of 2/pi are exact, as is what remains of each modulo 1; the
    sum of the two remainders is a multiple of their last bits again. The integers add up in one
    float64 in [2**52, 2**53), whose low bits hold them.
    """
    wide_x = machine.widened(x)
    first, second, rest = _window(wide_x, machine)
    first_biased, second_biased = first + _ROUND, second + _ROUND
    first_whole, second_whole = first_biased - _ROUND, second_biased - _ROUND
    fraction = (first - first_whole) + (second - second_whole)
    whole = first_biased + second_whole
    biased = whole + fraction
    angle = ((fraction - (biased - whole)) + rest) * _HALF_PI
    return machine.low_word(biased), angle


def _window(x: Any, machine: FloatMachine[V]) -> list[Any]:
    """Select, by the size of the float64 x, the row of 2/pi; return its products with x."""
    products = []
    for column in zip(*_ROWS, strict=True):
        chosen: Any = column[-1]
        for bound, number in reversed(list(zip(_BOUNDS, column))):
            chosen = machine.wide.select(x < 2.0**bound, number, chosen)
        products.append(x * chosen)
    return products


def near_quadrant_of(x: V, machine: FloatMachine[V]) -> Quadrant[V]:
    """Reduce 0 <= x <= NEAR modulo pi/2."""
    biased, high, low = near_quadrant(x, _PIECES, ROUND, machine)
    return Quadrant(machine.bits(biased), high, low)


def _sine(reduced: Quadrant[V], machine: FloatMachine[V]) -> V:
    """Evaluate the sine of |high + low| <= pi/4."""
    square = reduced.high * reduced.high
    tail = machine.fused(square * reduced.high, horner(square, SINE, machine), reduced.low)
    return reduced.high + tail


def _cosine(reduced: Quadrant[V], machine: FloatMachine[V]) -> V:
    """Evaluate the cosine of |high + low| <= pi/4, as 1 - r**2/2 + (what that lost + the rest)."""
    square = reduced.high * reduced.high
    half = square * 0.5
    leading = 1.0 - half
    tail = machine.fused(square * square, horner(square, COSINE, machine), (1.0 - leading) - half)
    return leading + machine.fused(reduced.high, -reduced.low, tail)


def _is_odd(k: Word, machine: FloatMachine[V]) -> Any:
    """Return whether a quadrant is odd: its bit as that of 2.0, the rest being zero."""
    return machine.from_bits((k & 1) << 30) > 0.0


def _by_quadrant(k: Word, even: V, odd: V, machine: FloatMachine[V]) -> V:
    """Select ``even`` or ``odd`` by the parity of the quadrant k; negate in quadrants 2, 3."""
    chosen = machine.select(_is_odd(k, machine), odd, even)
    return machine.from_bits(machine.bits(chosen) ^ ((k & 2) << 30))


def sine_of(reduced: Quadrant[V], machine: FloatMachine[V]) -> V:
    """Evaluate the sine of a reduced angle."""
    return _by_quadrant(reduced.k, _sine(reduced, machine), _cosine(reduced, machine), machine)


def cosine_of(reduced: Quadrant[V], machine: FloatMachine[V]) -> V:
    """Evaluate the cosine of a reduced angle, as the sine one quadrant further."""
    return sine_of(reduced._replace(k=reduced.k + 1), machine)


def sine(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate sin(x) for x >= 0; NaN for infinity."""
    return sine_of(quadrant(x, machine), machine)


def cosine(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate cos(x) for x >= 0; NaN for infinity."""
    return cosine_of(quadrant(x, machine), machine)


def near_sine(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate sin(x) for 0 <= x <= NEAR."""
    return sine_of(near_quadrant_of(x, machine), machine)


def near_cosine(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate cos(x) for 0 <= x <= NEAR."""
    return cosine_of(near_quadrant_of(x, machine), machine)


def unit_sine(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate sin(x) for |x| <= UNIT. The sign is that of x already, but for -0."""
    square = x * x
    result = machine.fused(square * x, horner(square, UNIT_SINE, machine), x)
    return machine.from_bits(machine.bits(result) | (machine.bits(x) & SIGN))


def unit_cosine(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate cos(x) for |x| <= UNIT, as 1 - x**2/2 + (what that lost + the rest)."""
    square = x * x
    half = square * 0.5
    leading = 1.0 - half
    lost = (1.0 - leading) - half
    return leading + machine.fused(square * square, horner(square, UNIT_COSINE, machine), lost)


def tan(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate tan(x) for x >= 0: of r in even quadrants, -1 / tan(r) in odd ones.

    r + r**3 (1/3 + r**2 P) in float64 but for P, as r**3 has a fifth of the result; 1 is divided by
    the result in f32, and one Newton step in float64 mends that.
    """
    k, angle = wide_quadrant(x, machine)
    square = angle * angle
    narrow = machine.narrowed(square)
    tail = machine.widened(narrow * horner(narrow, TAN, machine)) + 1.0 / 3.0
    result = angle + angle * square * tail
    even = machine.narrowed(result)
    guess = machine.widened(-1.0 / even)
    odd = machine.narrowed(guess * (2.0 + result * guess))
    # The inverse of 0, which only x = 0 has, is not selected.
    return machine.select(_is_odd(k, machine), odd, even)
