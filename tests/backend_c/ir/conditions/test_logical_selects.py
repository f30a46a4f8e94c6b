"""Selects of preds are logic, of which compilers make vectors."""

from __future__ import annotations

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import hlo
from backend_c.ir.conditions.logical_selects import with_logical_selects
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Let,
    Load,
    Store,
    Variable,
    expressions,
    subexpressions,
)
from backend_c.ir.settings import Numerics, Settings
from backend_c.pipeline import lowered
from hlo.types import F32, PRED

_CHAIN = """HloModule m
ENTRY e {
  x = f32[37] parameter(0)
  m = pred[37] parameter(1)
  k = pred[37] parameter(2)
  t = f32[37] tanh(x)
  a = pred[37] compare(m, k), direction=GT
  b = pred[37] compare(x, t), direction=LT
  c = pred[37] select(b, m, k)
  d = pred[37] select(c, a, b)
  n = pred[37] not(d)
  e = pred[37] select(n, c, m)
  s = f32[37] select(e, t, x)
  ROOT r = (f32[37], pred[37]) tuple(s, e)
}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_chains_have_the_bits_of_the_interpreter() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(37).astype(np.float32)
    x[:3] = np.nan, np.inf, -0.0
    assert_same_bits(_CHAIN, x, rng.random(37) < 0.5, rng.random(37) < 0.5)


@pytest.mark.parametrize("numerics", Numerics)
def test_no_pred_is_selected(numerics: Numerics) -> None:
    plan = lowered(hlo.parse(_CHAIN), Settings(numerics))
    found = [
        part
        for kernel in plan.kernels
        for loop in kernel.body
        for statement in getattr(loop, "body", ())
        for expression in expressions(statement)
        for part in subexpressions(expression)
        if isinstance(part, Apply) and part.operation == "select"
    ]
    assert found and all(part.type is not PRED for part in found)


def test_conditions_are_bound_once() -> None:
    """Nested conditions would double at each level."""
    x, r = Array("a0", F32, 9), Array("r0", PRED, 9, mutable=True)
    lane = Variable(INDEX, "i1", 0, 8)
    value: Apply = Apply("compare-LT", (Load(x, lane), Load(x, lane)), PRED)
    for _ in range(40):
        value = Apply("select", (value, Variable(PRED, "p"), Variable(PRED, "q")), PRED)
    body = with_logical_selects((Store(r, lane, value),))
    assert len(body) == 41 and all(isinstance(s, Let) for s in body[:-1])
    assert sum(1 for s in body for e in expressions(s) for _ in subexpressions(e)) < 500
