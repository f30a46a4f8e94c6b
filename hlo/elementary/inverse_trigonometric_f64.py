"""Evaluate asin, acos and atan for f64, and atan2 for all floats, in double-double arithmetic."""

from __future__ import annotations

from typing import Any

from hlo.elementary.double_double import (
    Pair,
    add,
    add_value,
    divide,
    multiply,
    negative,
    select,
    square_root,
    to_odd,
    two_product,
)
from hlo.elementary.exponential_f64 import clamped, identity_if_tiny, times_power_of_two
from hlo.elementary.inverse_trigonometric import angle as rounded_angle
from hlo.elementary.logarithm import INFINITY, NAN
from hlo.elementary.logarithm_f64 import normalised
from hlo.elementary.machine import ROUND, Machine, V, power_of_two, with_sign_of
from hlo.elementary.trigonometric_f64 import HALF_PI, sine_and_cosine

PI: Pair[Any] = Pair(3.141592653589793, 1.2246467991473532e-16)


def angle(opposite: Pair[V], adjacent: Pair[V], machine: Machine[V]) -> Pair[V]:
    """Evaluate atan(opposite / adjacent) as a pair, for finite numbers >= 0, not both zero.

    With a guess g in float64: tan(a - g) = (opposite cos g - adjacent sin g) / (adjacent cos g +
    opposite sin g), so small (about 2**-53) that it is its own arc tangent.
    """
    swap = opposite.high > adjacent.high
    small = select(swap, adjacent, opposite, machine)
    large = select(swap, opposite, adjacent, machine)
    guess = rounded_angle(small.high, large.high, machine)
    sine, cosine = sine_and_cosine(Pair(guess, guess * 0.0))
    across = add(multiply(small, cosine), negative(multiply(large, sine)))
    along = add(multiply(large, cosine), multiply(small, sine))
    direct = add_value(Pair(guess, guess * 0.0), across.high / along.high)
    return select(swap, add(HALF_PI, negative(direct)), direct, machine)


def atan(x: V, machine: Machine[V]) -> V:
    """Evaluate the arc tangent for x >= 0."""
    # From there on it is pi/2 in 106 bits, and products of larger legs would overflow.
    x_or_large = machine.select(x > 2.0**120, 2.0**120, x)
    zero = x_or_large * 0.0
    result = angle(Pair(x_or_large, zero), Pair(zero + 1.0, zero), machine)
    return identity_if_tiny(x, result.high, machine)


def _other_leg(x: V, machine: Machine[V]) -> Pair[V]:
    """Evaluate sqrt(1 - x**2) as a pair; NaN beyond -1 and 1."""
    return square_root(add_value(negative(two_product(x, x)), 1.0), machine)


def asin(x: V, machine: Machine[V]) -> V:
    """Evaluate the arc sine for x >= 0, NaN above 1."""
    near = machine.select(x <= 1.0, x, NAN)
    result = angle(Pair(near, near * 0.0), _other_leg(near, machine), machine)
    return identity_if_tiny(x, result.high, machine)


def acos(x: V, machine: Machine[V]) -> V:
    """Evaluate the arc cosine, NaN beyond -1 and 1."""
    magnitude = machine.absolute(x)
    near = machine.select(magnitude <= 1.0, magnitude, NAN)
    right = angle(_other_leg(near, machine), Pair(near, near * 0.0), machine)
    result: Pair[V] = select(x < 0.0, add(PI, negative(right)), right, machine)
    return result.high


def _corner(size: V, other: V, machine: Machine[V]) -> V:
    """Make a leg finite: two infinities are at pi/4, one is far beyond any finite other leg."""
    both = machine.equal(size, INFINITY) & machine.equal(other, INFINITY)
    finite = machine.select(machine.equal(other, INFINITY), 0.0, size)
    finite = machine.select(machine.equal(size, INFINITY), 1.0, finite)
    return machine.select(both, 1.0, finite)


def finite_legs(y: V, x: V, machine: Machine[V]) -> tuple[V, V]:
    """Make |y| and |x| finite and not both zero, with the same angle between them."""
    opposite, adjacent = machine.absolute(y), machine.absolute(x)
    finite = _corner(opposite, adjacent, machine), _corner(adjacent, opposite, machine)
    nothing = machine.equal(opposite, 0.0) & machine.equal(adjacent, 0.0)
    return finite[0], machine.select(nothing, 1.0, finite[1])


def _in_half_plane(y: V, x: V, first: Pair[V], machine: Machine[V]) -> Pair[V]:
    """Return the angle of (x, |y|) from that of (|x|, |y|); NaN for NaN."""
    one = machine.select(machine.equal(x, x), 1.0, x)
    left = with_sign_of(one, x, machine) < 0.0  # -0 is on the left, too
    result = select(left, add(PI, negative(first)), first, machine)
    unordered = ~(machine.equal(x, x) & machine.equal(y, y))
    return Pair(machine.select(unordered, NAN, result.high), result.low)


def atan2(y: V, x: V, machine: Machine[V]) -> V:
    """Evaluate the angle of (x, y) for f32 and narrower, y >= 0, rounded to odd.

    atan(t) is a little less than a tiny t, by a part that may vanish even in 106 bits. Its sign
    decides if t is a midpoint: so 2**-92 of t is subtracted.
    """
    opposite, adjacent = finite_legs(y, x, machine)
    zero = opposite * 0.0
    first = angle(Pair(opposite, zero), Pair(adjacent, zero), machine)
    less = machine.select(first.high < 2.0**-45, first.high * 2.0**-92, zero)
    result = _in_half_plane(y, x, Pair(first.high, first.low - less), machine)
    return to_odd(result, machine)


def atan2_f64(y: V, x: V, machine: Machine[V]) -> V:
    """Evaluate the angle of (x, y) for f64, y >= 0.

    Both are scaled by a power of two first, in two steps, so that products neither overflow nor
    underflow. A tiny ratio rounds as y / x does, whose rounding is the processor's, but for
    subnormals.
    """
    opposite, adjacent = finite_legs(y, x, machine)
    larger = machine.select(opposite > adjacent, opposite, adjacent)
    k, _, _ = normalised(larger, machine)
    half = k * -0.5 + ROUND
    other = (-k - (half - ROUND)) + ROUND
    powers = power_of_two(half, machine), power_of_two(other, machine)
    legs = [(leg * powers[0]) * powers[1] for leg in (opposite, adjacent)]
    zero = legs[0] * 0.0
    first = angle(Pair(legs[0], zero), Pair(legs[1], zero), machine)
    result = _in_half_plane(y, x, first, machine).high
    narrow = (legs[0] < legs[1] * 2.0**-56) & (x > 0.0) & machine.equal(y, y)
    result = machine.select(narrow, opposite / adjacent, result)
    subnormal = narrow & (opposite / adjacent < 2.0**-1020) & (opposite > 0.0)
    return machine.select(subnormal, _subnormal_ratio(opposite, adjacent, machine), result)


def _subnormal_ratio(opposite: V, adjacent: V, machine: Machine[V]) -> V:
    """Round a little less than opposite / adjacent < 2**-1000: so that a tie is rounded down."""
    (k, m, _), (n, d, _) = normalised(opposite, machine), normalised(adjacent, machine)
    zero = m * 0.0
    quotient = divide(Pair(m, zero), Pair(d, zero))
    less = Pair(quotient.high, quotient.low - quotient.high * 2.0**-106)
    exponent = clamped(k - n, -1100.0, -900.0, machine)
    return times_power_of_two(less, exponent, machine)
