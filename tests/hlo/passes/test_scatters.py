"""Scatters of one window become updates of a slice: the same elements, in and out of bounds."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from hlo.passes.scatters import scatters

_COMPUTATIONS = {
    "set": "ROOT r = T[] parameter(1)\n unused = T[] parameter(0)",
    "add": "a = T[] parameter(0)\n b = T[] parameter(1)\n ROOT r = T[] add(a, b)",
    "less": "a = T[] parameter(0)\n b = T[] parameter(1)\n ROOT r = T[] subtract(b, a)",
    "keep": "ROOT r = T[] parameter(0)\n unused = T[] parameter(1)",
}
# operand, update, and the dimension numbers of a window in it
_WINDOWS = {
    "a block": ("5,7", "2,3", "update_window_dims={0,1}, inserted_window_dims={}"),
    "a row": ("5,7", "7", "update_window_dims={0}, inserted_window_dims={0}"),
    "part of a column": ("5,7", "3", "update_window_dims={0}, inserted_window_dims={1}"),
    "an element": ("5,7", "", "update_window_dims={}, inserted_window_dims={0,1}"),
    "all": ("5,7", "5,7", "update_window_dims={0,1}, inserted_window_dims={}"),
}


def _module(window: str, computation: str, element_type: str, index_type: str) -> hlo.Module:
    operand, update, numbers = _WINDOWS[window]
    body = _COMPUTATIONS[computation].replace("T[", f"{element_type}[")
    return hlo.parse(f"""HloModule m
f {{ {body} }}
ENTRY e {{ x = {element_type}[{operand}] parameter(0)
  i = {index_type}[2] parameter(1)
  u = {element_type}[{update}] parameter(2)
  ROOT r = {element_type}[{operand}] scatter(x, i, u), {numbers},
    scatter_dims_to_operand_dims={{1,0}}, index_vector_dim=0, to_apply=f }}""")


@pytest.mark.parametrize("window", _WINDOWS)
@pytest.mark.parametrize("computation", _COMPUTATIONS)
@pytest.mark.parametrize(("element_type", "index_type"), [("f32", "s32"), ("bf16", "u64")])
def test_the_same_elements(
    window: str, computation: str, element_type: str, index_type: str
) -> None:
    module = _module(window, computation, element_type, index_type)
    rewritten = scatters(module)
    hlo.verify(rewritten)
    assert not any(i.opcode == "scatter" for i in rewritten.entry.instructions)
    kind = hlo.types.ELEMENT_TYPES[element_type].numpy
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 7)).astype(kind)
    u = rng.normal(size=module.entry.parameters[2].shape.dims).astype(kind)
    x[0, 0] = -0.0
    index = hlo.types.ELEMENT_TYPES[index_type].numpy
    for start in [(0, 0), (1, 2), (4, 3), (6, 4), (7, 0), (0, 5), (-1, 0), (2, -1), (2**31 - 1, 0)]:
        i = np.array(start).astype(index)
        before, after = (interp.evaluate(m, x, i, u) for m in (module, rewritten))
        assert before.tobytes() == after.tobytes(), start


def test_scatters_of_several_windows_stay() -> None:
    text = str(hlo.format(_module("a row", "add", "f32", "s32")))
    several = text.replace("s32[2]", "s32[2,2]").replace("f32[7]{0} p", "f32[7,2]{1,0} p")
    several = several.replace("f32[7] p", "f32[7,2] p").replace("s32[2,2]{0}", "s32[2,2]{1,0}")
    module = hlo.parse(several)
    hlo.verify(module)
    assert scatters(module).entry.instructions == module.entry.instructions
