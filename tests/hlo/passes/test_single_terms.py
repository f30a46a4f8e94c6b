"""Reductions of one element each are the operation that they apply."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from hlo.passes.single_terms import single_terms
from hlo.types import ELEMENT_TYPES
from hlo.values import Array

_TEXT = """HloModule m
c {{
  a = {type}[] parameter(0)
  b = {type}[] parameter(1)
  {combined}
}}
ENTRY e {{
  x = {type}[{dims}] parameter(0)
  init = {type}[] constant({init})
  ROOT r = {type}[{result}] reduce(x, init), dimensions={{{reduced}}}, to_apply=c
}}
"""


def reduction(**changes: str) -> hlo.Module:
    usual = {
        "type": "f32", "combined": "ROOT r = f32[] add(a, b)", "dims": "5,1,3", "init": "0",
        "result": "5,3", "reduced": "1",
    }  # fmt: skip
    module = hlo.parse(_TEXT.format_map({**usual, **changes}))
    hlo.verify(module)
    return module


def drawn(module: hlo.Module) -> Array:
    (parameter,) = module.entry.parameters
    shape = parameter.shape
    assert isinstance(shape, hlo.types.ArrayShape)
    whole = np.random.default_rng(0).integers(-3, 3, shape.dims)
    values = whole.astype(ELEMENT_TYPES[shape.element_type.name].numpy)
    if values.size and shape.element_type.is_float:
        values.flat[0] = -0.0
    return values


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"init": "2"},
        {"init": "-0"},
        {"combined": "ROOT r = f32[] maximum(b, a)", "init": "-1"},
        {"combined": "ROOT r = f32[] multiply(a, b)", "init": "1"},
        {"type": "s32", "combined": "ROOT r = s32[] xor(a, b)", "init": "5"},
        {"type": "pred", "combined": "ROOT r = pred[] and(a, b)", "init": "true"},
        {"type": "bf16", "combined": "ROOT r = bf16[] add(a, b)", "init": "0.3"},
        {"dims": "5,3", "result": "5,3", "reduced": ""},
        {"dims": "1,1", "result": "", "reduced": "0,1"},
        {"dims": "0,1", "result": "0", "reduced": "1"},
    ],
)
def test_of_one_element_each(changes: dict[str, str]) -> None:
    """Reductions of one element each become elementwise, and keep every bit, also the sign of 0 +
    -0."""
    module = reduction(**changes)
    changed = single_terms(module)
    hlo.verify(changed)
    assert not any(i.opcode == "reduce" for i in changed.entry.instructions)
    x = drawn(module)
    before, after = (np.asarray(interp.evaluate(m, x)) for m in (module, changed))
    assert (before.dtype, before.shape) == (after.dtype, after.shape)
    assert before.tobytes() == after.tobytes()


@pytest.mark.parametrize(
    "changes",
    [
        {"dims": "5,2,3"},
        {"dims": "5,0,3"},
        {"combined": "n = f32[] negate(a)\n  ROOT r = f32[] add(n, b)"},
        {"dims": "<=5,1,3", "result": "<=5,3"},
    ],
)
def test_other_reductions_stay(changes: dict[str, str]) -> None:
    module = reduction(**changes)
    assert single_terms(module) == module
