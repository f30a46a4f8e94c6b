"""Evaluate roots, magnitudes and quotients of complex numbers x + y i."""

from __future__ import annotations

from hlo.elementary import unbounded
from hlo.elementary.complex_exponential import Parts
from hlo.elementary.complex_parts import (
    finite_magnitude,
    is_finite,
    magnitude,
    square_sum,
    with_signs,
)
from hlo.elementary.logarithm import INFINITY, NAN
from hlo.elementary.machine import Machine, V, with_sign_of
from hlo.elementary.unbounded import Rounding, Unbounded


def _values(x: V, y: V, machine: Machine[V]) -> tuple[Unbounded[V], Unbounded[V]]:
    """Return |x| and |y|, 1 for what is not finite."""
    wide = [unbounded.from_f64(finite_magnitude(part, machine), machine) for part in (x, y)]
    return wide[0], wide[1]


def root(
    along: Unbounded[V], across: Unbounded[V], size: Unbounded[V], machine: Machine[V]
) -> tuple[Unbounded[V], Unbounded[V]]:
    """Return the larger and the smaller component of sqrt(along + across i) for numbers >= 0.

    w = sqrt((along + size) / 2) and across / (2 w), with size = |along + across i|.
    """
    half = unbounded.times_two(unbounded.add(along, size, machine), -1.0)
    large = unbounded.square_root(half, machine)
    small = unbounded.divide(unbounded.times_two(across, -1.0), large)
    return large, unbounded.select(unbounded.is_zero(large, machine), large, small, machine)


