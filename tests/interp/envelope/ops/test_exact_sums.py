"""Sums under a budget that permits nothing: they are exact, and rounded once."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from hlo.values import Array
from interp.envelope.budget import EXACT, using
from interp.envelope.enclosure import Enclosure, contains
from interp.envelope.evaluation import enclose
from interp.envelope.ops.reduction import sum_along

ADD = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[3] parameter(0)
  zero = f32[] constant(0)
"""
SUMS = {
    "reduce": "ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=add",
    "reduce-window": "ROOT r = f32[1] reduce-window(x, zero), window={size=3}, to_apply=add",
    "scatter": """i = s32[3,1] constant({{0}, {0}, {0}})
  z = f32[1] constant({0})
  ROOT r = f32[1] scatter(z, i, x), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add""",  # noqa: E501 (one instruction)
}


@pytest.mark.parametrize("opcode", SUMS)
@pytest.mark.parametrize("ends", [(1e8, -1e8), (np.inf, -np.inf), (np.inf, 1.0), (0.0, -0.0)])
def test_the_interpreters_sum_is_the_only_one(opcode: str, ends: tuple[float, float]) -> None:
    module = hlo.parse(f"{ADD}  {SUMS[opcode]}\n}}")
    x = np.array([ends[0], 1.0, ends[1]], np.float32)
    exact = np.asarray(interp.evaluate(module, x))
    legal = enclose(module, x, peer=EXACT).result
    assert contains(legal, exact).all()
    assert np.array_equal(legal.low, legal.high, equal_nan=True)
    assert legal.nan.all() == np.isnan(exact).all()


@pytest.mark.parametrize(
    ("low", "high", "ends", "nan"),
    [
        ([1e8, 1, -1e8], [1e8, 2, -1e8], (1, 2), False),
        ([-np.inf, 1, 0], [1, np.inf, 0], (-np.inf, np.inf), True),
        ([np.inf, 1, -np.inf], [np.inf, 1, 5], (-np.inf, np.inf), True),
        ([np.inf, 1, 0], [np.inf, 2, 0], (np.inf, np.inf), False),
    ],
)
def test_sums_grow_with_each_addend(
    low: list[float], high: list[float], ends: tuple[float, float], nan: bool
) -> None:
    zero: Array = np.zeros((), np.float32)
    never = np.asarray(False)
    addends = Enclosure(np.float32(low), np.float32(high), np.zeros(3, np.bool_))
    with using(EXACT):
        found = sum_along(addends, (0,), Enclosure(zero, zero, never))
    assert (float(found.low), float(found.high)) == ends and bool(found.nan) == nan
