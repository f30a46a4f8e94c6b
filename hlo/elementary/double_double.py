"""Numbers of 106 bits: the unevaluated sum of two float64, by exact sums and products without FMA.

Dekker, "A floating-point technique for extending the available precision", 1971; Knuth, TAOCP 2,
4.2.2. A product is exact while its factors stay below 2**996 and its last bit above 2**-1074.
A relative error of 2**-102 or less per operation, cancellation aside.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Generic, NamedTuple

from hlo.elementary.machine import Machine, V

_SPLITTER = 2.0**27 + 1.0


class Pair(NamedTuple, Generic[V]):
    """``high + low``, where |low| is at most half a last bit of ``high`` (once normalised)."""

    high: V
    low: V


def constant(value: Fraction) -> Pair[Any]:
    """The nearest pair of Python floats, which serve as values wherever an operand is one."""
    high = float(value)
    return Pair(high, float(value - Fraction(high)))


def two_sum(a: V, b: V) -> Pair[V]:
    """a + b, exactly."""
    high = a + b
    tail = high - a
    return Pair(high, (a - (high - tail)) + (b - tail))


def fast_two_sum(a: V, b: V) -> Pair[V]:
    """a + b, exactly, where |a| >= |b| or a is 0."""
    high = a + b
    return Pair(high, b - (high - a))


def halves(a: V) -> tuple[V, V]:
    """Two numbers of 26 bits whose sum is a (Veltkamp)."""
    scaled = a * _SPLITTER
    high = scaled - (scaled - a)
    return high, a - high


def two_product(a: V, b: V) -> Pair[V]:
    """a * b, exactly."""
    high = a * b
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low
    return Pair(high, low)


def add(a: Pair[V], b: Pair[V]) -> Pair[V]:
    """a + b; the error is relative to the result, also if they cancel."""
    high, low = two_sum(a.high, b.high), two_sum(a.low, b.low)
    first = fast_two_sum(high.high, high.low + low.high)
    return fast_two_sum(first.high, first.low + low.low)


def add_value(a: Pair[V], b: V | float) -> Pair[V]:
    """a + b."""
    high: Pair[Any] = two_sum(a.high, b)
    return fast_two_sum(high.high, high.low + a.low)


def negative(a: Pair[V]) -> Pair[V]:
    """-a."""
    return Pair(-a.high, -a.low)


def multiply(a: Pair[V], b: Pair[V]) -> Pair[V]:
    """a * b."""
    high = two_product(a.high, b.high)
    return fast_two_sum(high.high, high.low + (a.high * b.low + a.low * b.high))


def multiply_value(a: Pair[V], b: V) -> Pair[V]:
    """a * b."""
    high = two_product(a.high, b)
    return fast_two_sum(high.high, high.low + a.low * b)


def scaled(a: Pair[V], power: V | float) -> Pair[V]:
    """a times a power of two."""
    return Pair(a.high * power, a.low * power)


def divide(a: Pair[V], b: Pair[V]) -> Pair[V]:
    """a / b: two quotients, the second of the exact rest."""
    first = a.high / b.high
    rest = add(a, negative(multiply_value(b, first)))
    second = rest.high / b.high
    rest = add(rest, negative(multiply_value(b, second)))
    quotient = fast_two_sum(first, second)
    return add_value(quotient, rest.high / b.high)


def square_root(a: Pair[V], machine: Machine[V]) -> Pair[V]:
    """The root of a positive pair: one step of Newton from the rounded root; 0 for 0."""
    root = machine.sqrt(a.high)
    rest = add(a, negative(two_product(root, root)))
    correction = machine.select(machine.equal(root, 0.0), 0.0, rest.high / (root + root))
    # the step's own error is correction**2 / (2 root)
    second = machine.select(machine.equal(root, 0.0), 0.0, correction * correction / (root + root))
    return add_value(fast_two_sum(root, correction), -second)


def select(condition: Any, on_true: Pair[V], on_false: Pair[V], machine: Machine[V]) -> Pair[V]:
    """Per lane, one of the two."""
    return Pair(
        machine.select(condition, on_true.high, on_false.high),
        machine.select(condition, on_true.low, on_false.low),
    )


def to_odd(a: Pair[V], machine: Machine[V]) -> V:
    """a rounded to odd: a second rounding to 51 bits or fewer then errs no more than the first.

    Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008.
    """
    word = machine.bits(a.high)
    negative_low = (a.low * machine.select(a.high < 0.0, -1.0, 1.0)) < 0.0
    step = machine.bits(machine.select(negative_low, 5e-324, a.low * 0.0)) & 1
    odd = machine.from_bits((word - step) | 1)
    return machine.select(machine.equal(a.low, 0.0), a.high, odd)


def rounded_sum(a: V, b: Pair[V], machine: Machine[V]) -> V:
    """a + b rounded once, where |a| >= |b|."""
    total = fast_two_sum(a, b.high)
    rest = add_value(Pair(b.low, b.low * 0.0), total.low)
    return total.high + to_odd(rest, machine)
