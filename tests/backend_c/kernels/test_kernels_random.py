"""Random bits of every width and shape, and the states that follow, against the interpreter."""

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_DIMS = ("", "1", "5", "6", "3,3", "3,4", "5,3", "4,2,5", "0", "40000")
_STATES = (
    ("rng_three_fry", [1, 2]),
    ("rng_three_fry", [2**64 - 1, 2**64 - 3]),
    ("rng_philox", [1, 2, 3]),
    ("rng_philox", [2**63 + 5, 2**64 - 2, 2**64 - 1]),
    ("rng_default", [1, 2]),
)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("element_type", ["u8", "s16", "u32", "s32", "u64", "f32"])
@pytest.mark.parametrize(("algorithm", "state"), _STATES)
def test_bits(algorithm: str, state: list[int], element_type: str) -> None:
    words = len(state)
    lines, shapes = [], []
    for number, dims in enumerate(_DIMS):
        shapes.append(f"(u64[{words}], {element_type}[{dims}])")
        lines.append(f"b{number} = {shapes[-1]} rng-bit-generator(s), algorithm={algorithm}")
    separator = "\n  "
    text = f"""HloModule m
ENTRY e {{
  s = u64[{words}] parameter(0)
  {separator.join(lines)}
  ROOT t = ({", ".join(shapes)}) tuple({", ".join(f"b{n}" for n in range(len(_DIMS)))})
}}
"""
    assert_same_bits(text, np.array(state, np.uint64))


def test_bits_alone() -> None:
    text = """HloModule m
ENTRY e {
  s = u64[2] parameter(0)
  ROOT b = u32[7,3] rng-bit-generator(s), algorithm=rng_three_fry
}
"""
    assert_same_bits(text, np.array([7, 8], np.uint64))


def test_draws_of_a_run() -> None:
    """The order of the text is that of the draws, of which none may be left out."""
    text = """HloModule m
ENTRY e {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  x = f32[5,7] rng(a, b), distribution=rng_uniform
  unused = f32[3] rng(a, b), distribution=rng_uniform
  s = u64[2] rng-get-and-update-state(), delta=128
  y = f32[4001] rng(a, b), distribution=rng_normal
  u = u64[2] rng-get-and-update-state(), delta=-5
  z = s32[50] rng(i, j), distribution=rng_uniform
  p = bf16[] convert(a)
  q = bf16[] convert(b)
  v = bf16[20] rng(p, q), distribution=rng_normal
  k = s64[] convert(i)
  l = s64[] convert(j)
  w = s64[20] rng(k, l), distribution=rng_uniform
  t = u64[2] rng-get-and-update-state(), delta=1
  c = f64[] convert(a)
  d = f64[] convert(b)
  m = f64[7] rng(c, d), distribution=rng_uniform
  n = f64[5,3] rng(c, d), distribution=rng_normal
  ROOT r = (f32[5,7], u64[2], f32[4001], u64[2], s32[50], bf16[20], s64[20], u64[2], f64[7],
    f64[5,3]) tuple(x, s, y, u, z, v, w, t, m, n)
}
"""
    arguments = np.float32(-1.5), np.float32(3), np.int32(-7), np.int32(100)
    for seed in (0, 1234567890123, -1, 2**64 - 2):
        assert_same_bits(text, *arguments, seed=seed)
