"""Evaluate power(x, y) for f32 in f32 alone: |x|**y = 2**(y log2|x|), with sums of two f32.

As :mod:`hlo.elementary.fast.power` does in float64; a pair of f32 has 48 bits where that has 53.
"""

from __future__ import annotations

from hlo.elementary.double_double import Pair, fast_two_sum
from hlo.elementary.fast.exponential import TAIL, scaled
from hlo.elementary.fast.logarithm import split
from hlo.elementary.fast.machine import BIAS, ROUND, FloatMachine, horner
from hlo.elementary.fast.power import LARGEST, LOG2, with_special_cases
from hlo.elementary.fast.quotients import product_error, remainder
from hlo.elementary.machine import V

_SMALLEST_NORMAL = 2.0**-126
# 2/ln(2) and a third of it, and ln(2), as pairs of f32
_TWICE = Pair(2.885390043258667, 3.851926067000022e-08)
_THIRD = Pair(0.9617967009544373, -7.028461368463468e-09)
_LN2 = Pair(0.6931471824645996, -1.9046542121259336e-09)
_ROUND_BIASED = ROUND + 2 * BIAS
_SHIFT = 0.0849625  # see exponential.py
_LIMIT = 160.0  # of a power of two: far beyond the f32


def power(x: V, y: V, machine: FloatMachine[V]) -> V:
    """Evaluate x**y; the error of y log2|x|, which is below 160, is some 2**-28."""
    logarithm = _log2(machine.absolute(x), machine)
    # (-1)**inf is 1, but infinity times log2(1) would be NaN.
    exponent = machine.select(y > LARGEST, LARGEST, y)
    exponent = machine.select(y < -LARGEST, -LARGEST, exponent)
    rough = exponent * logarithm.high
    is_small = (rough < _LIMIT) & (rough > -_LIMIT)
    factor = Pair(machine.select(is_small, exponent, 1.0), exponent * 0.0)
    product = _product(factor, logarithm, machine)
    limit = machine.select(rough > 0.0, _LIMIT, -_LIMIT)
    high = machine.select(is_small, product.high, limit)
    low = machine.select(is_small, product.low, 0.0)
    biased = (high - _SHIFT) + _ROUND_BIASED
    left = fast_two_sum(high - (biased - _ROUND_BIASED), low)
    r = left.high * _LN2.high
    rest = product_error(left.high, left.high * 0.0 + _LN2.high, r, machine)
    rest = rest + (left.high * _LN2.low + left.low * _LN2.high)
    tail = machine.fused(r * r, horner(r, TAIL, machine), rest)
    result = scaled((r + tail) + 1.0, machine.bits(biased), machine)
    return with_special_cases(x, y, result, machine)


def _product(a: Pair[V], b: Pair[V], machine: FloatMachine[V]) -> Pair[V]:
    """Multiply pairs, to some 2**-44."""
    high = a.high * b.high
    error = product_error(a.high, b.high, high, machine)
    return fast_two_sum(high, error + (a.high * b.low + a.low * b.high))


def _constant(pair: Pair[float], like: V) -> Pair[V]:
    """Return a pair of numbers as values."""
    return Pair(like * 0.0 + pair.high, like * 0.0 + pair.low)


def _log2(x: V, machine: FloatMachine[V]) -> Pair[V]:
    """Evaluate log2(x) for finite x > 0, to 2**-36 of itself.

    x = 2**k (1 + f), and with s = f / (2 + f) it is k + s (2/ln(2) + s**2 (a third of it + …)).
    """
    small = x < _SMALLEST_NORMAL
    normal = machine.select(small, x * 2.0**24, x)
    k, m, _ = split(machine.bits(normal), machine)
    k = k - machine.select(small, 2.0**23 + BIAS + 24, 2.0**23 + BIAS)
    f, below = m - 1.0, m + 1.0
    lost = m - (below - 1.0)
    quotient = f / below
    rest = remainder(f, quotient, below, machine) - quotient * lost
    s = fast_two_sum(quotient, rest / below)
    square = _product(s, s, machine)
    tail = square.high * horner(square.high, LOG2, machine)
    third = _constant(_THIRD, f)
    series = fast_two_sum(third.high, tail)
    series = _product(square, Pair(series.high, series.low + third.low), machine)
    twice = _constant(_TWICE, f)
    series_and_twice = fast_two_sum(twice.high, series.high)
    factor = Pair(series_and_twice.high, series_and_twice.low + (series.low + twice.low))
    fraction = _product(s, factor, machine)
    # |k| is 0 or above any fraction, which is at most 1/2.
    total = fast_two_sum(k, fraction.high)
    return fast_two_sum(total.high, total.low + fraction.low)
