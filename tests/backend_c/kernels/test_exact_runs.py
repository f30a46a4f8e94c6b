"""Exact sums of groups of channels, whose neighbours are few and whose rows are many."""

from __future__ import annotations

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import hlo
from backend_c.ir.settings import Numerics, threaded
from backend_c.pipeline import lowered
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan
from hlo.types import ELEMENT_TYPES

SHAPES = [
    ((3, 5, 4, 6, 8), (1, 2, 4)),
    ((2, 16, 3, 2, 2), (1, 3, 4)),
    ((17, 33, 3), (0, 2)),
    ((4, 3, 4, 5, 64), (0, 2, 4)),
    ((40, 1, 2), (0, 2)),
    ((300, 2, 9), (0, 2)),
]


def _sum(t: str, dims: tuple[int, ...], reduced: tuple[int, ...], init: str) -> str:
    """Return a program that adds up f32 made of a type's elements."""
    kept = ",".join(str(n) for d, n in enumerate(dims) if d not in reduced)
    shape = ",".join(map(str, dims))
    return f"""HloModule m
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}}
ENTRY main {{
  x = {t}[{shape}] parameter(0)
  y = f32[{shape}] convert(x)
  init = f32[] constant({init})
  ROOT r = f32[{kept}] reduce(y, init), dimensions={{{",".join(map(str, reduced))}}}, to_apply=sum
}}
"""


def _drawn(t: str, dims: tuple[int, ...], what: str) -> np.ndarray:
    rng = np.random.default_rng(sum(dims))
    x = rng.standard_normal(dims)
    if what == "cancelling":
        x *= 2.0 ** rng.integers(-60, 60, dims)
        x[tuple(slice(None, None, -1) for _ in dims)] -= x
    if what == "zeros":
        x = np.where(x < 0, -0.0, 0.0 if dims[0] > 3 else -0.0)
    if what == "special":
        x = np.where(x > 2.5, np.inf, x)
        x = np.where(x < -2.7, np.nan, x)
    return x.astype(ELEMENT_TYPES[t].numpy)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.sampled(12)
@pytest.mark.parametrize("what", ["normal", "cancelling", "zeros", "special"])
@pytest.mark.parametrize("init", ["0", "-0.0", "1e-30"])
@pytest.mark.parametrize("t", ["f32", "bf16"])
@pytest.mark.parametrize(("dims", "reduced"), SHAPES)
def test_the_same_bits(
    dims: tuple[int, ...], reduced: tuple[int, ...], t: str, init: str, what: str
) -> None:
    assert_same_bits(_sum(t, dims, reduced, init), _drawn(t, dims, what))


def test_neighbours_of_all_results_are_in_lanes() -> None:
    plan = lowered(hlo.parse(_sum("f32", *SHAPES[0], "0")), threaded(Numerics.EXACT))
    text = "\n".join(render_plan(plan, OPENMP).sources.values())
    assert "< 48; ++i7" in text and "reduction(" not in text
