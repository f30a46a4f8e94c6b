"""Check that the operands of a select are loaded before it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import hlo
from backend_c.ir.settings import Numerics, threaded
from backend_c.pipeline import lowered
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan


def _masked(length: int) -> str:
    """Return a program that takes the largest of chosen elements of short rows from each."""
    return f"""HloModule m
largest {{ a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] maximum(a, b) }}
ENTRY main {{
  p = pred[100,{length}] parameter(0)
  x = s32[100,{length}] parameter(1)
  y = s32[100,{length}] parameter(2)
  n = s32[100,{length}] negate(y)
  s = s32[100,{length}] select(p, x, n)
  zero = s32[] constant(0)
  m = s32[100] reduce(s, zero), dimensions={{1}}, to_apply=largest
  b = s32[100,{length}] broadcast(m), dimensions={{0}}
  ROOT d = s32[100,{length}] subtract(s, b)
}}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("length", [2, 3])
def test_rows_have_the_bits_of_the_interpreter(length: int) -> None:
    draw = np.random.default_rng(0)
    numbers = draw.integers(1, 100, (2, 100, length)).astype(np.int32)
    assert_same_bits(_masked(length), draw.random((100, length)) < 0.5, *numbers)


@pytest.mark.parametrize("numerics", Numerics)
def test_no_select_loads(numerics: Numerics) -> None:
    plan = lowered(hlo.parse(_masked(2)), threaded(numerics))
    text = "\n".join(render_plan(plan, OPENMP).sources.values())
    assert re.search(r"\? w?v?\d*\w+ :", text)
    assert not re.search(r"\?[^;]*a\d\[", text)
