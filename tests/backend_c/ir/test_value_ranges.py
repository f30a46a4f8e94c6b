"""Check by which sequences sine and cosine are computed, from what is known of their operands."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
from backend_c.ir.settings import Numerics, Settings
from backend_c.pipeline import lowered
from backend_c.render.dialect import EMBEDDED, OPENMP
from backend_c.render.translation_units import render_plan

_SINE = """HloModule m
ENTRY main {{
  x = {1}[6] parameter(0)
  y = {1}[6] parameter(1)
  {0}
  ROOT r = {1}[6] sine(a)
}}
"""
_BITS = """HloModule m
ENTRY main {
  w = u32[6] parameter(0)
  n = u32[] constant(9)
  shift = u32[6] broadcast(n), dimensions={}
  drawn = u32[6] shift-right-logical(w, shift)
  e = u32[] constant(1065353216)
  one = u32[6] broadcast(e), dimensions={}
  word = u32[6] or(drawn, one)
  u = f32[6] bitcast-convert(word)
  t = f32[] constant(6.2831855)
  turn = f32[6] broadcast(t), dimensions={}
  a = f32[6] multiply(u, turn)
  ROOT r = f32[6] cosine(a)
}
"""


def _text(text: str, dialect: object = OPENMP, numerics: Numerics = Numerics.FAST) -> str:
    plan = lowered(hlo.parse(text), Settings(numerics))
    return "".join(render_plan(plan, dialect).sources.values())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("operand", "sequence"),
    [
        ("a = f32[6] sine(x)", "unit"),
        ("a = f32[6] tanh(x)", "unit"),
        ("s = f32[6] logistic(x)\n  t = f32[6] tanh(y)\n  a = f32[6] multiply(s, t)", "unit"),
        ("s = f32[6] tanh(x)\n  t = f32[6] tanh(y)\n  a = f32[6] add(s, t)", "near"),
        ("s = f32[6] tanh(x)\n  a = f32[6] multiply(s, y)", "all"),
        ("s = f32[6] tanh(x)\n  a = f32[6] divide(s, s)", "all"),
        ("s = f32[6] iota(), iota_dimension=0\n  a = f32[6] negate(s)", "near"),
        ("a = f32[6] maximum(x, y)", "all"),
        ("s = f32[6] cosine(y)\n  t = f32[6] sine(x)\n  a = f32[6] minimum(s, t)", "unit"),
        ("a = f32[6] clamp(y, x, y)", "all"),
    ],
)
def test_small_operands_are_recognised(operand: str, sequence: str) -> None:
    body = _text(_SINE.format(operand, "f32"), EMBEDDED)  # which has no loops in two versions
    found = {one for one in ("unit", "near") if f"hlo_sine_{one}_fast(" in body}
    assert found == {sequence} - {"all"}


def test_operands_of_f64_have_bounds_of_their_own() -> None:
    small = _text(_SINE.format("a = f64[6] exponential(x)", "f64"), EMBEDDED)
    assert "hlo_sine_f64_fast(" in small
    small = _text(_SINE.format("a = f64[6] cosine(x)", "f64"), EMBEDDED)
    assert "hlo_cosine_f64_fast(" in small
    assert "= hlo_sine_near_f64_fast(" in small and "hlo_sine_f64_fast(" not in small


def test_words_that_become_floats_are_bounded() -> None:
    assert "hlo_cosine_near_fast(" in _text(_BITS, EMBEDDED)


def test_of_narrow_types_only_those_kept_in_f32_have_bounds() -> None:
    operand = "s = {0}[6] tanh(x)\n  a = {0}[6] negate(s)"
    assert "sine_unit_fast" in _text(_SINE.format(operand.format("bf16"), "bf16"))
    assert "sine_unit_fast" not in _text(_SINE.format(operand.format("f8e5m2"), "f8e5m2"))


def test_exact_numerics_have_one_sequence() -> None:
    text = _text(_SINE.format("a = f32[6] tanh(x)", "f32"), numerics=Numerics.EXACT)
    assert "unit" not in text and "near" not in text


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("elements", [5, 1024, 2500])
def test_blocks_with_large_operands_are_computed_again(elements: int) -> None:
    module = hlo.parse(
        f"""HloModule m
ENTRY main {{
  x = f32[{elements}] parameter(0)
  s = f32[{elements}] sine(x)
  c = f32[{elements}] cosine(x)
  ROOT r = f32[{elements}] subtract(s, c)
}}
"""
    )
    x = np.linspace(-1600, 1600, elements).astype(np.float32)
    x[[0, elements // 2, -1]] = [1e30, np.inf, np.nan]
    found = np.asarray(backend_c.compile(module, numerics="fast")(x))
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
        wanted = np.sin(wide) - np.cos(wide)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2.0**-22)


def test_loops_that_read_what_they_store_or_sum_have_one_version() -> None:
    total = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[5000] parameter(0)
  s = f32[5000] sine(x)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(s, z), dimensions={0}, to_apply=add
}
"""
    assert "sine_near" not in _text(total)
    assert "sine_near" in _text(_SINE.format("a = f32[6] add(x, y)", "f32"))
