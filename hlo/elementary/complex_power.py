"""Evaluate power and atan2 of complex numbers.

Both have exact cases and branch cuts on which the rounding of a real intermediate would decide; so
angles are kept as multiples of pi/2, where they are some, and differences of products are summed
exactly.
"""

from __future__ import annotations

from typing import Generic, NamedTuple

from hlo.elementary import double_double, unbounded
from hlo.elementary.complex_exponential import Parts
from hlo.elementary.complex_logarithm import log_magnitude
from hlo.elementary.complex_parts import (
    angle,
    circle_of,
    constant,
    finite_magnitude,
    growth_of,
    in_half_plane,
    is_finite,
    log_plus_one,
    square_sum,
    with_signs,
)
from hlo.elementary.complex_roots import root
from hlo.elementary.double_double import Pair, fast_two_sum, two_product, two_sum
from hlo.elementary.exponential_f64 import clamped
from hlo.elementary.logarithm import INFINITY, NAN
from hlo.elementary.machine import ROUND, Condition, Machine, V, with_sign_of
from hlo.elementary.power import snapped_to_exact
from hlo.elementary.trigonometric_f64 import HALF_PI
from hlo.elementary.unbounded import Rounding, Unbounded

_ROUND_TO_2_40 = 1.5 * 2.0**92
_ROUND_TO_FOURS = 1.5 * 2.0**54
_LARGEST = 2000.0


def _signed(x: V, machine: Machine[V]) -> Unbounded[V]:
    """Convert a number with its sign; anything for infinities and NaN."""
    return unbounded.from_f64(with_sign_of(finite_magnitude(x, machine), x, machine), machine)


def _sign(x: V, machine: Machine[V]) -> V:
    """Return 1 or -1, the sign of x."""
    return with_sign_of(finite_magnitude(x, machine) * 0.0 + 1.0, x, machine)


def _times_sign(a: Unbounded[V], sign: V) -> Unbounded[V]:
    """Multiply by 1 or -1, zeros too."""
    return Unbounded(double_double.scaled(a.pair, sign), a.exponent)


