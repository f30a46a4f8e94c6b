"""Truth values and integers that a program makes of floats are recorded."""

from __future__ import annotations

import numpy as np

import hlo
from interp.envelope.exact_decisions import exact_decisions

CLIPPED = """\
HloModule clipped
ENTRY e {
  x = f32[8] parameter(0)
  s = f32[8] sine(x)
  c = f32[8] cosine(x)
  ss = f32[8] multiply(s, s)
  cc = f32[8] multiply(c, c)
  sum = f32[8] add(ss, cc)
  ones = f32[8] constant({1, 1, 1, 1, 1, 1, 1, 300})
  left = f32[8] subtract(sum, ones)
  least = f32[] constant(-1e6)
  leasts = f32[8] broadcast(least), dimensions={}
  most = f32[8] maximum(left, leasts)
  is_left = pred[8] compare(left, most), direction=EQ
  rows = pred[2,4] reshape(is_left)
  taken = f32[2,4] reshape(x)
  ROOT chosen = f32[2,4] select(rows, taken, taken)
}
"""
X = np.array([0.3, 0.57, 0.84, 1.11, 1.4, 1.7, 1.9, 0.25], np.float32)


def test_decisions_are_those_of_the_exact_evaluation() -> None:
    found = exact_decisions(hlo.parse(CLIPPED), [X])
    assert {name: array.all() for name, array in found.items()} == {"is_left": True, "rows": True}
    assert found["rows"].shape == (2, 4)
