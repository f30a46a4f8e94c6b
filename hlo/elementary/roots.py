"""Evaluate sqrt, rsqrt and cbrt for f32 and narrower."""

from __future__ import annotations

from hlo.elementary.logarithm import INFINITY, exponent_and_significand
from hlo.elementary.machine import ROUND, Machine, V, horner, power_of_two

_CUBE_ROOT_OF_TWO = 1.2599210498948732
_CUBE_ROOT_OF_HALF = 0.7937005259840998
# The binomial series (cbrt(1 + t) - 1) / t: the guess leaves |t| < 2**-14, so four terms do.
_CUBE_ROOT_OF_ONE_PLUS = (1.0 / 3.0, -1.0 / 9.0, 5.0 / 81.0, -10.0 / 243.0)
# Its last bit is worth 2**-16: what is added to it and below 2 keeps 17 bits.
_ROUND_TO_17_BITS = 1.5 * 2.0**36

# cbrt(m) for sqrt(1/2) <= m <= sqrt(2); error 1.5e-6
CUBE_ROOT = (
    0.4233019537513749,
    1.0479569792210082,
    -0.8202036379731882,
    0.4955790095294391,
    -0.17220378917945903,
    0.025568865096233927,
)


def sqrt(x: V, machine: Machine[V]) -> V:
    """Take the square root, a correctly rounded operation of the machine."""
    return machine.sqrt(x)


def rsqrt(x: V, machine: Machine[V]) -> V:
    """Evaluate 1 / sqrt(x): an infinity of the same sign for a zero, NaN for negative numbers."""
    return 1.0 / machine.sqrt(x)


def reduced_cube_root(exponent: V, m: V, machine: Machine[V]) -> tuple[V, V, V]:
    """Reduce 2**exponent m = 8**k w; return w in [sqrt(1/8), sqrt(8)), cbrt(w) and k + ROUND.

    y is a guess of 17 bits, so that its cube is exact in 51, and cbrt(w) = y cbrt(1 + t) with t =
    (w - y**3) / y**3.
    """
    third = exponent * (1.0 / 3.0) + ROUND
    # exponent = 3 k + left with left in {-1, 0, 1}, which w and the guess take as a factor.
    left = exponent - 3.0 * (third - ROUND)
    above, below = left > 0.5, left < -0.5
    one = m * 0.0 + 1.0
    w = m * machine.select(above, 2.0, machine.select(below, 0.5, one))
    root = machine.select(above, _CUBE_ROOT_OF_TWO, machine.select(below, _CUBE_ROOT_OF_HALF, one))
    y = horner(m, CUBE_ROOT) * root
    y = (y + _ROUND_TO_17_BITS) - _ROUND_TO_17_BITS
    cube = y * y * y
    t = (w - cube) / cube
    return w, y + y * (t * horner(t, _CUBE_ROOT_OF_ONE_PLUS)), third


def cbrt(x: V, machine: Machine[V]) -> V:
    """Evaluate the cube root for x >= 0."""
    exponent, m, _ = exponent_and_significand(x, machine)
    _, root, third = reduced_cube_root(exponent, m, machine)
    return machine.select((x > 0.0) & (x < INFINITY), root * power_of_two(third, machine), x)
