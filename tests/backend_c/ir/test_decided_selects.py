"""What the ranges of integers decide is no select, and the bits are the same."""

from __future__ import annotations

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import hlo
from backend_c.ir.decided_selects import with_decided_selects
from backend_c.ir.loop_ir import INDEX, Apply, Array, Constant, Let, Load, Loop, Store, Variable
from backend_c.ir.settings import Numerics, alone, threaded
from backend_c.pipeline import lowered
from backend_c.render.dialect import EMBEDDED, OPENMP
from backend_c.render.translation_units import render_plan
from hlo.types import F32, PRED, S32

_NORMALISED = """HloModule m
ENTRY main {
  x = f32[40] parameter(0)
  i = s32[33] iota(), iota_dimension=0
  one = s32[] constant(1)
  ones = s32[33] broadcast(one), dimensions={}
  next = s32[33] add(i, ones)
  zero = s32[] constant(0)
  zeros = s32[33] broadcast(zero), dimensions={}
  is_negative = pred[33] compare(next, zeros), direction=LT
  n = s32[] constant(40)
  ns = s32[33] broadcast(n), dimensions={}
  from_end = s32[33] add(next, ns)
  place = s32[33] select(is_negative, from_end, next)
  places = s32[33,1] reshape(place)
  ROOT r = f32[33] gather(x, places), offset_dims={}, collapsed_slice_dims={0}, \
    start_index_map={0}, index_vector_dim=1, slice_sizes={1}
}
"""
_ENDS = """HloModule m
ENTRY main {
  x = f32[9,64] parameter(0)
  first = f32[9,1] slice(x), slice={[0:9], [0:1]}
  last = f32[9,1] slice(x), slice={[0:9], [63:64]}
  p = f32[9,66] concatenate(first, x, last), dimensions={1}
  before = f32[9,64] slice(p), slice={[0:9], [0:64]}
  after = f32[9,64] slice(p), slice={[0:9], [2:66]}
  ROOT r = f32[9,64] add(before, after)
}
"""


@pytest.mark.parametrize(
    ("text", "dims"), [(_NORMALISED, 40), (_ENDS, (9, 64))], ids=["indices", "ends"]
)
def test_nothing_is_chosen(text: str, dims: tuple[int, ...]) -> None:
    module = hlo.parse(text)
    for settings, dialect in (
        (threaded(Numerics.EXACT), OPENMP),
        (alone(Numerics.EXACT), EMBEDDED),
    ):
        source = "".join(render_plan(lowered(module, settings), dialect).sources.values())
        body = source[source.index("kernel_0(") :]
        assert (" ? " in body) == (text is _ENDS and dialect is EMBEDDED)
    if has_c_compiler():
        assert_same_bits(text, np.random.default_rng(0).standard_normal(dims, np.float32))


def test_what_may_be_either_stays() -> None:
    i = Variable(INDEX, "i1", 0, 63)
    k = Variable(S32, "v1")
    array, result = Array("a0", F32, 64), Array("r0", F32, 64, mutable=True)

    def body(limit: int) -> tuple[Let | Store, ...]:
        condition = Apply("compare-LT", (k, Constant(S32, limit)), PRED)
        chosen = Apply("select", (condition, Load(array, i), Constant(F32, 0.0)), F32)
        return Let(k, Apply("convert", (i,), S32)), Store(result, i, chosen)

    def decided(limit: int) -> object:
        (loop,) = with_decided_selects([Loop(i, Constant(INDEX, 64), "serial", body(limit))])
        assert isinstance(loop, Loop)
        return loop.body

    assert decided(63) == body(63)
    assert decided(64) == (Store(result, i, Load(array, i)),)
    assert decided(0) == (Store(result, i, Constant(F32, 0.0)),)
