"""Evaluate log and the inverse functions of complex z = x + y i.

asin and acos by Hull, Fairgrieve and Tang, "Implementing the complex arcsine and arccosine
functions using exception handling", ACM TOMS 23(3), 1997: their sums have positive addends only.
Where an operand is not finite: C11, annex G. A branch cut is continuous from the side that the sign
of a zero names.
"""

from __future__ import annotations

from typing import Generic, NamedTuple

from hlo.elementary import unbounded
from hlo.elementary.complex_exponential import Parts
from hlo.elementary.complex_parts import (
    angle,
    angle_of_values,
    constant,
    exact_sum_of_pairs,
    finite_magnitude,
    in_half_plane,
    is_negative,
    legs_at_infinity,
    logarithm,
    magnitude,
    minus_one,
    plus_one,
    square_sum,
    squares_minus_one,
    with_signs,
)
from hlo.elementary.complex_parts import (
    log_plus_one as log_of_one_plus,
)
from hlo.elementary.double_double import two_product
from hlo.elementary.logarithm import INFINITY, NAN
from hlo.elementary.machine import Condition, Machine, V, with_sign_of
from hlo.elementary.trigonometric_f64 import HALF_PI
from hlo.elementary.unbounded import Rounding, Unbounded


def _infinite(x: V, y: V, machine: Machine[V]) -> Condition:
    """Return whether a component is infinite."""
    return machine.equal(machine.absolute(x), INFINITY) | machine.equal(
        machine.absolute(y), INFINITY
    )


def _unordered(x: V, y: V, machine: Machine[V]) -> Condition:
    """Return whether a component is NaN."""
    return ~(machine.equal(x, x) & machine.equal(y, y))


def _logarithmic(z: Parts[V], result: Parts[V], machine: Machine[V]) -> Parts[V]:
    """Return ``result``, a logarithm: infinite for an infinity, else NaN for a NaN."""
    re, im = result
    unordered = _unordered(*z, machine)
    re = machine.select(unordered, NAN, re)
    re = machine.select(_infinite(*z, machine), INFINITY, re)
    return re, machine.select(unordered, NAN, im)


def log_magnitude(x: V, y: V, machine: Machine[V]) -> Unbounded[V]:
    """Evaluate log(x**2 + y**2) / 2 for finite numbers >= 0."""
    squares = square_sum(unbounded.from_f64(x, machine), unbounded.from_f64(y, machine), machine)
    beyond = squares_minus_one(x, y, machine)
    return unbounded.times_two(logarithm(beyond, squares, machine), -1.0)


