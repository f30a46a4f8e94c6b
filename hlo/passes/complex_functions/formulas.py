"""Write functions of complex numbers as formulas of f64.

An operand is x + y i, of c128 or of c64. The components of results are within some units in the
last place of the whole number's magnitude. Formulas of c64 alone say so: what they cancel leaves
more bits than f32 has, and what overflows in them is infinite in f32 long before. Zeros keep their
signs; of infinite and NaN operands the components are those of C11, annex G, where that takes no
more than a selection, and may be NaN elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from hlo.passes.complex_functions.reals import Real

_INFINITY = math.inf
# cosh(y) is e**|y| / 2 from here on, and so is |sinh(y)|.
_FAR = 20.0
# e**x - 1 is e**x from here on.
_GROWN = 40.0
# e**y of c64 is infinite, and of f64 finite, from here on.
_FAR_OF_C64 = 700.0
# Beyond these magnitudes squares are scaled.
_LARGE, _SMALL = 2.0**500, 2.0**-500
_SHIFT = 600


class Parts(NamedTuple):
    """Hold the components of a complex number."""

    real: Real
    imag: Real


def exponential(z: Parts) -> Parts:
    """Write e**x (cos y + i sin y); by (e**(x/2))**2, which is finite if the result is."""
    x, y = z
    root = (x * 0.5).by("exponential")
    imag = (root * y.by("sine")) * root
    return Parts((root * y.by("cosine")) * root, y.equals(0.0).chosen(y, imag))


class _Hyperbolic(NamedTuple):
    """Represent cosh(y) = cosh * more and sinh(y) = sinh * more, each factor finite if the product
    with a sine or cosine is; ``more`` may be left out as 1."""

    cosh: Real
    sinh: Real
    more: Real | None

    def times(self, product: Real) -> Real:
        """Multiply by the rest."""
        return product if self.more is None else product * self.more


_Of = Callable[[Real], _Hyperbolic]


def _of_c128(y: Real) -> _Hyperbolic:
    """Write cosh(y) and sinh(y) as they are up to _FAR, as squares of e**(|y|/2) beyond."""
    size = abs(y)
    is_far = size > _FAR
    root = (size * 0.5).by("exponential")
    half = root * 0.5
    signed = y.has_sign().chosen(-half, half)
    near = is_far.chosen(1.0, y)
    return _Hyperbolic(
        is_far.chosen(half, near.by("cosh")),
        is_far.chosen(signed, near.by("sinh")),
        is_far.chosen(root, 1.0),
    )


def of_c64(y: Real) -> _Hyperbolic:
    """Write cosh(y) and sinh(y) by k = e**|y| - 1, of c64: as 1 + (k - k / (1 + k)) / 2, and
    (k + k / (1 + k)) / 2."""
    size = y.writer.apply("minimum", abs(y), _FAR_OF_C64)
    k = size.by("exponential-minus-one")
    less = k / (k + 1.0)
    sinh_ = (k + less) * 0.5
    return _Hyperbolic((k - less) * 0.5 + 1.0, y.has_sign().chosen(-sinh_, sinh_), None)


def sine(z: Parts, hyperbolic: _Of = _of_c128) -> Parts:
    """Write sin x cosh y + i cos x sinh y."""
    x, y = z
    parts = hyperbolic(y)
    real = parts.times(x.by("sine") * parts.cosh)
    imag = parts.times(x.by("cosine") * parts.sinh)
    return Parts(x.equals(0.0).chosen(x, real), imag)


def cosine(z: Parts, hyperbolic: _Of = _of_c128) -> Parts:
    """Write cos x cosh y - i sin x sinh y."""
    x, y = z
    parts = hyperbolic(y)
    real = parts.times(x.by("cosine") * parts.cosh)
    imag = parts.times(x.by("sine") * parts.sinh)
    # On the imaginary axis it is a zero, of the sign of the product, however large y is.
    axis = x * x.writer.apply("clamp", -1.0, y, 1.0)
    return Parts(real, -x.equals(0.0).chosen(axis, imag))


def sinh(z: Parts, hyperbolic: _Of = _of_c128) -> Parts:
    """Write sinh(z) = -i sin(i z)."""
    imag, real = sine(Parts(z.imag, z.real), hyperbolic)
    return Parts(real, imag)


def cosh(z: Parts, hyperbolic: _Of = _of_c128) -> Parts:
    """Write cosh(z) = cos(i z)."""
    real, imag = cosine(Parts(z.imag, z.real), hyperbolic)
    return Parts(real, -imag)


class _Scaled(NamedTuple):
    """Represent z = (x + y i) 2**k, k in {-600, 0, 600}, so that x**2 + y**2 is a normal number
    unless z is 0; ``is_large``: k is 600, ``is_small``: it is -600."""

    x: Real
    y: Real
    squares: Real
    is_large: Real
    is_small: Real

    def power(self, exponent: int) -> Real:
        """Return 2**(k exponent / 600)."""
        few = self.is_small.chosen(2.0**-exponent, 1.0)
        return self.is_large.chosen(2.0**exponent, few)


def _scaled(z: Parts) -> _Scaled:
    size = z.real.writer.apply("maximum", abs(z.real), abs(z.imag))
    is_large, is_small = size > _LARGE, size < _SMALL
    scale = is_large.chosen(2.0**-_SHIFT, is_small.chosen(2.0**_SHIFT, 1.0))
    x, y = z.real * scale, z.imag * scale
    return _Scaled(x, y, x * x + y * y, is_large, is_small)


def size_of(z: Parts) -> Real:
    """Write the magnitude."""
    scaled = _scaled(z)
    return scaled.squares.by("sqrt") * scaled.power(_SHIFT)


def log(z: Parts) -> Parts:
    """Write log(x**2 + y**2) / 2 + i atan2(y, x).

    Beside the unit circle x**2 + y**2 - 1 is summed as (m - 1) (m + 1) + n**2, with m the larger
    of |x| and |y|: what that rounds is small beside |log z|, as m - 1 and n are.
    """
    scaled = _scaled(z)
    apply = z.real.writer.apply
    sizes = abs(scaled.x), abs(scaled.y)
    most, least = apply("maximum", *sizes), apply("minimum", *sizes)
    near = (most - 1.0) * (most + 1.0) + least * least
    is_near = (scaled.squares > 0.5) & (scaled.squares < 2.0)
    twice = is_near.chosen(near.by("log-plus-one"), scaled.squares.by("log"))
    shift = _SHIFT * math.log(2.0)
    shift_of = scaled.is_large.chosen(shift, scaled.is_small.chosen(-shift, 0.0))
    return Parts(twice * 0.5 + shift_of, apply("atan2", z.imag, z.real))


class _Root(NamedTuple):
    """Hold a square root divided by 2**(k/2), the magnitude of its square by 2**k, and what was
    scaled."""

    real: Real
    imag: Real
    size: Real
    scaled: _Scaled


def _root(z: Parts) -> _Root:
    """Write the square root: t = sqrt((|x| + |z|) / 2) is one component, |y| / 2t the other one."""
    scaled = _scaled(z)
    size = scaled.squares.by("sqrt")
    one = ((abs(scaled.x) + size) * 0.5).by("sqrt")
    width = abs(scaled.y)
    other = one.equals(0.0).chosen(0.0, width / (one + one))
    other = width.equals(_INFINITY).chosen(_INFINITY, other)
    is_left = scaled.x < 0.0
    real, imag = is_left.chosen(other, one), is_left.chosen(one, other)
    return _Root(real, z.imag.has_sign().chosen(-imag, imag), size, scaled)


def sqrt(z: Parts) -> Parts:
    """Write the square root whose real part is not negative."""
    root = _root(z)
    scale = root.scaled.power(_SHIFT // 2)
    return Parts(root.real * scale, root.imag * scale)


def rsqrt(z: Parts) -> Parts:
    """Write the conjugate of the square root by the magnitude: infinite for 0, 0 for infinities."""
    root = _root(z)
    scale = root.scaled.power(-_SHIFT // 2)
    is_infinite = root.size.equals(_INFINITY)
    real = root.size.equals(0.0).chosen(_INFINITY, root.real / root.size)
    imag = -root.imag / root.size
    return Parts(
        is_infinite.chosen(0.0, real * scale),
        is_infinite.chosen(0.0, imag * scale),
    )


def sign(z: Parts) -> Parts:
    """Write z / |z|; a zero is itself."""
    scaled = _scaled(z)
    size = scaled.squares.by("sqrt")
    is_zero = size.equals(0.0)
    real, imag = scaled.x / size, scaled.y / size
    return Parts(is_zero.chosen(z.real, real), is_zero.chosen(z.imag, imag))


def sign_of_c64(z: Parts) -> Parts:
    """Write z / |z| of a number whose square f64 has; a zero is itself."""
    x, y = z
    squares = x * x + y * y
    is_zero = squares.equals(0.0)
    inverse = is_zero.chosen(1.0, squares).by("sqrt")
    return Parts(is_zero.chosen(x, x / inverse), is_zero.chosen(y, y / inverse))


def power(z: Parts, exponent: Parts) -> Parts:
    """Write e**(w log z); 1 for w = 0, 0 for z = 0 and a real w above 0."""
    real, imag = log(z)
    u, v = exponent
    found = exponential(Parts(u * real - v * imag, u * imag + v * real))
    is_real = v.equals(0.0)
    is_one = is_real & u.equals(0.0)
    is_zero = (is_real & (u > 0.0)) & (z.real.equals(0.0) & z.imag.equals(0.0))
    return Parts(
        is_one.chosen(1.0, is_zero.chosen(0.0, found.real)),
        is_one.chosen(0.0, is_zero.chosen(0.0, found.imag)),
    )


def exponential_minus_one(z: Parts) -> Parts:
    """Write (e**x - 1) cos y + (cos y - 1) + i e**x sin y, of c64."""
    x, y = z
    grown, cosine_ = x.by("exponential-minus-one"), y.by("cosine")
    real, imag = grown * cosine_ + (cosine_ - 1.0), (grown + 1.0) * y.by("sine")
    is_real = y.equals(0.0)
    return Parts(is_real.chosen(grown, real), is_real.chosen(y, imag))


def exponential_minus_one_of_c128(z: Parts) -> Parts:
    """Write (e**x - 1) cos y - 2 sin(y / 2)**2 + i e**x sin y; from x = _GROWN on e**z.

    No term is much larger than the result, so that what they cancel is small beside it.
    """
    x, y = z
    is_far = x > _GROWN
    near, far = is_far.chosen(0.0, x), exponential(z)
    grown, half = near.by("exponential-minus-one"), (y * 0.5).by("sine")
    real = grown * y.by("cosine") - (half * 2.0) * half
    imag = (grown + 1.0) * y.by("sine")
    is_real = y.equals(0.0)
    return Parts(
        is_far.chosen(far.real, is_real.chosen(grown, real)),
        is_real.chosen(y, is_far.chosen(far.imag, imag)),
    )


def log_plus_one(z: Parts) -> Parts:
    """Write log(1 + (x (2 + x) + y**2)) / 2 + i atan2(y, 1 + x), of c64.

    Next to -1 the sum is that of (1 + x)**2 and y**2: 1 + x is exact there.
    """
    x, y = z
    above = x + 1.0
    square = x * (x + 2.0)
    more = y.equals(0.0).chosen(square, square + y * y)
    near = more.by("log-plus-one")
    twice = (more < -0.5).chosen((above * above + y * y).by("log"), near)
    return Parts(twice * 0.5, x.writer.apply("atan2", y, above))


def log_plus_one_of_c128(z: Parts) -> Parts:
    """Write log(1 + (x (2 + x) + y**2)) / 2 + i atan2(y, 1 + x) as long as 1 + z is about as large
    as 1, and log(1 + z) elsewhere, where 1 + x keeps all that matters.

    What x (2 + x) and y**2 cancel is small beside y, which the imaginary part is as large as.
    """
    x, y = z
    found = log(Parts(x + 1.0, y))
    square = x * (x + 2.0)
    more = y.equals(0.0).chosen(square, square + y * y)
    is_near = (more > -0.5) & (more < 1.0)
    return Parts(is_near.chosen(more.by("log-plus-one") * 0.5, found.real), found.imag)


def logistic(z: Parts) -> Parts:
    """Write 1 / (1 + e**-z), of c64.

    With w = e**(-|x| + y i) it is 1 / (1 + conj(w)) for x >= 0, and w / (1 + w) for x < 0.
    """
    x, y = z
    size = (-abs(x)).by("exponential")
    c, s = size * y.by("cosine"), size * y.by("sine")
    above = c + 1.0
    below = above * above + s * s
    real = (x < 0.0).chosen(c + size * size, above)
    return Parts(real / below, s / below)


def logistic_of_c128(z: Parts) -> Parts:
    """Write 1 / (1 + e**-z).

    With e = e**-|x|, k = e - 1 and c = cos(y / 2) the square of |1 + e**-z| is, for x >= 0,
    k**2 + 4 e c**2, a sum that cancels nothing beside a pole. The result by that is
    2 e c**2 - k + i e sin y for x >= 0, and e (2 c**2 + k) + i e sin y for x < 0.
    """
    x, y = z
    size = -abs(x)
    e, k = size.by("exponential"), size.by("exponential-minus-one")
    half = y * 0.5
    c = half.by("cosine")
    square = (c * 2.0) * c
    grown = e * square
    below = k * k + (grown + grown)
    real = (x < 0.0).chosen(e * (square + k), grown - k)
    return Parts(real / below, (e * y.by("sine")) / below)


def tanh(z: Parts) -> Parts:
    """Write the hyperbolic tangent by k = e**(-2 |x|) - 1, which is small beside a pole:

    (-k (2 + k) + i 4 (1 + k) sin y cos y) / (k**2 + 4 (1 + k) cos(y)**2), for x >= 0.
    """
    x, y = z
    k = (abs(x) * -2.0).by("exponential-minus-one")
    cosine_ = y.by("cosine")
    half = ((k + 1.0) * 4.0) * cosine_
    below = k * k + half * cosine_
    real = (k * (k + 2.0)) / below
    return Parts(x.has_sign().chosen(real, -real), (half * y.by("sine")) / below)


def tan(z: Parts) -> Parts:
    """Write tan(z) = -i tanh(i z)."""
    imag, real = tanh(Parts(z.imag, z.real))
    return Parts(real, imag)
