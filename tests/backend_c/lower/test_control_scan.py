"""scan in C: the interpreter's bits, whatever the slices, the outputs and the body."""

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import backend_c
import hlo

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

TEXT = """HloModule m
f {
  x = f32[] parameter(0)
  y = s32[] parameter(1)
  c = f32[] parameter(2)
  d = f16[2] parameter(3)
  n = f32[] add(x, c)
  k = f16[2] constant({1, 2.5})
  e = f16[2] add(d, k)
  z = s32[] convert(n)
  w = s32[] add(y, z)
  ROOT t = (f32[], s32[], f16[2], f32[], f16[2]) tuple(n, w, e, n, e)
}
g {
  x = f32[3] parameter(0)
  c = f32[3] parameter(1)
  q = f32[3] multiply(x, x)
  n = f32[3] add(q, c)
  ROOT t = (f32[3], f32[3]) tuple(n, x)
}
h {
  x = f32[3,3] parameter(0)
  c = f32[3,3] parameter(1)
  n = f32[3,3] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[3,1] slice(n), slice={[0:3],[0:1]}
  ROOT t = (f32[3,1], f32[3,3]) tuple(s, n)
}
ENTRY e {
  x = f32[4] parameter(0)
  y = s32[4] parameter(1)
  i = f32[] parameter(2)
  d = f16[2] parameter(3)
  z = f32[4,3] parameter(4)
  j = f32[3] parameter(5)
  m = f32[3,5,3] parameter(6)
  o = f32[3,3] parameter(7)
  none = f32[0,3] parameter(8)
  a = (f32[4], s32[4], f16[4,2], f32[], f16[2]) scan(x, y, i, d), to_apply=f, dimensions={0},
    num_carries=2
  b = (f32[4,3], f32[3]) scan(z, j), to_apply=g, dimensions={0}, num_carries=1, is_reverse=true,
    is_associative=true
  c = (f32[3,5,1], f32[3,3]) scan(m, o), to_apply=h, dimensions={1}, num_carries=1
  q = (f32[0,3], f32[3]) scan(none, j), to_apply=g, dimensions={0}, num_carries=1
  ROOT r = ((f32[4], s32[4], f16[4,2], f32[], f16[2]), (f32[4,3], f32[3]), (f32[3,5,1], f32[3,3]),
    (f32[0,3], f32[3])) tuple(a, b, c, q)
}
"""


def test_scan() -> None:
    random = np.random.default_rng(0)

    def normal(*dims: int) -> np.ndarray:
        return random.standard_normal(dims).astype(np.float32)

    assert_same_bits(
        TEXT,
        normal(4),
        np.arange(4, dtype=np.int32),
        np.float32(0.5),
        np.array([1, 2], np.float16),
        normal(4, 3),
        normal(3),
        normal(3, 5, 3),
        normal(3, 3),
        np.zeros((0, 3), np.float32),
    )


MANY = """HloModule m
f {
  x = f32[0] parameter(0)
  c = f32[] parameter(1)
  one = f32[] constant(1)
  n = f32[] add(c, one)
  ROOT t = (f32[0], f32[]) tuple(x, n)
}
ENTRY e {
  x = f32[LENGTH,0] parameter(0)
  i = f32[] parameter(1)
  ROOT r = (f32[LENGTH,0], f32[]) scan(x, i), to_apply=f, dimensions={0}, num_carries=1,
    is_reverse=true
}
"""


@pytest.mark.parametrize("length", [2**31 - 1, 2**31, 2**40])
def test_slices_beyond_32_bits_are_counted(length: int) -> None:
    backend_c.emit(hlo.parse(MANY.replace("LENGTH", f"{length}")))  # to run it takes too long
    three = np.zeros((3, 0), np.float32)
    assert_same_bits(MANY.replace("LENGTH", f"<={length}"), three, np.float32(0.5))
