"""Compute with numbers of 106 bits and unbounded exponent: a pair times a power of two.

The functions of complex numbers are written in these: no intermediate result of finite f64 operands
overflows or underflows, so formulas stand as they are in books, without scaling.

The relative error of an operation is at most 2**-102. That of a sum is relative to the result also
where the addends cancel, provided they are exact.
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

# The exponent of zero: below all others, so that a sum is aligned to its other addend.
_EXPONENT_OF_ZERO = -20000.0
# The shift of an addend that is smaller by more than this: far below the last of 106 bits, so only
# its sign can still matter.
_LARGEST_SHIFT = -1000.0
_EXPONENT_BITS = 0x7FF << MANTISSA_BITS
_TWO_52_BITS = (BIAS + 52) << MANTISSA_BITS


class Unbounded(NamedTuple, Generic[V]):
    """Represent ``pair`` * 2**``exponent``: |pair| in [2**-64, 2**64] or 0, an integral exponent.

    The range of the pair leaves room for a product or a quotient of two without normalising each.
    """

    pair: Pair[V]
    exponent: V


Rounding = Callable[[Unbounded[V]], V]  # to the type of a result, with the sign of the pair


def scale(exponent: V | Any, machine: Machine[V]) -> V:
    """Return 2**exponent for an integer within [-1022, 1023]."""
    return power_of_two(exponent + ROUND, machine)


def normalised(pair: Pair[V], exponent: V | Any, machine: Machine[V]) -> Unbounded[V]:
    """Normalise ``pair`` * 2**exponent: bring |pair| into [1, 2); a zero keeps its sign."""
    biased = machine.bits(pair.high) & _EXPONENT_BITS
    # The exponent field of the high part as a float, and 2**-k from the negated field, both by
    # encodings.
    k = machine.from_bits((biased >> MANTISSA_BITS) | _TWO_52_BITS) - (2.0**52 + BIAS)
    factor = machine.from_bits(((biased & 0) + ((2 * BIAS) << MANTISSA_BITS)) - biased)
    whole = exponent + k
    whole = machine.select(machine.equal(pair.high, 0.0), _EXPONENT_OF_ZERO, whole)
    return Unbounded(double_double.scaled(pair, factor), whole)


def from_f64(x: V, machine: Machine[V]) -> Unbounded[V]:
    """Convert a finite f64.

    Subnormal and huge values are scaled first: ``normalised`` takes neither.
    """
    tiny, huge = machine.absolute(x) < 2.0**-1000, machine.absolute(x) > 2.0**1000
    factor = machine.select(tiny, 2.0**100, machine.select(huge, 2.0**-100, 1.0))
    moved = machine.select(tiny, -100.0, machine.select(huge, 100.0, 0.0))
    moderate = x * factor
    return normalised(Pair(moderate, moderate * 0.0), moved, machine)


def from_pair(pair: Pair[V], machine: Machine[V]) -> Unbounded[V]:
    """Convert a pair of moderate size."""
    return normalised(pair, pair.high * 0.0, machine)


def aligned(a: Unbounded[V], exponent: V, machine: Machine[V]) -> Pair[V]:
    """Return a / 2**exponent as a pair, for an exponent of at least a's."""
    below = clamped(a.exponent - exponent, _LARGEST_SHIFT, 0.0, machine)
    return double_double.scaled(a.pair, scale(below, machine))


def larger(a: V, b: V, machine: Machine[V]) -> V:
    """Return the larger of two numbers."""
    return machine.select(a > b, a, b)


def add(a: Unbounded[V], b: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """Add two numbers, aligned to the larger exponent."""
    exponent = larger(a.exponent, b.exponent, machine)
    total = double_double.add(aligned(a, exponent, machine), aligned(b, exponent, machine))
    return normalised(total, exponent, machine)


def negative(a: Unbounded[V]) -> Unbounded[V]:
    """Negate, exactly."""
    return Unbounded(double_double.negative(a.pair), a.exponent)


def subtract(a: Unbounded[V], b: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """Subtract two numbers."""
    return add(a, negative(b), machine)


def multiply(a: Unbounded[V], b: Unbounded[V]) -> Unbounded[V]:
    """Multiply two numbers."""
    return Unbounded(double_double.multiply(a.pair, b.pair), a.exponent + b.exponent)


def square(a: Unbounded[V]) -> Unbounded[V]:
    """Multiply a number by itself."""
    return multiply(a, a)


def divide(a: Unbounded[V], b: Unbounded[V]) -> Unbounded[V]:
    """Divide two numbers; anything where the divisor is 0."""
    return Unbounded(double_double.divide(a.pair, b.pair), a.exponent - b.exponent)


def times_two(a: Unbounded[V], power: float) -> Unbounded[V]:
    """Multiply by 2**power, exactly."""
    return Unbounded(a.pair, a.exponent + power)


def square_root(a: Unbounded[V], machine: Machine[V]) -> Unbounded[V]:
    """Take the square root for a >= 0; the odd exponents' factor of two goes into the pair."""
    half = (a.exponent * 0.5 + ROUND) - ROUND
    left = a.exponent - 2.0 * half
    one = left * 0.0 + 1.0
    factor = machine.select(left > 0.5, 2.0, machine.select(left < -0.5, 0.5, one))
    return Unbounded(double_double.square_root(double_double.scaled(a.pair, factor), machine), half)


def select(
    condition: Condition, on_true: Unbounded[V], on_false: Unbounded[V], machine: Machine[V]
) -> Unbounded[V]:
    """Select per lane one of two numbers."""
    pair = double_double.select(condition, on_true.pair, on_false.pair, machine)
    return Unbounded(pair, machine.select(condition, on_true.exponent, on_false.exponent))


def is_zero(a: Unbounded[V], machine: Machine[V]) -> Condition:
    """Return whether a number is 0."""
    return machine.equal(a.pair.high, 0.0)


def exact_sum(terms: Sequence[V], machine: Machine[V]) -> Unbounded[V]:
    """Add a few f64 of moderate size with a relative error of 2**-102, whatever cancels.

    Each sweep of TwoSum from first to last (VecSum) makes the sum as precise as if computed in one
    more float64 (Ogita, Rump, Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26,
    2005).
    """
    parts = list(terms)
    for _ in range(min(len(parts), 6)):
        for i in range(len(parts) - 1):
            parts[i + 1], parts[i] = two_sum(parts[i], parts[i + 1])
    rest = parts[0]
    for part in parts[1:-2]:
        rest = rest + part
    total = two_sum(parts[-1], parts[-2])
    return from_pair(fast_two_sum(total.high, total.low + rest), machine)


def to_f64(a: Unbounded[V], machine: Machine[V]) -> V:
    """Round once to f64, also to a subnormal; a result that underflows to zero keeps the sign."""
    whole = normalised(a.pair, a.exponent, machine)
    k = clamped(whole.exponent, -1100.0, 1100.0, machine)
    rounded = machine.absolute(times_power_of_two(whole.pair, k, machine))
    return with_sign_of(rounded, a.pair.high, machine)


def to_f32_odd(a: Unbounded[V], machine: Machine[V]) -> V:
    """Round to odd, so that rounding the float64 to f32 rounds the number once."""
    whole = normalised(a.pair, a.exponent, machine)
    k = clamped(whole.exponent, -300.0, 300.0, machine)
    return to_odd(whole.pair, machine) * scale(k, machine)
