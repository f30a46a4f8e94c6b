"""Kernels on arrays of bounded size: what lies beyond the actual size never counts."""

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_TEXT = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
mixed {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  m = f32[] multiply(a, b)
  ROOT r = f32[] subtract(m, b)
}
lt {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY e {
  x = f32[<=9,4] parameter(0)
  i = s32[<=6,1] parameter(1)
  u = f32[<=6,4] parameter(2)
  y = f32[5,4] parameter(3)
  v = f32[3,4] parameter(4)
  j = s32[3,1] parameter(5)
  init = f32[] constant(1)
  sorted = f32[<=9,4] sort(x), dimensions={0}, is_stable=true, to_apply=lt
  rows = f32[<=9,4] sort(x), dimensions={1}, is_stable=true, to_apply=lt
  best = (f32[<=9,2], s32[<=9,2]) topk(x), k=2, largest=true
  added = f32[5,4] scatter(y, i, u), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  folded = f32[5,4] scatter(y, i, u), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=mixed
  grown = f32[<=9,4] scatter(x, j, v), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  pooled = f32[<=9,4] reduce-window(x, init), window={size=3x1 pad=1_1x0_0}, to_apply=add
  halved = f32[<=4,4] reduce-window(x, init), window={size=3x1 stride=2x1 pad=0_0x0_0},
    to_apply=mixed
  ROOT t = (f32[<=9,4], f32[<=9,4], (f32[<=9,2], s32[<=9,2]), f32[5,4], f32[5,4], f32[<=9,4],
    f32[<=9,4], f32[<=4,4]) tuple(sorted, rows, best, added, folded, grown, pooled, halved)
}
"""


@pytest.mark.parametrize(("rows", "updates"), [(9, 6), (4, 3), (1, 1), (0, 0)])
def test_bounded(rows: int, updates: int) -> None:
    rng = np.random.default_rng(rows)
    x, u, y, v = (rng.standard_normal((n, 4)).astype(np.float32) for n in (rows, updates, 5, 3))
    i = rng.integers(-1, 6, (updates, 1)).astype(np.int32)
    j = np.array([[0], [3], [7]], np.int32)
    assert_same_bits(_TEXT, x, i, u, y, v, j)