def sqrt(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate w = sqrt((|x| + |z|) / 2) and y / (2 w), exchanged in the left half plane."""
    along, across = _values(x, y, machine)
    large, small = map(rounded, root(along, across, magnitude(along, across, machine), machine))
    left = with_sign_of(finite_magnitude(x, machine) * 0.0 + 1.0, x, machine) < 0.0
    re, im = machine.select(left, small, large), machine.select(left, large, small)
    infinite, wide = (machine.equal(machine.absolute(part), INFINITY) for part in (x, y))
    unordered = ~(machine.equal(x, x) & machine.equal(y, y))
    re = machine.select(infinite, machine.select(x < 0.0, 0.0, INFINITY), re)
    im = machine.select(infinite, machine.select(x < 0.0, INFINITY, 0.0), im)
    # Beside a NaN only the infinity of an infinite x stays (annex G.6.4.2): +inf + NaN i of
    # x = +inf, NaN + inf i of x = -inf.
    re = machine.select(unordered & ~(x > machine.select(infinite, 0.0, INFINITY)), NAN, re)
    im = machine.select(unordered & ~(x < machine.select(infinite, 0.0, -INFINITY)), NAN, im)
    re = machine.select(wide, INFINITY, re)
    im = machine.select(wide, INFINITY, im)
    return re, with_sign_of(im, y, machine)


def rsqrt(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate conj(sqrt(z)) / |z|; infinity and NaN for zeros, zeros for infinities."""
    along, across = _values(x, y, machine)
    size = magnitude(along, across, machine)
    parts = root(along, across, size, machine)
    large, small = (rounded(unbounded.divide(part, size)) for part in parts)
    left = with_sign_of(finite_magnitude(x, machine) * 0.0 + 1.0, x, machine) < 0.0
    re, im = machine.select(left, small, large), machine.select(left, large, small)
    infinite = machine.equal(machine.absolute(x), INFINITY) | machine.equal(
        machine.absolute(y), INFINITY
    )
    zero = machine.equal(x, 0.0) & machine.equal(y, 0.0)
    unordered = ~(machine.equal(x, x) & machine.equal(y, y))
    re, im = machine.select(unordered, NAN, re), machine.select(unordered, NAN, im)
    re, im = machine.select(infinite, 0.0, re), machine.select(infinite, 0.0, im)
    re, im = machine.select(zero, INFINITY, re), machine.select(zero, NAN, im)
    return re, with_signs(-im, (y,), machine)


def abs_(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> tuple[V]:
    """Evaluate sqrt(x**2 + y**2); infinite if a component is."""
    result = rounded(magnitude(*_values(x, y, machine), machine))
    result = machine.select(machine.equal(x, x) & machine.equal(y, y), result, NAN)
    infinite = machine.equal(machine.absolute(x), INFINITY) | machine.equal(
        machine.absolute(y), INFINITY
    )
    return (machine.select(infinite, INFINITY, result),)


def sign(x: V, y: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate z / |z|; a zero is kept. What is finite is nothing beside an infinity."""
    wide = _values(x, y, machine)
    size = magnitude(*wide, machine)
    ordered = machine.equal(x, x) & machine.equal(y, y)
    both = is_finite(x, machine) & is_finite(y, machine)
    zero = machine.equal(x, 0.0) & machine.equal(y, 0.0)
    parts = []
    for part, whole in zip((x, y), wide, strict=True):
        result = rounded(unbounded.divide(whole, size))
        edge = machine.select(is_finite(part, machine) & ordered, 0.0, NAN)
        result = machine.select(both, result, edge)
        parts.append(with_sign_of(machine.select(zero, 0.0, result), part, machine))
    return parts[0], parts[1]


def divide(a: V, b: V, c: V, d: V, machine: Machine[V], rounded: Rounding[V]) -> Parts[V]:
    """Evaluate ((ac + bd) + (bc - ad) i) / (c**2 + d**2); annex G by zero and with infinities."""
    wide = [
        unbounded.from_f64(with_sign_of(finite_magnitude(part, machine), part, machine), machine)
        for part in (a, b, c, d)
    ]
    below = square_sum(wide[2], wide[3], machine)
    parts = []
    for (p, q), (r, s) in (((0, 1), (2, 3)), ((1, 0), (2, 3))):
        products = [unbounded.multiply(wide[p], wide[r]), unbounded.multiply(wide[q], wide[s])]
        if p:
            products[1] = unbounded.negative(products[1])
        exact = unbounded.add(products[0], products[1], machine)
        parts.append(rounded(unbounded.divide(exact, below)))
    re = _signed_zero(parts[0], (a, c), (b, d), machine)
    im = _signed_zero(parts[1], (b, c), (-a, d), machine)
    return _annex_g((a, b), (c, d), (re, im), machine)


def _signed_zero(result: V, one: Parts[V], other: Parts[V], machine: Machine[V]) -> V:
    """Return ``result``, a sum of two products, with IEEE's sign where both have a factor zero."""
    nothing = [machine.equal(p, 0.0) | machine.equal(q, 0.0) for p, q in (one, other)]
    return machine.select(nothing[0] & nothing[1], one[0] * one[1] + other[0] * other[1], result)


def _boxed(x: V, y: V, machine: Machine[V]) -> Parts[V]:
    """Return a corner or side of the unit square in the direction of an infinity.

    1 for infinite components, with their signs, else 0: annex G's "box the infinity".
    """
    boxed = [
        with_sign_of(
            machine.select(machine.equal(machine.absolute(part), INFINITY), 1.0, 0.0), part, machine
        )
        for part in (x, y)
    ]
    return boxed[0], boxed[1]


def _annex_g(lhs: Parts[V], rhs: Parts[V], result: Parts[V], machine: Machine[V]) -> Parts[V]:
    """Return ``result``, or the quotients of C11, annex G.5.1: by zero, of or by infinity."""
    (a, b), (c, d), (re, im) = lhs, rhs, result
    ends = [is_finite(p, machine) & is_finite(q, machine) for p, q in (lhs, rhs)]
    infinite = [
        machine.equal(machine.absolute(p), INFINITY) | machine.equal(machine.absolute(q), INFINITY)
        for p, q in (lhs, rhs)
    ]
    zero = machine.equal(c, 0.0) & machine.equal(d, 0.0)
    pole = with_sign_of(finite_magnitude(c, machine) * 0.0 + INFINITY, c, machine)
    (u, v), (s, t) = _boxed(a, b, machine), _boxed(c, d, machine)
    grown = INFINITY * (u * c + v * d), INFINITY * (v * c - u * d)
    shrunk = 0.0 * (a * s + b * t), 0.0 * (b * s - a * t)
    parts = []
    for part, at_zero, large, small in zip((re, im), (a, b), grown, shrunk, strict=True):
        part = machine.select(ends[0] & ends[1], part, NAN)
        part = machine.select(infinite[0] & ends[1], large, part)
        part = machine.select(ends[0] & infinite[1], small, part)
        parts.append(machine.select(zero, pole * at_zero, part))
    return parts[0], parts[1]
