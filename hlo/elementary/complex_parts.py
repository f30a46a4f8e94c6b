"""What functions of complex numbers are made of: real functions with 106 bits and any exponent."""

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
from hlo.elementary.unbounded import Rounding, Unbounded, normal, of_pair

_LARGEST_GROWTH = 2000.0  # e**2000 * 2**-1074 is infinite, e**-2000 * 2**64 nothing
_TWO_OVER_PI = 0.6366197723675814
_SQRT_TWO = 1.4142135623730951


class Growth(NamedTuple, Generic[V]):
    """Of t >= 0: e**t - 1, e**t and e**-t."""

    minus_one: Unbounded[V]
    power: Unbounded[V]
    inverse: Unbounded[V]


def one(like: V) -> Unbounded[V]:
    """1; ``like`` is any finite value."""
    zero = like * 0.0
    return Unbounded(Pair(zero + 1.0, zero), zero)


def plus_one(a: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """a + 1."""
    return unbounded.add(a, one(a.pair.high), machine)


def minus_one(a: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """a - 1."""
    return unbounded.subtract(a, one(a.pair.high), machine)


def growth(t: V, machine: Machine[V]) -> Growth[V]:
    """The exponential and its relatives of t >= 0, at most 2000."""
    t = clamped(t, 0.0, _LARGEST_GROWTH, machine)
    return growth_of(unbounded.value(t, machine), Pair(t, t * 0.0), machine)


def growth_of(whole: Unbounded[V], t: Pair[V], machine: Machine[V]) -> Growth[V]:
    """The same of ``whole``, which is ``t`` but for what underflows.

    The exponent k is taken off in two steps, as a product with LN2_HIGH is exact below 2048 only.
    """
    biased = t.high * LOG2_E + ROUND
    k = biased - ROUND
    first = clamped(k, 0.0, 1024.0, machine)
    second = k - first
    high = two_sum((t.high - first * LN2_HIGH) - second * LN2_HIGH, -(first * LN2_MIDDLE))
    pair = add_value(high, -(second * LN2_MIDDLE))
    r = fast_two_sum(pair.high, pair.low + (t.low - k * LN2_LOW))
    slope = slope_near_zero(r)
    near = machine.equal(k, 0.0)
    small = unbounded.multiply(whole, of_pair(slope, machine))
    power = Unbounded(add_value(double_double.multiply(r, slope), 1.0), k)
    inverse = unbounded.divide(one(t.high), power)
    return Growth(unbounded.select(near, small, minus_one(power, machine), machine), power, inverse)


def hyperbolic(of: Growth[V], machine: Machine[V]) -> tuple[Unbounded[V], Unbounded[V]]:
    """sinh and cosh of t >= 0: (g + g e**-t) / 2 with g = e**t - 1, and (e**t + e**-t) / 2."""
    shrunk = unbounded.multiply(of.minus_one, of.inverse)
    sinh = unbounded.add(of.minus_one, shrunk, machine)
    cosh = unbounded.add(of.power, of.inverse, machine)
    return unbounded.times_two(sinh, -1.0), unbounded.times_two(cosh, -1.0)


class Circle(NamedTuple, Generic[V]):
    """Of t >= 0: sin(t), cos(t), cos(t) - 1 and cos(t) + 1."""

    sine: Unbounded[V]
    cosine: Unbounded[V]
    cosine_minus_one: Unbounded[V]
    cosine_plus_one: Unbounded[V]


def circle(t: V, machine: Machine[V]) -> Circle[V]:
    """The functions of the circle of a finite t >= 0."""
    biased, rest = _quarters(t, machine)
    small = machine.equal(biased, ROUND)
    return _circle(unbounded.value(t, machine), small, biased, rest, machine)


def _quarters(t: V, machine: Machine[V]) -> tuple[V, Pair[V]]:
    """k + ROUND and r with t = pi/2 k + r, where t up to 3/4 stays as it is."""
    biased, rest = quadrant(t, machine)
    small = t <= 0.75
    rest = double_double.select(small, Pair(t, t * 0.0), rest, machine)
    return machine.select(small, ROUND, biased), rest


def circle_of(t: Unbounded[V], quarters: V, machine: Machine[V]) -> Circle[V]:
    """The same of t + pi/2 ``quarters`` for a t >= 0 of 106 bits and a small integer; if t is
    beyond 2**103, where 106 bits do not reach to 1, of another number."""
    whole = normal(t.pair, t.exponent, machine)
    exponent = clamped(whole.exponent, -1000.0, 1023.0, machine)
    pair = double_double.scaled(whole.pair, unbounded.scale(exponent, machine))
    biased, rest = _quarters(pair.high, machine)
    low = machine.select(machine.absolute(pair.low) < 2.0**50, pair.low, 0.0)
    less, turns = _without_quarters(Pair(low, low * 0.0), machine)
    rest, more = _without_quarters(double_double.add(rest, less), machine)
    biased = biased + (_modulo_four(turns) + more)
    untouched = machine.equal(biased, ROUND)
    return _circle(whole, untouched, biased + quarters, rest, machine)


def _modulo_four(k: V) -> V:
    quarter = k * 0.25
    return (quarter - ((quarter + ROUND) - ROUND)) * 4.0


def _without_quarters(t: Pair[V], machine: Machine[V]) -> tuple[Pair[V], V]:
    """t less a multiple of pi/2, and which."""
    k = (clamped(t.high, -(2.0**51), 2.0**51, machine) * _TWO_OVER_PI + ROUND) - ROUND
    product = double_double.multiply_value(Pair(k * 0.0 + HALF_PI.high, k * 0.0 + HALF_PI.low), k)
    return double_double.add(t, double_double.negative(product)), k


def _circle(
    t: Unbounded[V], untouched: Condition, biased: V, rest: Pair[V], machine: Machine[V]
) -> Circle[V]:
    """Of pi/2 k + rest, ``biased`` being k + ROUND; where it is ``untouched``, t is the rest."""
    tiny = untouched & (t.exponent < -100.0)
    arc = unbounded.select(tiny, t, of_pair(rest, machine), machine)
    square = double_double.multiply(rest, rest)
    curvature = cosine_curvature(square)
    sine = unbounded.multiply(arc, of_pair(sine_slope(square), machine))
    cosine = of_pair(add_value(double_double.multiply(square, curvature), 1.0), machine)
    bent = unbounded.multiply(unbounded.square(arc), of_pair(curvature, machine))
    word = machine.bits(biased)
    odd, opposite = _bit(word, 0, machine), _bit(word, 1, machine)
    sines = unbounded.select(odd, cosine, sine, machine)
    cosines = unbounded.select(odd, sine, cosine, machine)
    sines = unbounded.select(opposite, unbounded.negative(sines), sines, machine)
    left = (odd | opposite) & ~(odd & opposite)
    cosines = unbounded.select(left, unbounded.negative(cosines), cosines, machine)
    below = minus_one(cosines, machine)
    above = plus_one(cosines, machine)
    return Circle(
        sines,
        cosines,
        unbounded.select(odd | opposite, below, bent, machine),
        unbounded.select(opposite & ~odd, unbounded.negative(bent), above, machine),
    )


def _bit(word: Word, number: int, machine: Machine[V]) -> Condition:
    return machine.from_bits((word & (1 << number)) << (MANTISSA_BITS - number)) > 0.0


def logarithm(f: Unbounded[V], u: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """log(u) for u > 0; ``f`` is u - 1, and counts where u is between sqrt(1/2) and sqrt(2)."""
    whole = normal(u.pair, u.exponent, machine)
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
    total = of_pair(double_double.add(multiple, log), machine)
    return unbounded.select(near & (f.exponent < -200.0), f, total, machine)


def log_plus_one(f: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """log(1 + f) for f >= 0."""
    return logarithm(f, plus_one(f, machine), machine)


def angle(opposite: Unbounded[V], adjacent: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """atan(opposite / adjacent) for numbers >= 0; of nothing and nothing it is 0."""
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
    direct = of_pair(angle_of_pairs(legs[0], legs[1], machine), machine)
    ratio = unbounded.divide(opposite, adjacent)
    narrow = (opposite.exponent - adjacent.exponent) < -150.0
    return unbounded.select(narrow, ratio, direct, machine)


def legs_at_infinity(
    legs: tuple[Unbounded[V], Unbounded[V]], values: tuple[V, V], machine: Machine[V]
) -> tuple[Unbounded[V], Unbounded[V]]:
    """``legs``, or those in the direction of the infinity that a point with the components
    ``values`` stands for."""
    infinite = ~(is_finite(values[0], machine) & is_finite(values[1], machine))
    simple = finite_legs(*values, machine)
    parts = [
        unbounded.select(infinite, unbounded.value(finite(at, machine), machine), leg, machine)
        for at, leg in zip(simple, legs, strict=True)
    ]
    return parts[0], parts[1]


def angle_of_values(y: V, x: V, machine: Machine[V]) -> Unbounded[V]:
    """The angle of (x, |y|) in [0, pi], infinities included; anything for NaN."""
    legs = [unbounded.value(finite(leg, machine), machine) for leg in finite_legs(y, x, machine)]
    return in_half_plane(angle(legs[0], legs[1], machine), is_negative(x, machine), machine)


def constant(pair: Pair[Any], like: V, machine: Machine[V]) -> Unbounded[V]:
    """A pair of moderate size that is the same everywhere; ``like`` is any finite value."""
    zero = like * 0.0
    return of_pair(Pair(zero + pair.high, zero + pair.low), machine)


def in_half_plane(first: Unbounded[V], is_left: Condition, machine: Machine[V]) -> Unbounded[V]:
    """pi less the angle where it is on the left."""
    half_turn = constant(PI, first.pair.high, machine)
    return unbounded.select(is_left, unbounded.subtract(half_turn, first, machine), first, machine)


def is_negative(x: V, machine: Machine[V]) -> Condition:
    """Whether the sign bit of a number is set, as that of -0 is."""
    return machine.from_bits(((machine.bits(x) >> 63) & 1) << MANTISSA_BITS) > 0.0


def is_finite(x: V, machine: Machine[V]) -> Condition:
    return machine.absolute(x) < float("inf")


def finite(x: V, machine: Machine[V]) -> V:
    """|x|; 1 for infinities and NaN, so that what is computed of them is harmless."""
    magnitude = machine.absolute(x)
    return machine.select(magnitude < float("inf"), magnitude, 1.0)


def square_sum(a: Unbounded[V], b: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """a**2 + b**2."""
    return unbounded.add(unbounded.square(a), unbounded.square(b), machine)


def magnitude(a: Unbounded[V], b: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """sqrt(a**2 + b**2)."""
    return unbounded.square_root(square_sum(a, b, machine), machine)


def squares_minus_one(x: V, y: V, machine: Machine[V]) -> Unbounded[V]:
    """x**2 + y**2 - 1 for finite numbers >= 0.

    Near the circle it is summed exactly; if one number is 1, it is the other's square.
    """
    swap = y > x
    large, small = machine.select(swap, y, x), machine.select(swap, x, y)
    near = (large > 0.4) & (large < 2.0)
    a, b = machine.select(near, large, 1.0), machine.select(near, small, 0.0)
    squares = two_product(a, a), two_product(b, b)
    exact = exact_of_squares(squares[0], squares[1], a * 0.0 - 1.0, machine)
    wide = unbounded.value(small, machine)
    far = minus_one(square_sum(unbounded.value(large, machine), wide, machine), machine)
    result = unbounded.select(near, exact, far, machine)
    return unbounded.select(machine.equal(large, 1.0), unbounded.square(wide), result, machine)


def exact_of_squares(one: Pair[V], other: Pair[V], rest: V, machine: Machine[V]) -> Unbounded[V]:
    """The sum of two pairs and a value of moderate size."""
    return unbounded.exact_sum([*one, *other, rest], machine)


def with_signs(x: V, signs: tuple[V, ...], machine: Machine[V]) -> V:
    """``x``, negated for each of ``signs`` that is negative or -0."""
    for sign in signs:
        x = with_sign_of(x, sign, machine)
    return x


def product(
    a: Unbounded[V],
    b: Unbounded[V],
    signs: tuple[V, ...],
    to: Rounding[V],
    machine: Machine[V],
) -> V:
    """a * b rounded, with the sign of the factors and ``signs`` also if it is 0."""
    size = machine.absolute(to(unbounded.multiply(a, b)))
    return with_signs(size, (a.pair.high, b.pair.high, *signs), machine)
