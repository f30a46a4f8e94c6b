"""Exact sums as digits on a fixed grid of bit positions.

Every float64 is cut at the same positions into multiples of 2**unit(level); the parts of one level
have so few bits that float64 adds up any number of them without an error, in any order, and by any
linear map (a sum of rows, a histogram, differences of prefixes). What is left is to carry, and to
round once. After Demmel and Nguyen, "Parallel reproducible summation" (2015); the cut is
ExtractVector of Rump, Ogita and Oishi, "Accurate floating-point summation" (2008).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from hlo.types import ElementType
from hlo.values import Array
from interp.exact.rounding import rounded, rounded_fraction, rounded_sum

Collect = Callable[[Array], Array]

_LOWEST = -1074  # every float64 is a multiple of 2**_LOWEST
_HUGE = 2.0**900  # above it the constants of the cut would overflow


def two_sum(one: Array, other: Array) -> tuple[Array, Array]:
    """Return the rounded sum and its rounding error, which is exact (Knuth's TwoSum)."""
    high = one + other
    tail = high - one
    return high, (one - (high - tail)) + (other - tail)


def odd_sum(one: Array, other: Array) -> Array:
    """Return the sum rounded to odd, which a later rounding to a narrower type turns into the
    rounding of the exact sum."""
    high, low = two_sum(one, other)
    even = (high.view(np.int64) & 1) == 0
    inexact = (low != 0) & even
    if not inexact.any():
        return high
    return np.where(inexact, np.nextafter(high, np.where(low > 0, np.inf, -np.inf)), high)


def cut(values: Array, unit: int) -> Array:
    """Round ``values``, of magnitude at most 2**(unit + 51), to multiples of 2**unit."""
    # 1.5 * 2**52 + x is from 2**52 to 2**53 for both signs of x, where float64's ulp is 1.
    round_there = math.ldexp(1.5, 52 + unit)
    part = values + round_there
    part -= round_there
    return part


def carried(digits: Sequence[Array], width: int) -> list[Array]:
    """Propagate carries: digits of at most 52 bits, each worth 2**width times the one before,
    become digits of magnitude at most half of that, and one more at the end. The value stays."""
    base, carry = 2.0**width, np.zeros_like(digits[0])
    balanced = []
    for digit in digits:
        total = digit + carry
        carry = np.rint(total / base)
        balanced.append(total - carry * base)
    return [*balanced, carry]


def composed(digits: Sequence[Array], width: int, unit: int) -> tuple[Array, Array]:
    """Combine carried digits, the first worth 2**unit, to a double-double: the value rounded to
    float64, and a low part whose sign and sticky last bit are those of the exact rest."""
    high = np.zeros_like(digits[0])
    low = np.zeros_like(high)
    for level, digit in enumerate(digits):
        high, error = two_sum(np.ldexp(digit, unit + level * width), high)
        low = odd_sum(error, low)
    return two_sum(high, low)


class Accumulator:
    """A superaccumulator for an array of exact sums; ``addends`` bounds the number of addends of
    each.

    ``minus_zero`` says whether a sum of nothing but -0 is to be -0 (else it is +0).
    """

    def __init__(self, shape: tuple[int, ...], addends: int, minus_zero: bool = False) -> None:
        self._shape = shape
        # `addends` parts of at most 2**width units are below 2**51 units: their sums are exact.
        self._width = 51 - addends.bit_length()
        self._digits: dict[int, Array] = {}
        self._special: dict[str, Array] = {}
        self._minus_zero = minus_zero

    def add(self, values: Array, collect: Collect) -> None:
        """Add ``collect(values)``, a linear map with coefficients 0 and 1, from float64 values."""
        values = np.atleast_1d(values)  # NumPy turns what it computes from 0-d arrays into scalars
        if self._minus_zero:
            self._count("other", (values != 0) | ~np.signbit(values), collect)
        if not np.isfinite(values).all():
            for name, special in (("nan", np.isnan(values)), ("+", values == np.inf)):
                self._count(name, special, collect)
            self._count("-", values == -np.inf, collect)
            values = np.where(np.isfinite(values), values, 0.0)
        largest = _largest(values)
        if largest > _HUGE:
            levels = 1000 // self._width
            is_huge = np.abs(values) > 1.0  # scaled down, it keeps its bits
            scaled = np.where(is_huge, values, 0.0) * math.ldexp(1.0, -levels * self._width)
            self._deposit(scaled, _largest(scaled), collect, levels)
            values = np.where(is_huge, 0.0, values)
            largest = _largest(values)
        self._deposit(values, largest, collect, 0)

    def _count(self, name: str, chosen: Array, collect: Collect) -> None:
        number = collect(chosen.astype(np.float64))
        self._special[name] = self._special.get(name, 0.0) + number

    def _deposit(self, values: Array, largest: float, collect: Collect, offset: int) -> None:
        exponent = math.frexp(largest)[1]
        level = max(0, -((_LOWEST - exponent) // self._width) - 1)
        residual = values
        while largest:
            unit = _LOWEST + level * self._width
            part = cut(residual, unit)
            out = None if residual is values else residual  # the caller's array stays as it is
            residual = np.subtract(residual, part, out=out)
            # Not a product by 2.0**-unit, which overflows for the lowest units.
            digit = np.ldexp(collect(part), -unit)
            known = self._digits.get(level + offset)
            self._digits[level + offset] = digit if known is None else known + digit
            level -= 1
            largest = float(residual.any())

    def rounded(self, element_type: ElementType) -> Array:
        """Return the sums, each rounded once."""
        if self._digits:
            low, high = min(self._digits), max(self._digits)
            zero = np.zeros(self._shape)
            digits = [self._digits.get(level, zero) for level in range(low, high + 1)]
            digits = carried(digits, self._width)
            unit = _LOWEST + low * self._width
            result = rounded_sum(*composed(digits, self._width, unit), element_type)
            if unit + len(digits) * self._width > math.frexp(_HUGE)[1]:
                result = self._without_overflow(result, digits, unit, element_type)
        else:
            result = rounded(np.zeros(self._shape), element_type)
        return self._with_specials(result, element_type)

    def _without_overflow(
        self, result: Array, digits: list[Array], unit: int, element_type: ElementType
    ) -> Array:
        """Round sums near the end of float64's range, where its arithmetic overflows, in Python
        integers."""
        for index in np.argwhere(~np.isfinite(result.astype(np.float64))):
            place = tuple(index)
            parts = (int(d[place]) << (i * self._width) for i, d in enumerate(digits))
            result[place] = rounded_fraction(sum(parts) * Fraction(2) ** unit, element_type)
        return result

    def _with_specials(self, result: Array, element_type: ElementType) -> Array:
        nothing = np.zeros(self._shape)
        plus, minus = (self._special.get(sign, nothing) > 0 for sign in "+-")
        nan = (self._special.get("nan", nothing) > 0) | (plus & minus)
        if self._minus_zero:
            result = np.where(self._special["other"] > 0, result, result.dtype.type(-0.0))
        special = plus | minus | nan
        if special.any():
            values = np.where(nan, np.nan, np.where(plus, np.inf, -np.inf))
            result = np.where(special, rounded(values, element_type), result)
        return result


def _largest(values: Array) -> float:
    if not values.size:
        return 0.0
    return max(float(values.max()), -float(values.min()))
