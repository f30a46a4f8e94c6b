"""Compute in double-double arithmetic: numbers of 106 bits as unevaluated sums of two float64.

Built from error-free transformations, which give the rounding error of one float64 operation as
another float64, without FMA (the machine has none):

    TwoSum, TwoProd     Knuth, TAOCP 2, 4.2.2; Dekker, "A floating-point technique for extending
                        the available precision", Numerische Mathematik 18, 1971
    sums, products      AccurateDWPlusDW, DWPlusFP, DWTimesDW1, DWTimesFP2 of Joldes, Muller and
                        Popescu, "Tight and rigorous error bounds for basic building blocks of
                        double-word arithmetic", ACM TOMS 44(2), 2017

The relative error of an operation is at most 2**-102. A product is error-free while its factors
stay below 2**996 (Veltkamp's splitting would overflow) and its last bit above 2**-1074.

``x * 0.0`` stands where a zero must be a value of the machine, with as many lanes as x: a Pair does
not hold Python floats (but for constants, see :func:`constant`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Generic, NamedTuple

from hlo.elementary.machine import Machine, V

_SPLITTER = 2.0**27 + 1.0


class Pair(NamedTuple, Generic[V]):
    """Represent ``high + low``.

    Normalised, ``high`` is the sum rounded to nearest: |low| is at most half a last bit of it.
    """

    high: V
    low: V


def constant(value: Fraction) -> Pair[Any]:
    """Return the pair nearest to a rational number, of Python floats, which any operation takes."""
    high = float(value)
    return Pair(high, float(value - Fraction(high)))


def two_sum(a: V, b: V) -> Pair[V]:
    """Add with the rounding error (TwoSum): high + low == a + b exactly, for any a and b."""
    high = a + b
    tail = high - a
    return Pair(high, (a - (high - tail)) + (b - tail))


def fast_two_sum(a: V, b: V) -> Pair[V]:
    """Add with the rounding error (FastTwoSum), where |a| >= |b| or a is 0: half the operations."""
    high = a + b
    return Pair(high, b - (high - a))


def veltkamp_split(a: V) -> tuple[V, V]:
    """Split into two numbers of at most 26 bits whose sum is exactly a (Veltkamp)."""
    scaled = a * _SPLITTER
    high = scaled - (scaled - a)
    return high, a - high


def two_product(a: V, b: V) -> Pair[V]:
    """Multiply with the rounding error (TwoProd, Dekker): high + low == a * b exactly."""
    high = a * b
    (a_high, a_low), (b_high, b_low) = veltkamp_split(a), veltkamp_split(b)
    low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low
    return Pair(high, low)


def add(a: Pair[V], b: Pair[V]) -> Pair[V]:
    """Add two pairs (AccurateDWPlusDW); the error is relative to the sum, even if they cancel."""
    high, low = two_sum(a.high, b.high), two_sum(a.low, b.low)
    first = fast_two_sum(high.high, high.low + low.high)
    return fast_two_sum(first.high, first.low + low.low)


def add_value(a: Pair[V], b: V | float) -> Pair[V]:
    """Add a float64 to a pair (DWPlusFP)."""
    high: Pair[Any] = two_sum(a.high, b)
    return fast_two_sum(high.high, high.low + a.low)


def negative(a: Pair[V]) -> Pair[V]:
    """Negate a pair, exactly."""
    return Pair(-a.high, -a.low)


def multiply(a: Pair[V], b: Pair[V]) -> Pair[V]:
    """Multiply two pairs (DWTimesDW1); the product of the low parts, below 2**-106, is left out."""
    high = two_product(a.high, b.high)
    return fast_two_sum(high.high, high.low + (a.high * b.low + a.low * b.high))


def multiply_value(a: Pair[V], b: V) -> Pair[V]:
    """Multiply a pair by a float64 (DWTimesFP2)."""
    high = two_product(a.high, b)
    return fast_two_sum(high.high, high.low + a.low * b)


def scaled(a: Pair[V], power: V | float) -> Pair[V]:
    """Multiply a pair by a power of two, exactly (short of overflow and underflow)."""
    return Pair(a.high * power, a.low * power)


def divide(a: Pair[V], b: Pair[V]) -> Pair[V]:
    """Divide by long division: three quotient digits of 53 bits, each from the remainder so far."""
    first = a.high / b.high
    rest = add(a, negative(multiply_value(b, first)))
    second = rest.high / b.high
    rest = add(rest, negative(multiply_value(b, second)))
    quotient = fast_two_sum(first, second)
    return add_value(quotient, rest.high / b.high)


def square_root(a: Pair[V], machine: Machine[V]) -> Pair[V]:
    """Take the square root of a positive pair; 0 for 0.

    One step of Newton's method from the rounded root, with its second-order term: sqrt(r**2 + e) =
    r + e/(2r) - (e/(2r))**2 / (2r) + …, where e = a - r**2 is formed without error.
    """
    root = machine.sqrt(a.high)
    rest = add(a, negative(two_product(root, root)))
    correction = machine.select(machine.equal(root, 0.0), 0.0, rest.high / (root + root))
    # The second-order term; where the root is 0 the quotients are 0/0.
    second = machine.select(machine.equal(root, 0.0), 0.0, correction * correction / (root + root))
    return add_value(fast_two_sum(root, correction), -second)


def select(condition: Any, on_true: Pair[V], on_false: Pair[V], machine: Machine[V]) -> Pair[V]:
    """Select per lane one of two pairs."""
    return Pair(
        machine.select(condition, on_true.high, on_false.high),
        machine.select(condition, on_true.low, on_false.low),
    )


def to_odd(a: Pair[V], machine: Machine[V]) -> V:
    """Round a pair to odd: to a float64 whose last bit is 1 unless the pair is a float64 exactly.

    Such a number is on the same side of every midpoint of fewer bits as the pair itself, so a
    second rounding, to 51 bits or fewer, gives what one rounding of the pair would (Boldo and
    Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
    odd", IEEE Transactions on Computers 57(4), 2008).
    """
    word = machine.bits(a.high)
    # Truncate towards zero: one step down in the encoding if low has the sign opposite to high. The
    # step is 1 as the encoding of the smallest subnormal, so that it is a word of the machine. Then
    # set the last bit, the sticky bit.
    negative_low = (a.low * machine.select(a.high < 0.0, -1.0, 1.0)) < 0.0
    step = machine.bits(machine.select(negative_low, 5e-324, a.low * 0.0)) & 1
    odd = machine.from_bits((word - step) | 1)
    return machine.select(machine.equal(a.low, 0.0), a.high, odd)


def rounded_sum(a: V, b: Pair[V], machine: Machine[V]) -> V:
    """Add a pair to a float64, rounded once, where |a| >= |b|.

    The rest of a + b.high is rounded to odd first, so that the last addition, which rounds to
    nearest, is the only rounding that counts.
    """
    total = fast_two_sum(a, b.high)
    rest = add_value(Pair(b.low, b.low * 0.0), total.low)
    return total.high + to_odd(rest, machine)
