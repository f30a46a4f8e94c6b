"""Evaluate power(x, y) for f64, in f64 arithmetic: |x|**y = e**(y log|x|)."""

from __future__ import annotations

from fractions import Fraction

from hlo.elementary.double_double import Pair, constant, fast_two_sum
from hlo.elementary.exponential import LN2_HIGH, LN2_LOW
from hlo.elementary.exponential_f64 import clamped
from hlo.elementary.fast.exponential_f64 import reduced, scaled
from hlo.elementary.fast.machine import DoubleMachine, divided, exact_product, horner
from hlo.elementary.logarithm import INFINITY
from hlo.elementary.logarithm_f64 import normalised
from hlo.elementary.machine import V
from hlo.elementary.power import with_special_powers

_THIRD = constant(Fraction(1, 3))
# (artanh(s) / s - 1 - s**2 / 3) / s**4 in s**2 for |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)
LOG = (
    0.2,
    0.14285714285714685,
    0.11111111110827569,
    0.09090909167781211,
    0.07692297472198575,
    0.06667402839649206,
    0.05853104976775156,
    0.05861727254885922,
)


def _log(x: V, machine: DoubleMachine[V]) -> Pair[V]:
    """Evaluate log(x), for x positive and finite, to 2**-64.5 of itself.

    x = 2**k (1 + f), and with s = f / (2 + f), a pair, log(1 + f) = 2 s (1 + s**2 (1/3 + s**4 …)).
    The last term, below 0.0061, is no pair: its roundings of 2**-59.4, times s**2, are the error.
    """
    k, m, _ = normalised(x, machine)
    f = m - 1.0
    below = fast_two_sum(f * 0.0 + 2.0, f)
    s, s_low = divided(Pair(f, f * 0.0), below, machine)
    square = exact_product(s, s, machine)
    square = Pair(square.high, machine.fused(s + s, s_low, square.low))
    tail = square.high * horner(square.high, LOG, machine)
    slope = fast_two_sum(tail * 0.0 + _THIRD.high, tail)
    slope = Pair(slope.high, slope.low + _THIRD.low)
    beyond = _product(square, slope, machine)
    s, s_low = s + s, s_low + s_low
    more = _product(Pair(s, s_low), beyond, machine)
    log = fast_two_sum(s, more.high)
    log = Pair(log.high, log.low + (s_low + more.low))
    total = fast_two_sum(k * LN2_HIGH, log.high)
    return fast_two_sum(total.high, total.low + machine.fused(k, LN2_LOW, log.low))


def _product(a: Pair[V], b: Pair[V], machine: DoubleMachine[V]) -> Pair[V]:
    """Multiply two pairs but for the product of the low parts; not normalised."""
    high = exact_product(a.high, b.high, machine)
    return Pair(high.high, machine.fused(a.high, b.low, machine.fused(a.low, b.high, high.low)))


def power(x: V, y: V, machine: DoubleMachine[V]) -> V:
    """Evaluate x**y; special cases are those of C (C11 F.10.4.4).

    y log|x| is below 746 where the result is finite and not 0, and errs by 2**-54.9, which is 0.26
    units of the result at most; 2**-58 of e**r and a half for rounding it make the error less than
    0.85, and less than 0.95 where it is rounded once more, to a subnormal. What y is clamped to
    makes 0 or infinity of every x but 1, as y does.
    """
    size = machine.absolute(x)
    ordinary = (size > 0.0) & (size < INFINITY)
    log = _log(machine.select(ordinary, size, 1.0), machine)
    exponent = clamped(y, -(2.0**65), 2.0**65, machine)
    product = exact_product(exponent, log.high, machine)
    low = machine.fused(exponent, log.low, product.low)
    high = clamped(product.high, -750.0, 712.0, machine)
    low = machine.select(machine.equal(high, product.high), low, 0.0)
    fraction, biased = reduced(Pair(high, low), machine)
    total = fast_two_sum(fraction.high * 0.0 + 1.0, fraction.high)
    result = scaled(total.high + (total.low + fraction.low), biased, machine)
    return with_special_powers(x, y, result, machine)
