"""Write atan2 of complex numbers as formulas of f64.

With y = c + d i, x = a + b i, p = x + i y and q = x - i y it is -i log(p / sqrt(p q)). Its real
part is half the angle of p / q, or half a turn from it; its imaginary part is log|q / p| / 2, where
|q|**2 - |p|**2 = 4 (a d - b c). Beside branch cuts the signs of sums of two products decide. Of f32
they are exact in f64; of f64 they are those of the exact sums unless these are below 2**-1500 of
the largest product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from hlo.passes.complex_functions.formulas import Parts, size_of
from hlo.passes.complex_functions.reals import Real

_Sum = Callable[[Real, Real, Real, Real], Real]
# Veltkamp's factor, which divides a number of 53 bits into two of 26.
_HALVES = 2.0**27 + 1
# The exponents of two from which on operands are scaled, and by what: the largest component is
# then between 2**130 and 2**430, so that neither squares overflow nor products with another
# component are subnormal unless the result is.
_SCALES = ((730, -600), (430, -300), (130, 0), (-170, 300), (-470, 600))
_SMALLEST = 900
# From here on the logarithm of 1 + a ratio is that of the ratio of magnitudes.
_FAR = 2.0**60


def _plain_sum(a: Real, b: Real, c: Real, d: Real) -> Real:
    """Write a b + c d."""
    return a * b + c * d


def _error(a: Real, b: Real, product: Real) -> Real:
    """Write a b - ``product``, which is a b rounded, without error (Dekker, 1971)."""

    def halves(x: Real) -> tuple[Real, Real]:
        wide = x * _HALVES
        high = wide - (wide - x)
        return high, x - high

    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    rest = (a_high * b_high - product) + a_high * b_low
    return (rest + a_low * b_high) + a_low * b_low


def _precise_sum(a: Real, b: Real, c: Real, d: Real) -> Real:
    """Write a b + c d with the sign of the exact sum; of an exact 0 that of the rounded one."""
    one, other = a * b, c * d
    total = one + other
    rest = _error(a, b, one) + _error(c, d, other)
    return rest.equals(0.0).chosen(total, total + rest)


def atan2_of_c64(y: Parts, x: Parts) -> Parts:
    """Write atan2 of numbers whose squares f64 has, and whose products are exact."""
    p, q = _sum_and_difference(x, y)
    squares = p.real * p.real + p.imag * p.imag, q.real * q.real + q.imag * q.imag
    least = x.real.writer.apply("minimum", *squares)
    cross = x.real * y.imag - x.imag * y.real
    ratio = (abs(cross) * 4.0) / least
    size = (squares[0] * squares[1]).by("sqrt")
    real = _half_angle(y, x, (p, size), _plain_sum)
    return _finished(y, x, least, Parts(real, _signed(ratio.by("log-plus-one"), cross)))


def atan2_of_c128(y: Parts, x: Parts) -> Parts:
    """Write atan2 of numbers that are scaled together, which changes nothing."""
    apply = x.real.writer.apply
    components = (*y, *x)
    most = reduce(lambda one, other: apply("maximum", one, other), map(abs, components))
    scale: Real | float = 2.0**_SMALLEST
    for exponent, shift in reversed(_SCALES):
        scale = (most > 2.0**exponent).chosen(2.0**shift, scale)
    c, d, a, b = (component * scale for component in components)
    y, x = Parts(c, d), Parts(a, b)
    p, q = _sum_and_difference(x, y)
    sizes = size_of(p), size_of(q)
    least, largest = (apply(opcode, *sizes) for opcode in ("minimum", "maximum"))
    cross = a * d - b * c
    ratio = ((abs(cross) * 4.0) / least) / least
    is_far = ratio > _FAR
    # A quotient of magnitudes as far apart as they may be is not representable.
    is_tiny = least < 2.0**-500
    apart = (largest / is_tiny.chosen(least * 2.0**600, least)).by("log")
    far = (apart + is_tiny.chosen(600 * math.log(2.0), 0.0)) * 2.0
    grown = is_far.chosen(far, is_far.chosen(0.0, ratio).by("log-plus-one"))
    direction = Parts(p.real / sizes[0], p.imag / sizes[0])
    real = _half_angle(y, x, (direction, sizes[0] * sizes[1]), _precise_sum)
    return _finished(y, x, least, Parts(real, _signed(grown, cross)))


def _sum_and_difference(x: Parts, y: Parts) -> tuple[Parts, Parts]:
    """Write x + i y and x - i y."""
    return (
        Parts(x.real - y.imag, x.imag + y.real),
        Parts(x.real + y.imag, x.imag - y.real),
    )


def _signed(fourfold: Real, cross: Real) -> Real:
    """Write a fourth with the sign of ``cross``."""
    imag = fourfold * 0.25
    return cross.has_sign().chosen(-imag, imag)


def _half_angle(y: Parts, x: Parts, known: tuple[Parts, Real], total: _Sum) -> Real:
    """Write the angle of p / sqrt(p q), given p or its direction, and |p q|, and how sums of
    products are written.

    w = p conj(q) is (|x|**2 - |y|**2) + 2 (a c + b d) i. The result is half its angle, or half a
    turn from it: p by the square root of w is along the square root of p q, or opposite to it,
    whose real part is not negative, and whose imaginary part has the sign of a b + c d.
    """
    (c, d), (a, b), (direction, size) = y, x, known
    p, q = _sum_and_difference(x, y)
    along = p.real * q.real + p.imag * q.imag
    dot = total(a, c, b, d)
    is_level = dot.equals(0.0)
    across = is_level.chosen(p.imag.has_sign().chosen(-0.0, 0.0), dot + dot)
    half = x.real.writer.apply("atan2", across, along) * 0.5
    is_below = across.has_sign()
    # A number along the square root of w.
    is_left = along < 0.0
    width, height = abs(along) + size, abs(across)
    real, imag = is_left.chosen(height, width), is_left.chosen(width, height)
    imag = is_below.chosen(-imag, imag)
    one = direction.real * real + direction.imag * imag
    other = direction.imag * real - direction.real * imag
    turns = total(a, b, c, d).has_sign().chosen(-other, other)
    is_opposite = (abs(other) > abs(one)).chosen(turns, one) < 0.0
    half_turn = is_below.chosen(-math.pi, math.pi)
    # Of a real quotient the sign is that of p, whose half a turn it is.
    turned = (is_level & (along > 0.0)).chosen(half_turn, half - half_turn)
    return is_opposite.chosen(turned, half)


def _finished(y: Parts, x: Parts, least: Real, found: Parts) -> Parts:
    """Return NaN where x**2 + y**2 is 0, as the least of |p| and |q| is, or something is not
    finite, else what was found."""
    zeros = reduce(lambda one, other: one + other, (part * 0.0 for part in (*y, *x)))
    is_fine = zeros.equals(0.0) & (least > 0.0)
    return Parts(is_fine.chosen(found.real, math.nan), is_fine.chosen(found.imag, math.nan))
