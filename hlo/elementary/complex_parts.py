"""Evaluate the real functions that complex functions are made of, with 106 bits and any exponent.

e**t and its relatives (:class:`Growth`), sine and cosine (:class:`Circle`), logarithm, angle, and
sums of squares. Each is relatively precise where the formulas of complex functions cancel, so
``e**t - 1`` and ``cos(t) - 1`` are functions of their own.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple

from hlo.elementary import double_double, unbounded
from hlo.elementary.double_double import Pair, add_value, fast_two_sum, two_product, two_sum
from hlo.elementary.exponential import LN2_HIGH, LOG2_E
from hlo.elementary.exponential_f64 import LN2, LN2_LOW, LN2_MIDDLE, clamped, slope_near_zero
from hlo.elementary.inverse_trigonometric_f64 import PI, finite_legs
from hlo.elementary.inverse_trigonometric_f64 import angle as angle_of_pairs
from hlo.elementary.logarithm_f64 import log_near_one
from hlo.elementary.machine import MANTISSA_BITS, ROUND, Condition, Machine, V, Word, with_sign_of
from hlo.elementary.trigonometric_f64 import HALF_PI, cosine_curvature, quadrant, sine_slope
from hlo.elementary.unbounded import Rounding, Unbounded, from_pair, normalised

_LARGEST_GROWTH = 2000.0  # e**2000 * 2**-1074 is infinite, e**-2000 * 2**64 nothing
_TWO_OVER_PI = 0.6366197723675814
_SQRT_TWO = 1.4142135623730951


class Growth(NamedTuple, Generic[V]):
    """Hold, for a t >= 0: e**t - 1, e**t and e**-t."""

    minus_one: Unbounded[V]
    power: Unbounded[V]
    inverse: Unbounded[V]


def one(like: V) -> Unbounded[V]:
    """Return 1 in every lane; ``like`` is any finite value of the machine."""
    zero = like * 0.0
    return Unbounded(Pair(zero + 1.0, zero), zero)


def plus_one(a: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """Add 1."""
    return unbounded.add(a, one(a.pair.high), machine)


def minus_one(a: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """Subtract 1."""
    return unbounded.subtract(a, one(a.pair.high), machine)


def growth(t: V, machine: Machine[V]) -> Growth[V]:
    """Evaluate e**t and its relatives for t >= 0, at most 2000."""
    t = clamped(t, 0.0, _LARGEST_GROWTH, machine)
    return growth_of(unbounded.from_f64(t, machine), Pair(t, t * 0.0), machine)


def growth_of(whole: Unbounded[V], t: Pair[V], machine: Machine[V]) -> Growth[V]:
    """Evaluate e**t and its relatives for a t >= 0 of 106 bits.

    ``whole`` and ``t`` are the same number, but for what underflows in ``t``. Cody and Waite's
    reduction, with the exponent k taken off in two steps: a product with LN2_HIGH is exact below
    2048 only, and it is 2**k that may be as large as e**2000.
    """
    biased = t.high * LOG2_E + ROUND
    k = biased - ROUND
    first = clamped(k, 0.0, 1024.0, machine)
    second = k - first
    high = two_sum((t.high - first * LN2_HIGH) - second * LN2_HIGH, -(first * LN2_MIDDLE))
    pair = add_value(high, -(second * LN2_MIDDLE))
    r = fast_two_sum(pair.high, pair.low + (t.low - k * LN2_LOW))
    slope = slope_near_zero(r)
    # For k = 0, e**t - 1 = t (e**t - 1)/t keeps a t that underflows as a float64, and its
    # precision.
    near = machine.equal(k, 0.0)
    small = unbounded.multiply(whole, from_pair(slope, machine))
    power = Unbounded(add_value(double_double.multiply(r, slope), 1.0), k)
    inverse = unbounded.divide(one(t.high), power)
    return Growth(unbounded.select(near, small, minus_one(power, machine), machine), power, inverse)


def hyperbolic(of: Growth[V], machine: Machine[V]) -> tuple[Unbounded[V], Unbounded[V]]:
    """Evaluate sinh and cosh of t >= 0.

    (g + g e**-t) / 2 with g = e**t - 1, and (e**t + e**-t) / 2: only positive addends.
    """
    shrunk = unbounded.multiply(of.minus_one, of.inverse)
    sinh = unbounded.add(of.minus_one, shrunk, machine)
    cosh = unbounded.add(of.power, of.inverse, machine)
    return unbounded.times_two(sinh, -1.0), unbounded.times_two(cosh, -1.0)


class Circle(NamedTuple, Generic[V]):
    """Hold, for a t >= 0: sin(t), cos(t), cos(t) - 1 and cos(t) + 1."""

    sine: Unbounded[V]
    cosine: Unbounded[V]
    cosine_minus_one: Unbounded[V]
    cosine_plus_one: Unbounded[V]


def circle(t: V, machine: Machine[V]) -> Circle[V]:
    """Evaluate sine and cosine, and cosine -+ 1, of a finite t >= 0."""
    biased, rest = _quarters(t, machine)
    small = machine.equal(biased, ROUND)
    return _circle(unbounded.from_f64(t, machine), small, biased, rest, machine)


def _quarters(t: V, machine: Machine[V]) -> tuple[V, Pair[V]]:
    """Reduce t = pi/2 k + r; return k + ROUND and r. t up to 3/4 stays as it is, exactly."""
    biased, rest = quadrant(t, machine)
    small = t <= 0.75
    rest = double_double.select(small, Pair(t, t * 0.0), rest, machine)
    return machine.select(small, ROUND, biased), rest


def circle_of(t: Unbounded[V], quarters: V, machine: Machine[V]) -> Circle[V]:
    """Evaluate the circle at t + pi/2 ``quarters``, for t >= 0 of 106 bits and a small integer.

    A t beyond 2**103, whose 106 bits do not reach down to 1, is replaced by another number.
    """
    whole = normalised(t.pair, t.exponent, machine)
    exponent = clamped(whole.exponent, -1000.0, 1023.0, machine)
    pair = double_double.scaled(whole.pair, unbounded.scale(exponent, machine))
    biased, rest = _quarters(pair.high, machine)
    # The high part is reduced as any f64; the low one, small beside it, is reduced on its own.
    low = machine.select(machine.absolute(pair.low) < 2.0**50, pair.low, 0.0)
    less, turns = _without_quarters(Pair(low, low * 0.0), machine)
    rest, more = _without_quarters(double_double.add(rest, less), machine)
    biased = biased + (_modulo_four(turns) + more)
    untouched = machine.equal(biased, ROUND)
    return _circle(whole, untouched, biased + quarters, rest, machine)


def _modulo_four(k: V) -> V:
    """Reduce a small integer modulo 4 to [-2, 2]."""
    quarter = k * 0.25
    return (quarter - ((quarter + ROUND) - ROUND)) * 4.0


def _without_quarters(t: Pair[V], machine: Machine[V]) -> tuple[Pair[V], V]:
    """Subtract the nearest multiple k of pi/2; return the rest, and k."""
    k = (clamped(t.high, -(2.0**51), 2.0**51, machine) * _TWO_OVER_PI + ROUND) - ROUND
    product = double_double.multiply_value(Pair(k * 0.0 + HALF_PI.high, k * 0.0 + HALF_PI.low), k)
    return double_double.add(t, double_double.negative(product)), k


def _circle(
    t: Unbounded[V], untouched: Condition, biased: V, rest: Pair[V], machine: Machine[V]
) -> Circle[V]:
    """Evaluate :class:`Circle` of pi/2 k + rest, ``biased`` being k + ROUND.

    Where the reduction left t ``untouched``, t is the rest, and has what underflows in a pair.
    """
    tiny = untouched & (t.exponent < -100.0)
    arc = unbounded.select(tiny, t, from_pair(rest, machine), machine)
    square = double_double.multiply(rest, rest)
    curvature = cosine_curvature(square)
    sine = unbounded.multiply(arc, from_pair(sine_slope(square), machine))
    cosine = from_pair(add_value(double_double.multiply(square, curvature), 1.0), machine)
    bent = unbounded.multiply(unbounded.square(arc), from_pair(curvature, machine))
    word = machine.bits(biased)
    odd, opposite = _bit(word, 0, machine), _bit(word, 1, machine)
    sines = unbounded.select(odd, cosine, sine, machine)
    cosines = unbounded.select(odd, sine, cosine, machine)
    sines = unbounded.select(opposite, unbounded.negative(sines), sines, machine)
    # Cosine is negative in the quadrants 1 and 2: where exactly one of the two bits is set.
    left = (odd | opposite) & ~(odd & opposite)
    cosines = unbounded.select(left, unbounded.negative(cosines), cosines, machine)
    below = minus_one(cosines, machine)
    above = plus_one(cosines, machine)
    return Circle(
        sines,
        cosines,
        # In quadrant 0, cos(t) - 1 is t**2 times the curvature; in quadrant 2, cos(t) + 1 is minus
        # that.
        unbounded.select(odd | opposite, below, bent, machine),
        unbounded.select(opposite & ~odd, unbounded.negative(bent), above, machine),
    )


def _bit(word: Word, number: int, machine: Machine[V]) -> Condition:
    """Return whether a bit of a word is set."""
    # In the exponent field the bit is 2**-1022: the machine makes conditions of values only.
    return machine.from_bits((word & (1 << number)) << (MANTISSA_BITS - number)) > 0.0


def logarithm(f: Unbounded[V], u: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """Evaluate log(u) for u > 0; ``f`` is u - 1.

    f counts where u is between sqrt(1/2) and sqrt(2): there log(1 + f) needs all digits of f, which
    u, being next to 1, may have lost.
    """
    whole = normalised(u.pair, u.exponent, machine)
    high = whole.pair.high > _SQRT_TWO
    k = machine.select(high, whole.exponent + 1.0, whole.exponent)
    factor = machine.select(high, 0.5, whole.exponent * 0.0 + 1.0)
    m = double_double.scaled(whole.pair, factor)
    near = machine.equal(k, 0.0)
    below = clamped(f.exponent, -1000.0, 2.0, machine)
    little = double_double.scaled(f.pair, unbounded.scale(below, machine))
    beyond = double_double.select(near, little, add_value(m, -1.0), machine)
    log = log_near_one(beyond, machine)
    multiple = double_double.multiply_value(Pair(k * 0.0 + LN2.high, k * 0.0 + LN2.low), k)
    total = from_pair(double_double.add(multiple, log), machine)
    # There log(1 + f) is f to 200 bits, and f may be too small for a pair of float64.
    return unbounded.select(near & (f.exponent < -200.0), f, total, machine)


def log_plus_one(f: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """Evaluate log(1 + f) for f >= 0."""
    return logarithm(f, plus_one(f, machine), machine)


def angle(opposite: Unbounded[V], adjacent: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """Evaluate atan(opposite / adjacent) for numbers >= 0; for two zeros it is 0.

    The legs are brought to one exponent; where that would lose the smaller one, the angle is the
    ratio.
    """
    nothing = unbounded.is_zero(opposite, machine) & unbounded.is_zero(adjacent, machine)
    adjacent = unbounded.select(nothing, one(adjacent.pair.high), adjacent, machine)
    exponent = unbounded.larger(opposite.exponent, adjacent.exponent, machine)
    legs = [
        double_double.scaled(
            leg.pair,
            unbounded.scale(clamped(leg.exponent - exponent, -900.0, 0.0, machine), machine),
        )
        for leg in (opposite, adjacent)
    ]
    direct = from_pair(angle_of_pairs(legs[0], legs[1], machine), machine)
    ratio = unbounded.divide(opposite, adjacent)
    narrow = (opposite.exponent - adjacent.exponent) < -150.0
    return unbounded.select(narrow, ratio, direct, machine)


def legs_at_infinity(
    legs: tuple[Unbounded[V], Unbounded[V]], values: tuple[V, V], machine: Machine[V]
) -> tuple[Unbounded[V], Unbounded[V]]:
    """Return ``legs``, or for an infinite point with components ``values`` its direction."""
    infinite = ~(is_finite(values[0], machine) & is_finite(values[1], machine))
    simple = finite_legs(*values, machine)
    parts = [
        unbounded.select(
            infinite, unbounded.from_f64(finite_magnitude(at, machine), machine), leg, machine
        )
        for at, leg in zip(simple, legs, strict=True)
    ]
    return parts[0], parts[1]


def angle_of_values(y: V, x: V, machine: Machine[V]) -> Unbounded[V]:
    """Evaluate the angle of (x, |y|) in [0, pi], infinities included; anything for NaN."""
    legs = [
        unbounded.from_f64(finite_magnitude(leg, machine), machine)
        for leg in finite_legs(y, x, machine)
    ]
    return in_half_plane(angle(legs[0], legs[1], machine), is_negative(x, machine), machine)


def constant(pair: Pair[Any], like: V, machine: Machine[V]) -> Unbounded[V]:
    """Return a pair of moderate size in every lane; ``like`` is any finite value of the machine."""
    zero = like * 0.0
    return from_pair(Pair(zero + pair.high, zero + pair.low), machine)


def in_half_plane(first: Unbounded[V], is_left: Condition, machine: Machine[V]) -> Unbounded[V]:
    """Reflect an angle: pi less it where ``is_left``."""
    half_turn = constant(PI, first.pair.high, machine)
    return unbounded.select(is_left, unbounded.subtract(half_turn, first, machine), first, machine)


def is_negative(x: V, machine: Machine[V]) -> Condition:
    """Return whether the sign bit is set, as that of -0 is."""
    return machine.from_bits(((machine.bits(x) >> 63) & 1) << MANTISSA_BITS) > 0.0


def is_finite(x: V, machine: Machine[V]) -> Condition:
    """Return whether a value is neither infinite nor NaN."""
    return machine.absolute(x) < float("inf")


def finite_magnitude(x: V, machine: Machine[V]) -> V:
    """Return |x|, but 1 for infinities and NaN, so that what is computed from it is harmless."""
    magnitude = machine.absolute(x)
    return machine.select(magnitude < float("inf"), magnitude, 1.0)


def square_sum(a: Unbounded[V], b: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """Evaluate a**2 + b**2."""
    return unbounded.add(unbounded.square(a), unbounded.square(b), machine)


def magnitude(a: Unbounded[V], b: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """Evaluate sqrt(a**2 + b**2)."""
    return unbounded.square_root(square_sum(a, b, machine), machine)


def squares_minus_one(x: V, y: V, machine: Machine[V]) -> Unbounded[V]:
    """Evaluate x**2 + y**2 - 1 for finite numbers >= 0.

    Next to the unit circle the squares are formed without error and summed exactly; if one number
    is 1, the result is the other's square, which may be too small for an exact sum.
    """
    swap = y > x
    large, small = machine.select(swap, y, x), machine.select(swap, x, y)
    near = (large > 0.4) & (large < 2.0)
    a, b = machine.select(near, large, 1.0), machine.select(near, small, 0.0)
    squares = two_product(a, a), two_product(b, b)
    exact = exact_sum_of_pairs(squares[0], squares[1], a * 0.0 - 1.0, machine)
    wide = unbounded.from_f64(small, machine)
    far = minus_one(square_sum(unbounded.from_f64(large, machine), wide, machine), machine)
    result = unbounded.select(near, exact, far, machine)
    return unbounded.select(machine.equal(large, 1.0), unbounded.square(wide), result, machine)


def exact_sum_of_pairs(one: Pair[V], other: Pair[V], rest: V, machine: Machine[V]) -> Unbounded[V]:
    """Add two pairs and a value of moderate size, whatever cancels."""
    return unbounded.exact_sum([*one, *other, rest], machine)


def with_signs(x: V, signs: tuple[V, ...], machine: Machine[V]) -> V:
    """Negate ``x`` for each of ``signs`` that is negative or -0."""
    for sign in signs:
        x = with_sign_of(x, sign, machine)
    return x


def product(
    a: Unbounded[V],
    b: Unbounded[V],
    signs: tuple[V, ...],
    rounded: Rounding[V],
    machine: Machine[V],
) -> V:
    """Multiply and round; the sign is that of the factors and ``signs``, also of a zero."""
    size = machine.absolute(rounded(unbounded.multiply(a, b)))
    return with_signs(size, (a.pair.high, b.pair.high, *signs), machine)
