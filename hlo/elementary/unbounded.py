"""Numbers of 106 bits and of any exponent: no function of finite f64 overflows or underflows on
its way, so formulas stand as they are written in books.

A relative error of 2**-102 or less per operation; a sum's is relative to the result, also if its
addends cancel, where the addends are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple

from hlo.elementary import double_double
from hlo.elementary.double_double import Pair, fast_two_sum, to_odd, two_sum
from hlo.elementary.exponential_f64 import clamped, times_power_of_two
from hlo.elementary.machine import (
    BIAS,
    MANTISSA_BITS,
    ROUND,
    Condition,
    Machine,
    V,
    power_of_two,
    with_sign_of,
)

_OF_ZERO = -20000.0  # its exponent: below all others, so that a sum is aligned to the other addend
_FAR = -1000.0  # what is so much smaller than another addend leaves nothing but its sign
_EXPONENT_BITS = 0x7FF << MANTISSA_BITS
_TWO_52_BITS = (BIAS + 52) << MANTISSA_BITS


class Unbounded(NamedTuple, Generic[V]):
    """``pair`` times two to the ``exponent``, an integer; |pair| is in [2**-64, 2**64] or 0."""

    pair: Pair[V]
    exponent: V


Rounding = Callable[[Unbounded[V]], V]  # to the type of a result, with the sign of the pair


def scale(exponent: V | Any, machine: Machine[V]) -> V:
    """2**exponent for an integer within [-1022, 1023]."""
    return power_of_two(exponent + ROUND, machine)


def normal(pair: Pair[V], exponent: V | Any, machine: Machine[V]) -> Unbounded[V]:
    """``pair`` times 2**exponent with the pair in [1, 2), or 0, or in (-2, -1]."""
    biased = machine.bits(pair.high) & _EXPONENT_BITS
    k = machine.from_bits((biased >> MANTISSA_BITS) | _TWO_52_BITS) - (2.0**52 + BIAS)
    factor = machine.from_bits(((biased & 0) + ((2 * BIAS) << MANTISSA_BITS)) - biased)
    whole = exponent + k
    whole = machine.select(machine.equal(pair.high, 0.0), _OF_ZERO, whole)
    return Unbounded(double_double.scaled(pair, factor), whole)


def value(x: V, machine: Machine[V]) -> Unbounded[V]:
    """A finite f64."""
    tiny, huge = machine.absolute(x) < 2.0**-1000, machine.absolute(x) > 2.0**1000
    factor = machine.select(tiny, 2.0**100, machine.select(huge, 2.0**-100, 1.0))
    moved = machine.select(tiny, -100.0, machine.select(huge, 100.0, 0.0))
    moderate = x * factor
    return normal(Pair(moderate, moderate * 0.0), moved, machine)


def of_pair(pair: Pair[V], machine: Machine[V]) -> Unbounded[V]:
    """A pair of moderate size."""
    return normal(pair, pair.high * 0.0, machine)


def aligned(a: Unbounded[V], exponent: V, machine: Machine[V]) -> Pair[V]:
    """a / 2**exponent for an exponent of at least a's."""
    below = clamped(a.exponent - exponent, _FAR, 0.0, machine)
    return double_double.scaled(a.pair, scale(below, machine))


def larger(a: V, b: V, machine: Machine[V]) -> V:
    return machine.select(a > b, a, b)


def add(a: Unbounded[V], b: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """a + b."""
    exponent = larger(a.exponent, b.exponent, machine)
    total = double_double.add(aligned(a, exponent, machine), aligned(b, exponent, machine))
    return normal(total, exponent, machine)


def negative(a: Unbounded[V]) -> Unbounded[V]:
    """-a."""
    return Unbounded(double_double.negative(a.pair), a.exponent)


def subtract(a: Unbounded[V], b: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """a - b."""
    return add(a, negative(b), machine)


def multiply(a: Unbounded[V], b: Unbounded[V]) -> Unbounded[V]:
    """a * b."""
    return Unbounded(double_double.multiply(a.pair, b.pair), a.exponent + b.exponent)


def square(a: Unbounded[V]) -> Unbounded[V]:
    """a * a."""
    return multiply(a, a)


def divide(a: Unbounded[V], b: Unbounded[V]) -> Unbounded[V]:
    """a / b, where b is not 0; anything where it is."""
    return Unbounded(double_double.divide(a.pair, b.pair), a.exponent - b.exponent)


def times_two(a: Unbounded[V], power: float) -> Unbounded[V]:
    """a * 2**power."""
    return Unbounded(a.pair, a.exponent + power)


def square_root(a: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """sqrt(a) for a >= 0."""
    half = (a.exponent * 0.5 + ROUND) - ROUND
    left = a.exponent - 2.0 * half
    one = left * 0.0 + 1.0
    factor = machine.select(left > 0.5, 2.0, machine.select(left < -0.5, 0.5, one))
    return Unbounded(double_double.square_root(double_double.scaled(a.pair, factor), machine), half)


def select(
    condition: Condition, on_true: Unbounded[V], on_false: Unbounded[V], machine: Machine[V]
) -> Unbounded[V]:
    """Per lane, one of the two."""
    pair = double_double.select(condition, on_true.pair, on_false.pair, machine)
    return Unbounded(pair, machine.select(condition, on_true.exponent, on_false.exponent))


def is_zero(a: Unbounded[V], machine: Machine[V]) -> Condition:
    return machine.equal(a.pair.high, 0.0)


def exact_sum(terms: Sequence[V], machine: Machine[V]) -> Unbounded[V]:
    """The sum of a few f64 of moderate size, whatever cancels: each sweep of exact additions makes
    it as if in one more f64 (Ogita, Rump, Oishi, "Accurate sum and dot product", 2005)."""
    parts = list(terms)
    for _ in range(min(len(parts), 6)):
        for i in range(len(parts) - 1):
            parts[i + 1], parts[i] = two_sum(parts[i], parts[i + 1])
    rest = parts[0]
    for part in parts[1:-2]:
        rest = rest + part
    total = two_sum(parts[-1], parts[-2])
    return of_pair(fast_two_sum(total.high, total.low + rest), machine)


def to_f64(a: Unbounded[V], machine: Machine[V]) -> V:
    """a rounded once to f64, with a's sign also where it underflows."""
    whole = normal(a.pair, a.exponent, machine)
    k = clamped(whole.exponent, -1100.0, 1100.0, machine)
    rounded = machine.absolute(times_power_of_two(whole.pair, k, machine))
    return with_sign_of(rounded, a.pair.high, machine)


def to_f32_odd(a: Unbounded[V], machine: Machine[V]) -> V:
    """a rounded to odd, so that rounding it to f32 is as if a were rounded once."""
    whole = normal(a.pair, a.exponent, machine)
    k = clamped(whole.exponent, -300.0, 300.0, machine)
    return to_odd(whole.pair, machine) * scale(k, machine)
