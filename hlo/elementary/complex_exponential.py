"""Evaluate e**z and what is built on it for complex z = x + y i.

Each component is a product, or a quotient of sums of positive numbers, of real functions with 106
bits. Only the real parts of exponential-minus-one and logistic can cancel, next to a curve
(``docs/proofs.md``). Where an operand is not finite: C11, annex G.
"""

from __future__ import annotations

from hlo.elementary import unbounded
from hlo.elementary.complex_parts import (
    Growth,
    circle,
    finite_magnitude,
    growth,
    hyperbolic,
    is_finite,
    product,
    square_sum,
    with_signs,
)
from hlo.elementary.logarithm import INFINITY, NAN
from hlo.elementary.machine import Machine, V
from hlo.elementary.unbounded import Rounding, Unbounded

Parts = tuple[V, V]


def _growth(x: V, machine: Machine[V]) -> Growth[V]:
    """Evaluate e**|x| and its relatives; anything for NaN."""
    size = machine.absolute(x)
    return growth(machine.select(machine.equal(size, size), size, 1.0), machine)


def _with_limits(
    z: Parts[V],
    result: Parts[V],
    at_zero: tuple[V | float, V | float],
    at_infinity: tuple[V | float, V | float],
    machine: Machine[V],
) -> Parts[V]:
    """Return ``result`` for finite y, else the limits of annex G.

    Where y is not finite, each component is NaN, but ``at_zero`` where x is zero and
    ``at_infinity`` where x is infinite. Where x is NaN, the result is NaN, but the imaginary part
    of a number on the real axis stays on it.
    """
    x, y = z
    parts = []
    turns = ~is_finite(y, machine)
    size = machine.absolute(x)
    infinite, nothing = machine.equal(size, INFINITY), machine.equal(size, 0.0)
    of_nan: tuple[V | float, V | float] = (NAN, machine.select(machine.equal(y, 0.0), y, NAN))
    for part, zero, limit, other in zip(result, at_zero, at_infinity, of_nan, strict=True):
        edge = machine.select(nothing, zero, machine.select(infinite, limit, size * 0.0 + NAN))
        inner = machine.select(turns, edge, part)
        parts.append(machine.select(machine.equal(x, x), inner, other))
    return parts[0], parts[1]


def exponential(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate e**x cos(y), e**x sin(y)."""
    grown, turned = _growth(x, machine), circle(finite_magnitude(y, machine), machine)
    below = x < 0.0
    power = unbounded.select(below, grown.inverse, grown.power, machine)
    re = product(power, turned.cosine, (), rounded, machine)
    im = product(power, turned.sine, (y,), rounded, machine)
    limit = machine.select(below, 0.0, INFINITY), machine.select(below, _zero(y, machine), NAN)
    return _with_limits((x, y), (re, im), (NAN, NAN), limit, machine)


def _zero(sign: V, machine: Machine[V]) -> V:
    """Return a zero with the sign of ``sign``."""
    return with_signs(finite_magnitude(sign, machine) * 0.0, (sign,), machine)


def _minus_one(x: V, grown: Growth[V], machine: Machine[V]) -> Unbounded[V]:
    """Evaluate e**x - 1 from the growth of |x|: for negative x it is -(e**|x| - 1) e**-|x|."""
    shrunk = unbounded.negative(unbounded.multiply(grown.minus_one, grown.inverse))
    return unbounded.select(x < 0.0, shrunk, grown.minus_one, machine)


def exponential_minus_one(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate (e**x - 1) cos(y) + (cos(y) - 1), e**x sin(y)."""
    grown, turned = _growth(x, machine), circle(finite_magnitude(y, machine), machine)
    below = x < 0.0
    power = unbounded.select(below, grown.inverse, grown.power, machine)
    along = unbounded.multiply(_minus_one(x, grown, machine), turned.cosine)
    re = rounded(unbounded.add(along, turned.cosine_minus_one, machine))
    # Keeps the sign of a zero, which the sum loses.
    re = machine.select(machine.equal(x, 0.0) & machine.equal(y, 0.0), x, re)
    im = product(power, turned.sine, (y,), rounded, machine)
    limit = machine.select(below, -1.0, INFINITY), machine.select(below, _zero(y, machine), NAN)
    return _with_limits((x, y), (re, im), (NAN, NAN), limit, machine)


def logistic(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate (e**x + cos(y)) / (2 (cosh(x) + cos(y))), sin(y) / (2 (cosh(x) + cos(y))).

    cosh(x) + cos(y) = (e**|x| - 1)**2 e**-|x| / 2 + (1 + cos(y)), a sum of two numbers >= 0. The
    numerator is (e**x - 1) + (1 + cos(y)).
    """
    grown, turned = _growth(x, machine), circle(finite_magnitude(y, machine), machine)
    arch = unbounded.multiply(unbounded.square(grown.minus_one), grown.inverse)
    twice = unbounded.times_two(turned.cosine_plus_one, 1.0)
    below = unbounded.add(arch, twice, machine)
    above = unbounded.add(_minus_one(x, grown, machine), turned.cosine_plus_one, machine)
    re = rounded(unbounded.divide(above, below))
    im = with_signs(
        machine.absolute(rounded(unbounded.divide(turned.sine, below))),
        (turned.sine.pair.high, y),
        machine,
    )
    limit = machine.select(x < 0.0, 0.0, 1.0), _zero(y, machine)
    return _with_limits((x, y), (re, im), (NAN, NAN), limit, machine)


def sinh(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate sinh(x) cos(y), cosh(x) sin(y)."""
    turned = circle(finite_magnitude(y, machine), machine)
    sinh_, cosh_ = hyperbolic(_growth(x, machine), machine)
    re = product(sinh_, turned.cosine, (x,), rounded, machine)
    im = product(cosh_, turned.sine, (y,), rounded, machine)
    return _with_limits((x, y), (re, im), (x, NAN), (x, NAN), machine)


def cosh(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate cosh(x) cos(y), sinh(x) sin(y)."""
    turned = circle(finite_magnitude(y, machine), machine)
    sinh_, cosh_ = hyperbolic(_growth(x, machine), machine)
    re = product(cosh_, turned.cosine, (), rounded, machine)
    im = product(sinh_, turned.sine, (x, y), rounded, machine)
    zero = with_signs(_zero(x, machine), (y,), machine)
    return _with_limits((x, y), (re, im), (NAN, zero), (INFINITY, NAN), machine)


def tanh(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate sinh(x) cosh(x) and sin(y) cos(y), over sinh(x)**2 + cos(y)**2."""
    turned = circle(finite_magnitude(y, machine), machine)
    sinh_, cosh_ = hyperbolic(_growth(x, machine), machine)
    below = square_sum(sinh_, turned.cosine, machine)
    re = product(sinh_, unbounded.divide(cosh_, below), (x,), rounded, machine)
    im = product(turned.sine, unbounded.divide(turned.cosine, below), (y,), rounded, machine)
    one = with_signs(finite_magnitude(x, machine) * 0.0 + 1.0, (x,), machine)
    return _with_limits((x, y), (re, im), (x, NAN), (one, _zero(y, machine)), machine)


def sine(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate -i sinh(i z): i z = -y + x i turns the plane by a quarter."""
    im, re = sinh(y, x, machine, rounded)
    return re, im


def cosine(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate cosh(i z)."""
    return cosh(-y, x, machine, rounded)


def tan(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate -i tanh(i z)."""
    im, re = tanh(y, x, machine, rounded)
    return re, im