def log(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate log|z| and the angle of z."""
    re = rounded(log_magnitude(finite_magnitude(x, machine), finite_magnitude(y, machine), machine))
    re = machine.select(machine.equal(x, 0.0) & machine.equal(y, 0.0), -INFINITY, re)
    im = with_sign_of(rounded(angle_of_values(y, x, machine)), y, machine)
    return _logarithmic((x, y), (re, im), machine)


def log_plus_one(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate log(1 + z), where |1 + z|**2 - 1 = 2 x + x**2 + y**2 is summed exactly."""
    a, b = with_sign_of(finite_magnitude(x, machine), x, machine), finite_magnitude(y, machine)
    wide, across = unbounded.from_f64(a, machine), unbounded.from_f64(b, machine)
    along = plus_one(wide, machine)
    # Squares of moderate components are error-free pairs. Next to overflow the difference from 1
    # does not count; next to underflow 2 x + y**2 is the sum.
    large = (machine.absolute(a) > 2.0**400) | (b > 2.0**400)
    c, d = machine.select(large, 0.0, a), machine.select(large, 0.0, b)
    exact = exact_sum_of_pairs(two_product(c, c), two_product(d, d), c + c, machine)
    tiny = (machine.absolute(a) < 2.0**-400) & (b < 2.0**-400)
    little = unbounded.add(unbounded.times_two(wide, 1.0), unbounded.square(across), machine)
    beyond = unbounded.select(tiny, little, exact, machine)
    squares = square_sum(along, across, machine)
    re = rounded(unbounded.times_two(logarithm(beyond, squares, machine), -1.0))
    re = machine.select(machine.equal(a, -1.0) & machine.equal(b, 0.0), -INFINITY, re)
    # Keeps the sign of a zero, which the exact sum loses.
    re = machine.select(machine.equal(x, 0.0) & machine.equal(y, 0.0), x, re)
    size = unbounded.select(a < -1.0, unbounded.negative(along), along, machine)
    legs = legs_at_infinity((across, size), (y, x), machine)
    turn = in_half_plane(angle(*legs, machine), a < -1.0, machine)
    turn = unbounded.select(
        _infinite(x, y, machine),
        in_half_plane(angle(*legs, machine), is_negative(x, machine), machine),
        turn,
        machine,
    )
    im = with_sign_of(rounded(turn), y, machine)
    return _logarithmic((x, y), (re, im), machine)


class _Arc(NamedTuple, Generic[V]):
    """Hold |Im asin(z)|, and sqrt((a + x)(a - x)).

    The latter is to x as cosine is to sine of the real part.
    """

    height: Unbounded[V]
    across: Unbounded[V]


def _arc(x: Unbounded[V], y: Unbounded[V], machine: Machine[V]) -> _Arc[V]:
    """Evaluate the arc for x, y >= 0, where a is half the sum of the distances from 1 and -1.

    a - 1 and a - x are formed from y**2 over sums, without cancellation (Hull et al., section 3): r
    - (x + 1) = y**2 / (r + (x + 1)) for the distance r of z from -1, and likewise for that from 1.
    """
    right, beyond = plus_one(x, machine), minus_one(x, machine)
    is_inner = beyond.pair.high < 0.0
    short = unbounded.select(is_inner, unbounded.negative(beyond), beyond, machine)
    far, near = magnitude(right, y, machine), magnitude(short, y, machine)
    a = unbounded.times_two(unbounded.add(far, near, machine), -1.0)
    square = unbounded.square(y)
    outer = unbounded.divide(square, unbounded.add(far, right, machine))
    total = unbounded.add(near, short, machine)
    inner = unbounded.divide(square, total)
    # At z = 1 the quotient is 0/0.
    inner = unbounded.select(unbounded.is_zero(total, machine), total, inner, machine)
    beyond_one = unbounded.add(outer, unbounded.select(is_inner, inner, total, machine), machine)
    beyond_x = unbounded.add(outer, unbounded.select(is_inner, total, inner, machine), machine)
    beyond_one = unbounded.times_two(beyond_one, -1.0)
    beyond_x = unbounded.times_two(beyond_x, -1.0)
    rest = unbounded.square_root(unbounded.multiply(beyond_one, plus_one(a, machine)), machine)
    height = log_of_one_plus(unbounded.add(beyond_one, rest, machine), machine)
    across = unbounded.multiply(unbounded.add(a, x, machine), beyond_x)
    return _Arc(height, unbounded.square_root(across, machine))


def _arc_of(x: V, y: V, machine: Machine[V]) -> tuple[Unbounded[V], _Arc[V]]:
    """Return |x|, and the arc of |x| + |y| i."""
    along = unbounded.from_f64(finite_magnitude(x, machine), machine)
    return along, _arc(along, unbounded.from_f64(finite_magnitude(y, machine), machine), machine)


def asin(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate the angle of sqrt((a + x)(a - x)) + x i, and log(a + sqrt(a**2 - 1))."""
    along, arc = _arc_of(x, y, machine)
    legs = legs_at_infinity((along, arc.across), (x, y), machine)
    re, im = rounded(angle(*legs, machine)), rounded(arc.height)
    unordered, infinite = _unordered(x, y, machine), _infinite(x, y, machine)
    # As annex G.6.2.2 has casinh(NaN + 0 i) = NaN + 0 i, turned by a quarter.
    re = machine.select(unordered & ~machine.equal(x, 0.0), NAN, re)
    re = machine.select(machine.equal(x, 0.0), 0.0, re)
    im = machine.select(unordered, NAN, im)
    im = machine.select(infinite, INFINITY, im)
    return with_sign_of(re, x, machine), with_sign_of(im, y, machine)


def acos(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate the angle of x + sqrt((a + x)(a - x)) i, and -log(a + sqrt(a**2 - 1))."""
    along, arc = _arc_of(x, y, machine)
    legs = legs_at_infinity((arc.across, along), (y, x), machine)
    turn = in_half_plane(angle(*legs, machine), is_negative(x, machine), machine)
    re, im = rounded(turn), rounded(arc.height)
    unordered = _unordered(x, y, machine)
    right = rounded(constant(HALF_PI, finite_magnitude(x, machine), machine))
    # Annex G.6.1.1: cacos(0 + NaN i) is pi/2 + NaN i.
    re = machine.select(unordered, machine.select(machine.equal(x, 0.0), right, NAN), re)
    im = machine.select(unordered, NAN, im)
    im = machine.select(_infinite(x, y, machine), INFINITY, im)
    return re, with_signs(-im, (y,), machine)


def asinh(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate i asin(-i z)."""
    im, re = asin(y, x, machine, rounded)
    return re, im


def acosh(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate i acos(z) or -i acos(z), whichever has a real part >= 0."""
    re, im = acos(x, y, machine, rounded)
    return machine.absolute(im), with_sign_of(re, y, machine)


def atanh(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate log(1 + 4 x / |1 - z|**2) / 4, and half the angle of (1 - |z|**2) + 2 y i."""
    a, b = finite_magnitude(x, machine), finite_magnitude(y, machine)
    along, across = unbounded.from_f64(a, machine), unbounded.from_f64(b, machine)
    distance = square_sum(minus_one(along, machine), across, machine)
    ratio = unbounded.divide(unbounded.times_two(along, 2.0), distance)
    at_pole = machine.equal(x * x, 1.0) & machine.equal(y, 0.0) & machine.equal(a, 1.0)
    ratio = unbounded.select(at_pole, along, ratio, machine)
    re = rounded(unbounded.times_two(log_of_one_plus(ratio, machine), -2.0))
    beyond = squares_minus_one(a, b, machine)
    outside = beyond.pair.high > 0.0
    size = unbounded.select(outside, beyond, unbounded.negative(beyond), machine)
    turn = in_half_plane(angle(unbounded.times_two(across, 1.0), size, machine), outside, machine)
    im = rounded(unbounded.times_two(turn, -1.0))
    re = machine.select(at_pole, INFINITY, re)
    infinite = _infinite(x, y, machine)
    right = rounded(constant(HALF_PI, a, machine))
    # Annex G.6.2.3: a real part of zero beside a NaN in catanh(0 + NaN i) and catanh(inf + NaN i),
    # and catanh(NaN + inf i) = 0 + pi/2 i.
    quiet = machine.equal(x, 0.0) | (infinite & machine.equal(a, a))
    re = machine.select(infinite, 0.0, re)
    im = machine.select(infinite, right, im)
    re = machine.select(_unordered(x, y, machine) & ~quiet, NAN, re)
    upward = machine.equal(machine.absolute(y), INFINITY)
    im = machine.select(_unordered(x, y, machine) & ~upward, NAN, im)
    return with_sign_of(re, x, machine), with_sign_of(im, y, machine)
