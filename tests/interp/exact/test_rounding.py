"""Every float type against its own table of values: nearest, ties to even."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hlo.types import BF16, ELEMENT_TYPES, F16, F32, ElementType
from interp.exact.rounding import rounded, rounded_fraction, rounded_integer, rounded_sum

NARROW = [t for t in ELEMENT_TYPES.values() if t.is_float and t.bits <= 16]


def finite_values(element_type: ElementType) -> np.ndarray:
    """All finite values, in order, in float64; of two zeros one."""
    codes = np.arange(2**element_type.bits, dtype=f"u{element_type.numpy.itemsize}")
    with np.errstate(invalid="ignore"):  # signalling NaN
        values = codes.view(element_type.numpy).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


def same(one: np.ndarray, other: np.ndarray) -> bool:
    one, other = one.astype(np.float64), other.astype(np.float64)
    return bool(np.all((one == other) | (np.isnan(one) & np.isnan(other))))


@pytest.mark.parametrize("element_type", NARROW, ids=str)
def test_values_and_what_lies_beside_the_middles(element_type: ElementType) -> None:
    values = finite_values(element_type)
    assert same(rounded(values, element_type), values)
    middles = values[:-1] + np.diff(values) / 2  # exact: one more bit
    above, below = np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf)
    assert same(rounded(above, element_type), values[1:])
    assert same(rounded(below, element_type), values[:-1])
    tied = rounded(middles, element_type).astype(np.float64)
    assert np.all((tied == values[1:]) | (tied == values[:-1]))
    code = rounded(middles, element_type).view(f"u{element_type.numpy.itemsize}")
    if element_type.name != "f8e8m0fnu":  # its codes are exponents: a tie is between powers
        assert np.all(code & 1 == 0)


@pytest.mark.parametrize("element_type", NARROW, ids=str)
def test_sums_see_the_low_part(element_type: ElementType) -> None:
    values = finite_values(element_type)
    middles = values[:-1] + np.diff(values) / 2
    tiny = np.full_like(middles, 1e-40)
    assert same(rounded_sum(middles, tiny, element_type), values[1:])
    assert same(rounded_sum(middles, -tiny, element_type), values[:-1])


def test_a_large_float_overflows_once() -> None:
    middle = 2.0**128 - 2.0**119
    around = np.array([np.nextafter(middle, 0), middle])
    with np.errstate(over="ignore"):
        assert list(rounded(around, BF16).astype(np.float64)) == [2.0**128 - 2.0**120, np.inf]
    assert rounded(np.array(65519.99), F16) == 65504


def test_integers_round_once() -> None:
    # float64 would round this to the middle of two bf16 first
    values = np.array([2**62 + 2**54 + 1, -(2**62) - 2**54 - 1, 2**62 + 2**54, -(2**63)])
    expected = [2**62 + 2**55, -(2**62) - 2**55, 2**62, -(2**63)]
    assert list(rounded_integer(values, BF16).astype(np.float64)) == expected
    assert float(rounded_integer(np.array(2**64 - 1, np.uint64), BF16)) == 2.0**64
    assert rounded_integer(np.array(2**24 + 1), F32) == 2**24


def test_fractions_round_once() -> None:
    assert rounded_fraction(Fraction(1, 3), F32) == np.float32(1) / np.float32(3)
    just_above = 1 + Fraction(1, 2**24) + Fraction(1, 10**400)
    assert rounded_fraction(just_above, F32) == np.nextafter(np.float32(1), np.float32(2))
    with np.errstate(over="ignore"):
        assert rounded_fraction(Fraction(-(10**400)), F32) == -np.inf
