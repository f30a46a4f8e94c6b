"""XLA gets what JAX gave it: broadcasts of dimensions of size 1 are no three instructions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import hlo
import interp
from fuzz.peers import literal_import
from fuzz.peers.literal_import import imported
from hlo_oracle.frontends.jax_functions import text_of

pytest.importorskip("jaxlib")

_QUOTIENT = """HloModule m
f {
  wide = f32[4,1] parameter(0)
  row = f32[4] reshape(wide)
  ROOT same = f32[4,9] broadcast(row), dimensions={0}
}
ENTRY e {
  x = f32[4,9] parameter(0)
  y = f32[4,1] parameter(1)
  wide = f32[4,1] broadcast(y), dimensions={0,1}
  row = f32[4] reshape(wide), metadata={op_name="jit(f)/div{1}"}
  all = f32[4,9] broadcast(row), dimensions={0}, metadata={op_name="jit(f)/div{1}"}
  q = f32[4,9] divide(x, all)
  other = f32[4,9] call(wide), to_apply=f
  ROOT both = (f32[4,9], f32[4,9]) tuple(q, other)
}
"""


def _broadcasts(program: str) -> list[tuple[str, str, str]]:
    """List the dimensions and types of the broadcasts that do something, in order."""
    form = r"broadcast_in_dim %\w+, dims = \[([\d, ]*)\] : \(tensor<(\w+)>\) -> tensor<(\w+)>"
    return sorted(one for one in re.findall(form, program) if one[1] != one[2])


def test_three_instructions_become_one_broadcast() -> None:
    program = imported(_QUOTIENT)
    assert "custom_call" not in program
    # In the call the first is a parameter: there nothing says that they belong together.
    assert _broadcasts(program) == [("0", "4xf32", "4x9xf32"), ("0, 1", "4x1xf32", "4x9xf32")]


def test_what_is_imported_is_what_jax_lowered() -> None:
    jax = pytest.importorskip("jax")

    def scaled(x: object) -> object:
        return x / jax.numpy.max(x, -1, keepdims=True) - jax.numpy.mean(x, 0, keepdims=True)

    lowered = jax.jit(scaled).lower(np.ones((4, 9), np.float32))
    text = text_of(lowered)
    both = [_broadcasts(program) for program in (lowered.as_text(), imported(text))]
    widened = [[one for one in found if one[0] == "0, 1"] for found in both]
    assert (
        widened[0] == widened[1] == [("0, 1", "1x9xf32", "4x9xf32"), ("0, 1", "4x1xf32", "4x9xf32")]
    )


def test_other_texts_are_imported_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(literal_import, "_import", lambda text: asked.append(text) or "")
    turned = _QUOTIENT.replace("f32[4,1]", "f32[9,4]").replace("f32[4] ", "f32[9,4] ")
    turned = turned.replace("(row), dimensions={0}", "(row), dimensions={1,0}")
    for text in (turned, "", "HloModule m\n", "{}}}\n} ="):
        imported(text)
    assert asked == [turned, "", "HloModule m\n", "{}}}\n} ="]


@st.composite
def _programs(draw: st.DrawFn) -> tuple[str, np.ndarray]:
    """Draw a broadcast, a reshape and a broadcast, which may be those of a broadcast_in_dim."""
    wide = tuple(draw(st.lists(st.sampled_from((1, 2)), min_size=1, max_size=3)))
    axes = sorted(draw(st.sets(st.integers(0, len(wide) - 1))))
    dropped = draw(st.sets(st.sampled_from([n for n, d in enumerate(wide) if d == 1] or [None])))
    narrow = [d for n, d in enumerate(wide) if n not in dropped]
    order = [n for n in range(len(wide)) if n not in dropped]
    if draw(st.booleans()):
        order = draw(st.permutations(range(len(wide))))[: len(narrow)]
    last = [draw(st.sampled_from((1, 2))) for _ in wide]
    for n, d in zip(order, narrow, strict=True):
        last[n] = d
    x = np.arange(np.prod([wide[n] for n in axes], dtype=int), dtype=np.float32)
    x = x.reshape([wide[n] for n in axes])

    def shape(dims: object) -> str:
        return f"f32[{','.join(map(str, dims))}]"

    return (
        f"HloModule m\nENTRY e {{\n  x = {shape(x.shape)} parameter(0)\n"
        f"  a = {shape(wide)} broadcast(x), dimensions={{{','.join(map(str, axes))}}}\n"
        f"  b = {shape(narrow)} reshape(a)\n"
        f"  ROOT c = {shape(last)} broadcast(b), dimensions={{{','.join(map(str, order))}}}\n}}\n"
    ), x


@given(_programs())
def test_one_broadcast_is_what_the_three_are(drawn: tuple[str, np.ndarray]) -> None:
    text, x = drawn
    marked = literal_import._marked(text)
    note(marked)
    if marked == text:
        return
    over = re.search(r'custom-call\(%x\), .*backend_config="([\d, ]*)"', marked)
    module = hlo.parse(text)
    dims = module.entry.root_instruction.shape.dims
    axes = [int(n) for n in over[1].split(", ") if n]
    whole = np.ones(len(dims), int)
    whole[axes] = x.shape
    assert np.array_equal(interp.evaluate(module, x), np.broadcast_to(x.reshape(whole), dims))
