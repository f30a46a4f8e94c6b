"""Equality of bits: NaNs are equal, zeros of two signs are not."""

import ml_dtypes
import numpy as np
import pytest

from hlo.bit_equality import differences


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn"])
def test_floats(dtype: str) -> None:
    array = np.array([0.0, 1.0, np.nan], dtype)
    other = np.array([-0.0, 1.0, -np.nan], dtype)
    assert not differences(array, array.copy())
    (found,) = differences(array, other)
    assert (found.different, found.first) == (1, (0,))
    width = 2 * array.dtype.itemsize
    assert found.bits == ("0x" + "0" * width, "0x8" + "0" * (width - 1))


def test_complex_numbers_are_compared_by_component() -> None:
    array = np.array([[complex(1, np.nan), 0j]], np.complex64)
    other = np.array([[complex(1, -np.nan), -0.0j]], np.complex64)
    (found,) = differences(array, other)
    assert found.first == (0, 1) and "(0x" in found.bits[0]


def test_small_integers() -> None:
    array = np.array([-1, 7], ml_dtypes.int4)
    assert not differences(array, array.copy())
    assert differences(array, np.array([-1, 6], ml_dtypes.int4))[0].first == (1,)


def test_types_shapes_and_counts() -> None:
    one = np.zeros(3, np.float32)
    assert "float32[3] against float64[3]" in str(differences(one, one.astype(np.float64))[0])
    assert "float32[3] against float32[2]" in str(differences(one, one[:2])[0])
    assert "2 arrays against 1 arrays" in str(differences((one, one), one)[0])
