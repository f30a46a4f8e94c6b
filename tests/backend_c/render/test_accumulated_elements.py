"""Short rows compute what they accumulate in whole vectors, apart from the accumulation."""

from __future__ import annotations

import re

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import backend_c
import hlo
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import INDEX, Apply, Array, Let, Load, Loop, Store, Variable
from backend_c.ir.settings import Numerics, Settings
from backend_c.pipeline import lowered
from backend_c.render.accumulated_elements import divided
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan
from hlo.types import F32, PRED

_LANE = Variable(INDEX, "i1", 0, 29)
_SUM = Array("t1", F32, 30, mutable=True, is_local=True)
_INPUT = Array("a0", F32, 31)


def _folded(body: str, init: str, length: int) -> str:
    """Return the fold of tanh along the middle dimension of [5,7,length]."""
    return f"""HloModule m
fold {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] {body}(a, b) }}
ENTRY main {{
  x = f32[5,7,{length}] parameter(0)
  y = f32[5,{length}] parameter(1)
  w = f32[5,7,{length}] broadcast(y), dimensions={{0,2}}
  d = f32[5,7,{length}] subtract(x, w)
  t = f32[5,7,{length}] tanh(d)
  i = f32[] constant({init})
  ROOT r = f32[5,{length}] reduce(t, i), dimensions={{1}}, to_apply=fold
}}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("length", [5, 18, 30, 61, 100])
def test_maxima_of_short_rows_have_the_bits_of_the_interpreter(length: int) -> None:
    rng = np.random.default_rng(length)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((5, 7, length), (5, length))]
    arrays[0][0, 3, 1] = np.nan
    assert_same_bits(_folded("maximum", "-inf", length), *arrays)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("length", [18, 30, 61])
def test_sums_of_short_rows_are_those_of_long_ones(length: int) -> None:
    """No column of ``fast`` depends on how many there are."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((5, 7, 256), (5, 256)))
    whole = np.asarray(backend_c.compile(hlo.parse(_folded("add", "0", 256)))(x, y))
    short = backend_c.compile(hlo.parse(_folded("add", "0", length)))
    found = np.asarray(short(np.ascontiguousarray(x[..., :length]), y[:, :length].copy()))
    assert found.tobytes() == whole[:, :length].tobytes()


def test_functions_have_no_remainder() -> None:
    plan = lowered(hlo.parse(_folded("add", "0", 30)), Settings(Numerics.FAST))
    code = "".join(render_plan(plan, OPENMP).sources.values())
    of_trips = re.findall(r"(\w)\d+ < (\d+);[^{}]*\{[^{}]*hlo_tanh_fast", code)
    assert of_trips == [("j", "16")]


def test_what_is_loaded_of_other_elements_stays_one_loop() -> None:
    """t[i] = t[i + 1] + f(a[i]) depends on the order of the trips."""
    value = Apply("tanh", (Load(_INPUT, _LANE),), F32)
    for place, is_divided in ((_LANE, True), (ix.subtract(ix.constant(29), _LANE), False)):
        store = Store(_SUM, _LANE, Apply("add", (Load(_SUM, place), value), F32))
        loop = Loop(_LANE, ix.constant(30), "lanes", (store,))
        assert (divided(loop, 30, "e1") is not None) == is_divided


def test_what_registers_hold_otherwise_stays_one_loop() -> None:
    """A pred is a byte in memory: its loop would have vectors of bytes."""
    is_large = Variable(PRED, "v1")
    let = Let(is_large, Apply("compare-GT", (Load(_INPUT, _LANE), Load(_INPUT, _LANE)), PRED))
    held = Load(_SUM, _LANE)
    store = Store(_SUM, _LANE, Apply("select", (is_large, held, held), F32))
    assert divided(Loop(_LANE, ix.constant(30), "lanes", (let, store)), 30, "e1") is None