def _exponential(g: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """Evaluate e**g; beyond -2000 and 2000 what it is there: rounded, 0 or infinite."""
    sign = _sign(g.pair.high, machine)
    whole = unbounded.normalised(*_times_sign(g, sign), machine)
    # From 2**20 on g is huge; below 2**-1000 growth_of takes it from ``whole``.
    exponent = clamped(whole.exponent, -1000.0, 20.0, machine)
    pair = double_double.scaled(whole.pair, unbounded.scale(exponent, machine))
    huge = pair.high > _LARGEST
    zero = pair.high * 0.0
    pair = double_double.select(huge, Pair(zero + _LARGEST, zero), pair, machine)
    grown = growth_of(whole, pair, machine)
    return unbounded.select(sign < 0.0, grown.inverse, grown.power, machine)


class _Polar(NamedTuple, Generic[V]):
    """Hold an angle, and its parts: ``side`` (``quarters`` pi/2 + ``rest``).

    ``quarters`` is a sum of two powers of two or zeros, each exact, and ``rest`` is 0 on the axes
    and the diagonals: a multiple of such an angle is exact, too.
    """

    angle: Unbounded[V]
    side: V
    quarters: tuple[V, V]
    rest: Unbounded[V]


def _polar(x: V, y: V, machine: Machine[V]) -> _Polar[V]:
    """Evaluate the angle of finite numbers."""
    sizes = machine.absolute(x), machine.absolute(y)
    upright, diagonal = sizes[1] > sizes[0], machine.equal(*sizes)
    wide = [unbounded.from_f64(size, machine) for size in sizes]
    small = unbounded.select(upright, wide[0], wide[1], machine)
    first = angle(small, unbounded.select(upright, wide[1], wide[0], machine), machine)
    zero = sizes[0] * 0.0
    nothing = Unbounded(Pair(zero, zero), first.exponent)
    side, left = _sign(y, machine), _sign(x, machine) < 0.0
    whole = machine.select(upright, 1.0, machine.select(left, 2.0, zero))
    inward = machine.select(upright, _sign(-x, machine), _sign(x, machine))
    half = machine.select(diagonal, inward * 0.5, zero)
    rest = unbounded.select(diagonal, nothing, _times_sign(first, inward), machine)
    quarter = constant(HALF_PI, zero, machine)
    turn = unbounded.multiply(quarter, unbounded.from_f64(whole + half, machine))
    return _Polar(_times_sign(unbounded.add(turn, rest, machine), side), side, (whole, half), rest)


def _modulo_four(x: V, machine: Machine[V]) -> V:
    """Subtract a multiple of 4, exactly; the rest is in [-2, 2]. What is beyond 2**90 becomes 0."""
    # Each float64 beyond is a multiple of 2**38.
    x = machine.select(machine.absolute(x) > 2.0**90, 0.0, x)
    x = x - ((x + _ROUND_TO_2_40) - _ROUND_TO_2_40)
    return x - ((x + _ROUND_TO_FOURS) - _ROUND_TO_FOURS)


def _multiple(polar: _Polar[V], c: V, machine: Machine[V]) -> tuple[Unbounded[V], V]:
    """Multiply an angle by c; return it without a multiple of pi/2, and that multiple."""
    turns = [_modulo_four(c * quarters, machine) for quarters in polar.quarters]
    whole = [(turn + ROUND) - ROUND for turn in turns]
    left = two_sum(turns[0] - whole[0], turns[1] - whole[1])
    more = (left.high + ROUND) - ROUND
    fraction = unbounded.from_pair(fast_two_sum(left.high - more, left.low), machine)
    quarter = constant(HALF_PI, c, machine)
    along = unbounded.multiply(unbounded.from_f64(c, machine), polar.rest)
    t = unbounded.add(unbounded.multiply(quarter, fraction), along, machine)
    return _times_sign(t, polar.side), (whole[0] + whole[1] + more) * polar.side


def power(a: V, b: V, c: V, d: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate e**(w log z) = e**g (cos t + i sin t) for z = a + b i and w = c + d i.

    g = c log|z| - d arg z, t = d log|z| + c arg z. Components that can only be exact powers, or
    midpoints, count as such, as in ``power`` of floats.
    """
    x, y, u, v = (
        with_sign_of(finite_magnitude(part, machine), part, machine) for part in (a, b, c, d)
    )
    along = log_magnitude(machine.absolute(x), machine.absolute(y), machine)
    polar = _polar(x, y, machine)
    of_angle, quarters = _multiple(polar, u, machine)
    wide = unbounded.from_f64(u, machine), unbounded.from_f64(v, machine)
    g = unbounded.subtract(
        unbounded.multiply(wide[0], along), unbounded.multiply(wide[1], polar.angle), machine
    )
    t = unbounded.add(unbounded.multiply(wide[1], along), of_angle, machine)
    # Where t is an exact zero, its sign is that of the sum in plain floats.
    naive = v * along.pair.high + u * polar.angle.pair.high
    side = _sign(t.pair.high, machine)
    still = unbounded.is_zero(t, machine) & machine.equal(quarters, 0.0)
    sign = _sign(machine.select(still, naive, side), machine)
    size = _exponential(g, machine)
    turned = circle_of(_times_sign(t, side), quarters * side, machine)
    parts = []
    for part in (turned.cosine, turned.sine):
        value = unbounded.multiply(size, part)
        whole = unbounded.normalised(value.pair, value.exponent, machine)
        component = rounded(Unbounded(snapped_to_exact(whole.pair, machine), whole.exponent))
        parts.append(machine.select(unbounded.is_zero(whole, machine), 0.0, component))
    re, im = parts
    return _limits((a, b), (c, d), (re, with_signs(im, (sign,), machine)), machine)


def _limits(z: Parts[V], w: Parts[V], result: Parts[V], machine: Machine[V]) -> Parts[V]:
    """Return ``result`` where all components are finite, else the special cases as XLA has them.

    1 if w is 0 or z is 1; 0 to a real w above zero is 0, to any other NaN; of what is not finite,
    only the positive real infinity has powers, those with a real w.
    """
    (a, b), (c, d), (re, im) = z, w, result
    ordinary = [is_finite(part, machine) for part in (*z, *w)]
    all_finite = ordinary[0] & ordinary[1] & ordinary[2] & ordinary[3]
    real = machine.equal(b, 0.0) & machine.equal(d, 0.0)
    infinite = machine.equal(a, INFINITY) & real & ordinary[2]
    zero = machine.equal(a, 0.0) & machine.equal(b, 0.0)
    grown = machine.select(c > 0.0, INFINITY, c * 0.0)
    re = machine.select(all_finite, re, machine.select(infinite, grown, NAN))
    im = machine.select(all_finite, im, machine.select(infinite, 0.0, NAN))
    vanishes = zero & (c > 0.0) & machine.equal(d, 0.0)
    unit = (machine.equal(c, 0.0) & machine.equal(d, 0.0)) | (
        machine.equal(a, 1.0) & machine.equal(b, 0.0)
    )
    parts = []
    for part, at_unit in ((re, 1.0), (im, 0.0)):
        part = machine.select(zero, machine.select(vanishes, 0.0, part * 0.0 + NAN), part)
        parts.append(machine.select(unit, at_unit, part))
    return parts[0], parts[1]


def _difference_of_squares(values: tuple[V, V, V, V], machine: Machine[V]) -> Unbounded[V]:
    """Evaluate a**2 + b**2 - c**2 - d**2 for numbers >= 0, exactly summed.

    All are aligned to the largest; what is far below that is lost.
    """
    wide = [unbounded.from_f64(x, machine) for x in values]
    largest = wide[0].exponent
    for other in wide[1:]:
        largest = unbounded.larger(largest, other.exponent, machine)
    terms = []
    for number, x in enumerate(wide):
        # What from_f64 returns has no low part.
        part = unbounded.aligned(x, largest, machine).high
        square = two_product(part, part)
        terms += list(square if number < 2 else double_double.negative(square))
    total = unbounded.exact_sum(terms, machine)
    return Unbounded(total.pair, total.exponent + 2.0 * clamped(largest, -2000.0, 2000.0, machine))


def _magnitude_and_sign(a: Unbounded[V], machine: Machine[V]) -> tuple[Unbounded[V], Condition]:
    """Return |a|, and whether a is negative."""
    sign = _sign(a.pair.high, machine)
    return _times_sign(a, sign), sign < 0.0


def _square_root(x: Unbounded[V], y: Unbounded[V], machine: Machine[V]) -> list[Unbounded[V]]:
    """Return the square root of x + y i, its imaginary part with the sign of y."""
    (along, left), (across, below) = (
        _magnitude_and_sign(x, machine),
        _magnitude_and_sign(y, machine),
    )
    size = unbounded.square_root(square_sum(along, across, machine), machine)
    large, small = root(along, across, size, machine)
    re = unbounded.select(left, small, large, machine)
    im = unbounded.select(left, large, small, machine)
    return [re, unbounded.select(below, unbounded.negative(im), im, machine)]


def _cross(a: list[Unbounded[V]], b: list[Unbounded[V]], machine: Machine[V]) -> list[Unbounded[V]]:
    """Multiply a by the conjugate of b."""
    re = unbounded.add(unbounded.multiply(a[0], b[0]), unbounded.multiply(a[1], b[1]), machine)
    im = unbounded.subtract(unbounded.multiply(a[1], b[0]), unbounded.multiply(a[0], b[1]), machine)
    return [re, im]


def atan2(c: V, d: V, a: V, b: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate -i log((x + i y) / sqrt(x**2 + y**2)) for y = c + d i and x = a + b i, as XLA does.

    With p = x + i y and q = x - i y the real part is, but for half a turn, half the angle of p / q,
    that is of (|x|**2 - |y|**2) + 2 (ac + bd) i; the imaginary part is log|q / p| / 2, where |q|**2
    - |p|**2 = 4 (ad - bc). NaN where x**2 + y**2 is 0 or something is not finite.
    """
    wide = [_signed(part, machine) for part in (a, b, c, d)]
    p = [unbounded.subtract(wide[0], wide[3], machine), unbounded.add(wide[1], wide[2], machine)]
    q = [unbounded.add(wide[0], wide[3], machine), unbounded.subtract(wide[1], wide[2], machine)]
    squares = square_sum(p[0], p[1], machine), square_sum(q[0], q[1], machine)
    dot, cross = _cross(wide[:2], wide[2:], machine)
    im = _half_log_ratio(unbounded.negative(cross), squares, machine)
    sizes = [finite_magnitude(part, machine) for part in (a, b, c, d)]
    along = _difference_of_squares((sizes[0], sizes[1], sizes[2], sizes[3]), machine)
    sums = (
        _difference_of_squares((sizes[0], sizes[2], sizes[1], sizes[3]), machine),
        unbounded.add(
            unbounded.multiply(wide[0], wide[1]), unbounded.multiply(wide[2], wide[3]), machine
        ),
    )
    nothing = unbounded.is_zero(sums[1], machine)
    # Where the sum is an exact zero, its sign is that of the sum in plain floats.
    side = machine.select(nothing, a * b + c * d, sums[1].pair.high)
    across = _times_sign(sums[1], _sign(sums[1].pair.high, machine))
    across = _times_sign(unbounded.times_two(across, 1.0), _sign(side, machine))
    direction = _cross(p, _square_root(sums[0], across, machine), machine)
    re = _half_angle(along, dot, direction, _sign(b + c, machine), machine)
    fine = ~(unbounded.is_zero(squares[0], machine) | unbounded.is_zero(squares[1], machine))
    for part in (a, b, c, d):
        fine = fine & is_finite(part, machine)
    return machine.select(fine, rounded(re), NAN), machine.select(fine, rounded(im), NAN)


def _half_log_ratio(
    quarter: Unbounded[V], squares: tuple[Unbounded[V], Unbounded[V]], machine: Machine[V]
) -> Unbounded[V]:
    """Evaluate log(|q|**2 / |p|**2) / 4 from (|q|**2 - |p|**2) / 4 and (|p|**2, |q|**2)."""
    size, below = _magnitude_and_sign(quarter, machine)
    least = unbounded.select(below, squares[1], squares[0], machine)
    ratio = unbounded.divide(unbounded.times_two(size, 2.0), least)
    ratio = unbounded.select(unbounded.is_zero(least, machine), size, ratio, machine)
    result = unbounded.times_two(log_plus_one(ratio, machine), -2.0)
    return unbounded.select(below, unbounded.negative(result), result, machine)


def _half_angle(
    along: Unbounded[V],
    dot: Unbounded[V],
    direction: list[Unbounded[V]],
    side: V,
    machine: Machine[V],
) -> Unbounded[V]:
    """Evaluate half the angle of along + 2 dot i, turned by half a turn where it must be.

    ``direction`` is that of p / sqrt(p q), of which the result is the angle: where the square root
    taken here is opposite to it, half a turn is missing.
    """
    across = unbounded.times_two(dot, 1.0)
    (size, left), (height, _) = (
        _magnitude_and_sign(along, machine),
        _magnitude_and_sign(across, machine),
    )
    first = in_half_plane(angle(height, size, machine), left, machine)
    first = unbounded.times_two(first, -1.0)
    sign = machine.select(
        unbounded.is_zero(across, machine), side, _sign(across.pair.high, machine)
    )
    first = _times_sign(first, sign)
    guess = _square_root(
        along, _times_sign(_times_sign(across, _sign(across.pair.high, machine)), sign), machine
    )
    opposite = _cross(direction, guess, machine)[0].pair.high < 0.0
    zero = sign * 0.0
    # pi in every lane: the reflection of 0.
    half_turn = in_half_plane(Unbounded(Pair(zero, zero), zero), machine.equal(zero, 0.0), machine)
    turned = unbounded.subtract(first, _times_sign(half_turn, sign), machine)
    turned = unbounded.select(
        unbounded.is_zero(first, machine), _times_sign(half_turn, sign), turned, machine
    )
    return unbounded.select(opposite, turned, first, machine)
