"""Equal computations on operands that are alike share a kernel; others have one of their own."""

from __future__ import annotations

import numpy as np
from against_interp import assert_same_bits

import hlo
from backend_c.pipeline import lowered

_PRODUCTS = """HloModule m
ENTRY e {
  x = f32[5,5] parameter(0)
  y = f32[5,5] parameter(1)
  a = f32[5,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[5,5] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[5,5] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[5,5] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT r = (f32[5,5], f32[5,5], f32[5,5], f32[5,5]) tuple(a, b, c, d)
}
"""


def test_kernels_are_shared_where_operands_are_alike() -> None:
    """Kernels are shared by equal instructions, but not where both operands are the same array, nor
    with other attributes."""
    first, second, square, other = lowered(hlo.parse(_PRODUCTS)).kernels
    assert first is second
    assert len({id(kernel) for kernel in (first, square, other)}) == 3


def test_shared_kernels_compute_each_from_its_own() -> None:
    x, y = np.random.default_rng(1).standard_normal((2, 5, 5), dtype=np.float32)
    assert_same_bits(_PRODUCTS, x, y)


def test_kernels_of_other_sizes_are_not_shared() -> None:
    """A bounded operand has its sizes beside it: its kernel reads them."""
    text = """HloModule m
s { a = s32[] parameter(0)
 b = s32[] parameter(1)
 ROOT c = s32[] add(a, b) }
ENTRY e {
  x = s32[4] parameter(0)
  y = s32[<=4] parameter(1)
  z = s32[] constant(0)
  a = s32[] reduce(x, z), dimensions={0}, to_apply=s
  b = s32[] reduce(y, z), dimensions={0}, to_apply=s
  ROOT r = (s32[], s32[]) tuple(a, b)
}
"""
    assert_same_bits(text, np.arange(4, dtype=np.int32), np.arange(3, dtype=np.int32))
