"""ragged-dot in its three modes and scaled-dot: group by group with NumPy, and in C."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import hlo
import interp
from hlo.types import ELEMENT_TYPES

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


def checked(lines: str, *arrays: Any) -> Any:
    text = f"HloModule m\nENTRY e {{\n{lines}\n}}\n"
    assert_same_bits(text, *arrays)
    return interp.evaluate(hlo.parse(text), *arrays)


ROWS = """
  a = f32[2,7,4] parameter(0)
  b = f32[4,3,2,5] parameter(1)
  g = s32[%s3] parameter(2)
  ROOT r = f32[2,7,5] ragged-dot(a, b, g), lhs_batch_dims={0}, rhs_batch_dims={2},
    lhs_contracting_dims={2}, rhs_contracting_dims={0}, lhs_ragged_dims={1}, rhs_group_dims={1}"""
DEPTH = """
  a = s32[2,6] parameter(0)
  b = s32[6,3] parameter(1)
  g = u8[3] parameter(2)
  ROOT r = s32[3,2,3] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    lhs_ragged_dims={1}"""
DEEP = """
  a = f32[5,2,6] parameter(0)
  b = f32[3,5,6] parameter(1)
  g = s64[5,2] parameter(2)
  ROOT r = f32[2,2,3] ragged-dot(a, b, g), lhs_contracting_dims={0,2}, rhs_contracting_dims={1,2},
    lhs_ragged_dims={2}"""
BATCH = """
  a = f32[3,2,2] parameter(0)
  b = f32[3,2,2] parameter(1)
  g = s32[2] parameter(2)
  ROOT r = f32[3,2,2] ragged-dot(a, b, g), lhs_batch_dims={0}, rhs_batch_dims={0},
    lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={0}"""


def whole(*dims: int) -> np.ndarray:
    return np.random.default_rng(sum(dims)).integers(-4, 5, dims).astype(np.float32)


@pytest.mark.parametrize("sizes", [[2, 0, 4], [[3, 1, 3], [0, 5, 9]]])
def test_ragged_rows(sizes: list[Any]) -> None:
    a, b = whole(2, 7, 4), whole(4, 3, 2, 5)
    given = np.array(sizes, np.int32)
    b[0, 1] = np.inf  # no factor of the rows of other groups
    result = checked(ROWS % ("2," if given.ndim > 1 else ""), a, b, given)
    expected = np.zeros((2, 7, 5), np.float32)
    for batch, of_batch in enumerate(np.broadcast_to(given, (2, 3))):
        start = 0
        for group, size in enumerate(of_batch):
            rows = slice(start, start + size)
            with np.errstate(invalid="ignore"):
                expected[batch, rows] = a[batch, rows] @ b[:, group, batch]
            start += size
    assert np.array_equal(result, expected, equal_nan=True)


@pytest.mark.parametrize("name", ["s64", "u64", "s32", "s8"])
def test_sums_of_sizes_are_those_of_integers(name: str) -> None:
    """They may be beyond 64 bits, on either side, and come back."""
    dtype = ELEMENT_TYPES[name].numpy
    limits, random = np.iinfo(dtype), np.random.default_rng(3)
    special = [limits.max, limits.max // 2, 0, 1, 2, 3]
    special += [limits.min, limits.min // 2, -1, -3] if limits.min else []
    text = (ROWS % "").replace("s32[3]", f"{name}[3]")
    a, b = whole(2, 7, 4), whole(4, 3, 2, 5)
    for _ in range(40):
        checked(text, a, b, random.choice(np.array(special, dtype), 3))


def test_ragged_depth() -> None:
    a, b = whole(2, 6).astype(np.int32), whole(6, 3).astype(np.int32)
    result = checked(DEPTH, a, b, np.array([2, 1, 2], np.uint8))
    parts = [slice(0, 2), slice(2, 3), slice(3, 5)]
    assert np.array_equal(result, [a[:, part] @ b[part] for part in parts])


def test_sizes_for_each_of_another_contracted_dimension() -> None:
    a, b = whole(5, 2, 6), whole(3, 5, 6)
    sizes = np.array([[6, 0], [1, 4], [0, 0], [2, 2], [0, 9]])
    result = checked(DEEP, a, b, sizes)
    expected = np.zeros((2, 2, 3), np.float32)
    for outer, (one, other) in enumerate(sizes):
        for group, part in enumerate((slice(0, one), slice(one, one + other))):
            expected[group] += a[outer][:, part] @ b[:, outer, part].T
    assert np.array_equal(result, expected)


def test_ragged_batches_are_batches() -> None:
    a, b = whole(3, 2, 2), whole(3, 2, 2)
    assert np.array_equal(checked(BATCH, a, b, np.array([1, 1], np.int32)), a @ b)


SCALED = """
  a = %s[4,64] parameter(0)
  b = %s[64,6] parameter(1)
  s = f8e8m0fnu[4,2] parameter(2)
  t = f8e8m0fnu[2,6] parameter(3)
  ROOT r = %s[4,6] scaled-dot(a, b, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""


@pytest.mark.parametrize(
    ("element", "result"), [("f8e4m3fn", "f32"), ("f4e2m1fn", "bf16"), ("bf16", "f32")]
)
def test_scaled_blocks(element: str, result: str) -> None:
    random = np.random.default_rng(0)
    dtype = {
        "f8e4m3fn": ml_dtypes.float8_e4m3fn,
        "f4e2m1fn": ml_dtypes.float4_e2m1fn,
        "bf16": ml_dtypes.bfloat16,
    }[element]
    a, b = (
        random.integers(-3, 4, dims).astype(np.float32).astype(dtype) for dims in ((4, 64), (64, 6))
    )
    s, t = (
        (2.0 ** random.integers(-2, 3, dims)).astype(np.float32).astype(ml_dtypes.float8_e8m0fnu)
        for dims in ((4, 2), (2, 6))
    )
    product = checked(SCALED % (element, element, result), a, b, s, t)
    left = a.astype(np.float64) * np.repeat(s.astype(np.float64), 32, 1)
    right = b.astype(np.float64) * np.repeat(t.astype(np.float64), 32, 0)
    assert np.array_equal(product, (left @ right).astype(np.float32).astype(product.dtype))


def test_scales_beyond_the_type() -> None:
    """2**127 * 448 is no f32, but the sum is."""
    a = np.full((4, 64), 448, np.float32).astype(ml_dtypes.float8_e4m3fn)
    b = np.zeros((64, 6), np.float32)
    b[0] = 2.0**-6
    huge = np.full((4, 2), 2.0**127, np.float32).astype(ml_dtypes.float8_e8m0fnu)
    tiny = np.full((2, 6), 2.0**-127).astype(ml_dtypes.float8_e8m0fnu)
    text = SCALED % ("f8e4m3fn", "f8e4m3fn", "f32")
    product = checked(text, a, b.astype(ml_dtypes.float8_e4m3fn), huge, tiny)
    assert (product == 7).all()
