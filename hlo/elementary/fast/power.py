"""Evaluate power(x, y) for f32: |x|**y = 2**(y log2|x|), with the logarithm in float64."""

from __future__ import annotations

from typing import Any

from hlo.elementary.fast.exponential import grown, scaled
from hlo.elementary.fast.logarithm import INFINITY, NAN, split
from hlo.elementary.fast.machine import BIAS, FloatMachine, horner, with_sign_of
from hlo.elementary.machine import Condition, V

_SMALLEST_NORMAL = 2.0**-126
LARGEST = 2.0**128 - 2.0**104
_LN2 = 0.6931471805599453
# 2/ln(2) and a third of it: log2((1 + s) / (1 - s)) = _TWICE s + _THIRD s**3 + s**5 (…)
_TWICE, _THIRD = 2.8853900817779268, 0.9617966939259757
# … in s**2 for |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)
LOG2 = (0.5770803, 0.4118396, 0.33803675)
# Adding it rounds a float64 to an integer k, and puts k + 254 into the low bits.
_ROUND_BIASED = 1.5 * 2.0**52 + 2 * BIAS
_SHIFT = 0.0849625  # see exponential.py


def power(x: V, y: V, machine: FloatMachine[V]) -> V:
    """Evaluate x**y; the error of y log2|x|, which is below 160, is some 2**-28.

    Special cases are those of C (C11 F.10.4.4).
    """
    size = machine.absolute(x)
    # (-1)**inf is 1, but infinity times log2(1) would be NaN.
    exponent = machine.select(y > LARGEST, LARGEST, y)
    exponent = machine.select(y < -LARGEST, -LARGEST, exponent)
    product = machine.widened(exponent) * _wide_log2(size, machine)
    product = machine.wide.select(product > 160.0, 160.0, product)
    product = machine.wide.select(product < -160.0, -160.0, product)
    biased = (product - _SHIFT) + _ROUND_BIASED
    r = machine.narrowed((product - (biased - _ROUND_BIASED)) * _LN2)
    result = scaled(grown(r, machine) + 1.0, machine.low_word(biased), machine)
    return with_special_cases(x, y, result, machine)


def _wide_log2(x: V, machine: FloatMachine[V]) -> Any:
    """Evaluate log2(x) for finite x > 0, to 2**-36 of itself, as a float64.

    x = 2**k (1 + f), and with s = f / (2 + f) it is k + 2/ln(2) artanh(s). The quotient of f32 is
    mended by its remainder, which is taken exactly; of the series the first two terms are float64.
    """
    small = x < _SMALLEST_NORMAL
    normal = machine.select(small, x * 2.0**24, x)
    k, m, _ = split(machine.bits(normal), machine)
    k = k - machine.select(small, 2.0**23 + BIAS + 24, 2.0**23 + BIAS)
    f, below = m - 1.0, m + 1.0
    quotient = f / below
    wide_f, wide_quotient = machine.widened(f), machine.widened(quotient)
    rest = machine.narrowed(wide_f - wide_quotient * (wide_f + 2.0))
    s = wide_quotient + machine.widened(rest / below)
    square = s * s
    cube = s * square
    narrow = machine.narrowed(square)
    tail = machine.narrowed(cube) * narrow * horner(narrow, LOG2, machine)
    return machine.widened(k) + (s * _TWICE + (cube * _THIRD + machine.widened(tail)))


def _is_integer(y: V, machine: FloatMachine[V]) -> Condition:
    """Return whether |y| >= 0 is an integer; infinity is one."""
    return (y >= 2.0**23) | machine.equal((y + 2.0**23) - 2.0**23, y)


def with_special_cases(x: V, y: V, result: V, machine: FloatMachine[V]) -> V:
    """Replace ``result``, |x|**y for finite x but 0, by C's special cases."""
    size, exponent = machine.absolute(x), machine.absolute(y)
    zero, infinite = machine.equal(size, 0.0), machine.equal(size, INFINITY)
    grows = (zero & (y < 0.0)) | (infinite & (y > 0.0))
    limit = machine.select(grows, INFINITY, 0.0)
    result = machine.select(zero | infinite, limit, result)
    whole = _is_integer(exponent, machine)
    # From 2**24 on every f32 is even.
    odd = whole & (exponent < 2.0**24) & ~_is_integer(exponent * 0.5, machine)
    result = machine.select(odd, with_sign_of(result, x, machine), result)
    result = machine.select((x < 0.0) & ~whole & ~infinite, NAN, result)
    unordered = ~(machine.equal(x, x) & machine.equal(y, y))
    result = machine.select(unordered, NAN, result)
    return machine.select(machine.equal(y, 0.0) | machine.equal(x, 1.0), 1.0, result)
