"""Distances of arrays: NaN of narrow types, and numbers whose squares or sums overflow."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from bisect_dump.similarity import NEAR, apart, is_far, is_near


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, ml_dtypes.bfloat16, np.float64]
)
def test_an_array_is_near_to_itself(dtype: type) -> None:
    a = np.array([1, np.nan, 2]).astype(dtype)
    assert apart(a, a) == 0 and is_near(a, a) and not is_far(a, a)
    b = np.array([1, 2, np.nan]).astype(dtype)
    assert is_far(a, b) and not is_near(a, b)


def test_large_numbers_of_other_signs_are_far_apart() -> None:
    most = np.array([1e308])
    assert apart(most, -most) == 1 and is_far(most, -most)
    assert apart(most, most) == 0 and is_near(most, most)
    assert apart(most + 1e308j, most - 1e308j) == pytest.approx(2**-0.5)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_near_is_relative_to_the_root_mean_square(scale: float) -> None:
    a = np.array([scale, scale / 1e3])
    assert not is_near(a, np.array([-scale, scale / 1e3]))
    assert is_near(a, a * (1 + NEAR / 4)) and not is_near(a, a * (1 + NEAR * 4))


def test_one_byte_floats_differ_or_not() -> None:
    """A float of one byte has no near neighbours, so the fraction that differs is measured."""
    a = np.array([1, 2, np.nan, 4]).astype(ml_dtypes.float8_e4m3fn)
    b = np.array([1, 2.25, np.nan, 4]).astype(ml_dtypes.float8_e4m3fn)
    assert apart(a, b) == 0.25
