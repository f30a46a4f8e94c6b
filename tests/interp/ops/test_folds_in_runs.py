"""Folds of few results over many steps, of which stretches change the state and others do not."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp

# The greatest number so far, and how often there was a greater one, in a code of three digits.
_COUNTED = """HloModule m
counted {{
  best = s32[] parameter(0)
  times = s32[] parameter(1)
  x = s32[] parameter(2)
  one = s32[] parameter(3)
  more = pred[] compare(x, best), direction=GT
  three = s32[] constant(3)
  product = s32[] multiply(times, three)
  sum = s32[] add(product, one)
  first = s32[] select(more, x, best)
  second = s32[] select(more, sum, times)
  ROOT t = (s32[], s32[]) tuple(first, second)
}}
ENTRY e {{
  x = s32[{0}] parameter(0)
  one = s32[] constant(1)
  ones = s32[{0}] broadcast(one), dimensions={{}}
  least = s32[] constant(-5)
  zero = s32[] constant(0)
  ROOT r = (s32[], s32[]) reduce(x, ones, least, zero), dimensions={{0}}, to_apply=counted
}}
"""


@pytest.mark.parametrize("blind", [1, 4, 1 << 9])
@pytest.mark.parametrize("length", [65, 700, 1041])
def test_stretches_that_change_at_each_step(
    monkeypatch: pytest.MonkeyPatch, blind: int, length: int
) -> None:
    """Steps that are taken without looking end with the elements, and where nothing changes."""
    monkeypatch.setattr("interp.ops.reduction._MOST_BLIND", blind)
    places = np.arange(length, dtype=np.int32)
    values = np.where(places % 300 < 200, places, np.int32(-1))  # then 100 that are not greater
    best, times = -5, 0
    for x in values.tolist():
        if x > best:
            best, times = x, (3 * times + 1) % 2**32
    found = interp.evaluate(hlo.parse(_COUNTED.format(length)), values)
    assert [int(found[0]), int(found[1]) % 2**32] == [best, times]
