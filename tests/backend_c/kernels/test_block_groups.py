"""Scatters on CUDA: every element meets its updates in their order, whatever the threads."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler

import hlo
from fuzz.oracles.cuda_emulated import cuda_emulated, fast_is_sound
from fuzz.oracles.oracle import Property
from fuzz.reducer.search import Case
from hlo.module import Module

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

ROWS = """update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
    index_vector_dim=1"""
FOLD = """fold { a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT r = T[] OP }
"""


def rows(element_type: str, operation: str) -> Module:
    """Fifty updates of rows of a matrix, several of each, some of none."""
    combiner = FOLD.replace("T[", f"{element_type}[").replace("OP", operation)
    text = f"""HloModule m
    {combiner}
    ENTRY e {{
      x = {element_type}[9,40] parameter(0)
      i = s32[50,1] parameter(1)
      u = {element_type}[50,40] parameter(2)
      ROOT s = {element_type}[9,40] scatter(x, i, u), {ROWS}, to_apply=fold
    }}"""
    return hlo.parse(text)


# Two operands whose computation tells them apart; and a maximum that selects what is added up.
PAIRS = """HloModule m
pair { a = f32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = s32[] parameter(3)
  e = f32[] subtract(a, c)
  f = s32[] multiply(b, d)
  ROOT r = (f32[], s32[]) tuple(e, f) }
ENTRY e {
  x = f32[6] parameter(0)
  y = s32[6] parameter(1)
  i = s32[30,1] parameter(2)
  u = f32[30] parameter(3)
  v = s32[30] parameter(4)
  ROOT s = (f32[6], s32[6]) scatter(x, y, i, u, v), update_window_dims={},
    inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=pair
}"""
SELECT = """HloModule m
more { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE }
add { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b) }
ENTRY e {
  x = s32[9,11] parameter(0)
  s = s32[4,5] parameter(1)
  z = s32[] constant(7)
  ROOT r = s32[9,11] select-and-scatter(x, s, z), window={size=3x3 stride=2x2}, select=more,
    scatter=add
}"""


@pytest.mark.parametrize("oracle", [cuda_emulated, fast_is_sound])
def test_each_element_meets_its_updates_in_their_order(oracle: Property) -> None:
    generator = np.random.default_rng(3)

    def floats(*dims: int) -> np.ndarray:
        return generator.standard_normal(dims).astype(np.float32)

    def integers(*dims: int, low: int = -99, high: int = 99) -> np.ndarray:
        return generator.integers(low, high, dims).astype(np.int32)

    places = integers(50, 1, low=-2, high=11)
    cases = [
        Case(rows("f32", "add(a, b)"), (floats(9, 40), places, floats(50, 40))),
        Case(rows("f32", "subtract(b, a)"), (floats(9, 40), places, floats(50, 40))),
        Case(rows("s32", "maximum(a, b)"), (integers(9, 40), places, integers(50, 40))),
        Case(
            hlo.parse(PAIRS),
            (floats(6), integers(6), integers(30, 1, low=0, high=7), floats(30), integers(30)),
        ),
        Case(hlo.parse(SELECT), (integers(9, 11), integers(4, 5))),
    ]
    assert oracle(cases) == [None] * len(cases)
