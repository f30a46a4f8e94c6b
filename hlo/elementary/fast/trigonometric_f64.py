"""Evaluate sine, cosine and tan for f64, 0 <= x <= NEAR, in f64 arithmetic.

Reduction by Cody and Waite (:mod:`hlo.elementary.fast.cody_waite`), polynomials by ``python -m
selftest.prove.fit``. Larger operands are rare, and take the exact sequences.

Errors, in units of 2**-53, which is half a last bit of 1, for an angle of at most pi/4 in two parts
whose error is below 2**-56 of it: the tail of the sine is below 0.0784, and its four roundings lose
0.23; that of the cosine is below 0.0159, and loses 0.06 (see each function).
"""

from __future__ import annotations

from hlo.elementary.double_double import Pair, fast_two_sum, negative, select
from hlo.elementary.fast.cody_waite import Quadrant, half_pi_pieces, near_quadrant
from hlo.elementary.fast.machine import DoubleMachine, horner, quotient
from hlo.elementary.machine import MANTISSA_BITS, ROUND, V
from hlo.elementary.trigonometric import select_by_quadrant

NEAR = 6588396.0  # next to 2**22 quadrants


# The products of the first three with a quadrant of 22 bits are exact.
_PIECES = half_pi_pieces(30, 53, 84)

# (sin(r) - r) / r**3 and (cos(r) - 1 + r**2 / 2) / r**4 in r**2 for |r| <= pi/4; errors 1.2e-20 and
# 1.3e-18.
SINE = (
    -0.16666666666666666,
    0.008333333333333331,
    -0.00019841269841265063,
    2.7557319219337367e-06,
    -2.5052106231823328e-08,
    1.605853152004504e-10,
    -7.586691285600142e-13,
)
COSINE = (
    0.041666666666666664,
    -0.0013888888888887398,
    2.4801587298764598e-05,
    -2.7557317271163726e-07,
    2.0876146150430514e-09,
    -1.1382623926404611e-11,
)


def _quadrant(x: V, machine: DoubleMachine[V]) -> Quadrant[V]:
    """Reduce 0 <= x <= NEAR modulo pi/2.

    No x is nearer than 2**-60 to a multiple of pi/2 (Muller, Elementary Functions, 11.3), of which
    the error of the fourth piece, 2**-116, is next to nothing.
    """
    return near_quadrant(x, _PIECES, ROUND, machine)


def _sine_and_cosine(reduced: Quadrant[V], machine: DoubleMachine[V]) -> tuple[Pair[V], Pair[V]]:
    """Evaluate sin(high + low) = high + tail and cos(high + low) = (1 - high**2 / 2) + tail.

    With cos(high) low = (1 - high**2 / 2) low, as |low| <= 2**-54. The parts of either are ordered,
    but not added: where they are, that rounds by half a unit.
    """
    square = reduced.high * reduced.high
    half = square * 0.5
    leading = 1.0 - half
    lost = (1.0 - leading) - half
    cube = square * reduced.high
    sine_tail = machine.fused(cube, horner(square, SINE, machine), reduced.low * leading)
    quartic = machine.fused(square * square, horner(square, COSINE, machine), lost)
    cosine_tail = machine.fused(reduced.high, -reduced.low, quartic)
    return Pair(reduced.high, sine_tail), Pair(leading, cosine_tail)


def near_sine(x: V, machine: DoubleMachine[V]) -> V:
    """Evaluate sin(x) for 0 <= x <= NEAR.

    An error of 0.23 * 2**-53 in [1/2, 0.71], where a unit is 2**-53, and of less below, where tails
    are smaller; the last addition rounds by a half: below 0.8.
    """
    reduced = _quadrant(x, machine)
    sine, cosine = _sine_and_cosine(reduced, machine)
    return select_by_quadrant(
        reduced.biased, sine.high + sine.low, cosine.high + cosine.low, machine
    )


def near_cosine(x: V, machine: DoubleMachine[V]) -> V:
    """Evaluate cos(x) for 0 <= x <= NEAR, as the sine one quadrant further."""
    reduced = _quadrant(x, machine)
    sine, cosine = _sine_and_cosine(reduced, machine)
    return select_by_quadrant(
        reduced.biased + 1.0, sine.high + sine.low, cosine.high + cosine.low, machine
    )


def near_tan(x: V, machine: DoubleMachine[V]) -> V:
    """Evaluate tan(x) for 0 <= x <= NEAR: sin/cos in even quadrants, -cos/sin in odd ones.

    A quotient of pairs: of the sine's and the cosine's errors, 0.23 / 0.707 and 0.06 / 0.707 where
    they are largest, come 0.41 units, and a half of rounding: below 0.95.
    """
    reduced = _quadrant(x, machine)
    sine, cosine = (fast_two_sum(*parts) for parts in _sine_and_cosine(reduced, machine))
    is_odd = machine.from_bits((machine.bits(reduced.biased) & 1) << MANTISSA_BITS) > 0.0
    above = select(is_odd, negative(cosine), sine, machine)
    return quotient(above, select(is_odd, sine, cosine, machine), machine)
