"""scan: cumulative sums forth and back, several inputs and carries; jaxlib 0.10.2 agrees."""

from typing import Any

import numpy as np

import hlo
import interp


def evaluated(computation: str, entry: str, *arrays: Any) -> Any:
    return interp.evaluate(
        hlo.parse(f"HloModule m\n{computation}\nENTRY e {{\n{entry}\n}}"), *arrays
    )


RUNNING = """f {
  x = f32[] parameter(0)
  c = f32[] parameter(1)
  n = f32[] add(x, c)
  ROOT t = (f32[], f32[]) tuple(n, n)
}"""
ENTRY = """
  x = f32[%d] parameter(0)
  i = f32[] parameter(1)
  ROOT s = (f32[%d], f32[]) scan(x, i), to_apply=f, dimensions={0}, num_carries=1"""


def test_sums_forth_and_back() -> None:
    x, i = np.array([1, 2, 4, 8], np.float32), np.float32(100)
    sums, last = evaluated(RUNNING, ENTRY % (4, 4), x, i)
    assert (sums.tolist(), last) == ([101, 103, 107, 115], 115)
    sums, last = evaluated(RUNNING, ENTRY % (4, 4) + ", is_reverse=true", x, i)
    assert (sums.tolist(), last) == ([115, 114, 112, 108], 115)


def test_no_steps_give_the_carries_back() -> None:
    sums, last = evaluated(RUNNING, ENTRY % (0, 0), np.zeros(0, np.float32), np.float32(100))
    assert (sums.shape, last) == ((0,), 100)


def test_several_inputs_along_the_last_dimension() -> None:
    computation = """f {
  x = s32[] parameter(0)
  y = u8[2] parameter(1)
  c = s32[] parameter(2)
  d = u8[2] parameter(3)
  n = s32[] subtract(c, x)
  e = u8[2] add(y, d)
  w = s32[1] reshape(n)
  ROOT t = (s32[], u8[2], s32[], u8[2]) tuple(n, d, n, e)
}"""
    entry = """
  y = u8[3,2] parameter(0)
  x = s32[3] parameter(1)
  j = s32[] parameter(2)
  k = u8[2] parameter(3)
  ROOT r = (s32[3], u8[3,2], s32[], u8[2]) scan(x, y, j, k), to_apply=f, dimensions={0},
    num_carries=2"""
    y = np.array([[250, 1], [4, 2], [3, 3]], np.uint8)
    given = y, np.array([1, 2, 3], np.int32), np.int32(0), np.array([5, 6], np.uint8)
    counts, before, count, after = evaluated(computation, entry, *given)
    assert (counts.tolist(), count) == ([-1, -3, -6], -6)
    assert before.tolist() == [[5, 6], [255, 7], [3, 9]]
    assert after.tolist() == [6, 12]


def test_outputs_are_stacked_in_the_dimension_of_the_inputs() -> None:
    computation = """f {
  x = f32[2,3] parameter(0)
  c = f32[] parameter(1)
  r = f32[3,2] transpose(x), dimensions={1,0}
  ROOT t = (f32[3,2], f32[]) tuple(r, c)
}"""
    entry = """
  x = f32[2,4,3] parameter(0)
  c = f32[] parameter(1)
  ROOT r = (f32[3,4,2], f32[]) scan(x, c), to_apply=f, dimensions={1}, num_carries=1"""
    x = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    stacked, _ = evaluated(computation, entry, x, np.float32(0))
    assert np.array_equal(stacked, x.transpose(2, 1, 0))
