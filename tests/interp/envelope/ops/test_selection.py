"""Iotas, and selects, by a compiler with types of its own."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from interp.envelope.budget import EXACT, XLA_CPU
from interp.envelope.evaluation import enclose
from interp.envelope.verdict import EQUAL, KINDS, OUTSIDE, kinds


@pytest.mark.parametrize(
    "element_type", ["bf16", "f16", "f8e3m4", "f8e5m2", "f8e4m3fn", "f4e2m1fn"]
)
def test_an_iota_may_stay_wide(element_type: str) -> None:
    """XLA makes an iota of f32 of a converted one of bf16: 257, where bf16 has 256 and 258."""
    module = hlo.parse(f"""HloModule m
ENTRY e {{
  i = {element_type}[3,3000] iota(), iota_dimension=1
  ROOT r = f32[3,3000] convert(i)
}}""")
    legal = enclose(module, peer=XLA_CPU).result
    numbers = np.arange(3000, dtype=np.float32)
    assert ((legal.low <= numbers) & (numbers <= legal.high) | legal.nan).all()
    literal = interp.evaluate(module)
    inside = (legal.low <= literal) & (literal <= legal.high)
    assert (inside | np.isnan(literal) & legal.nan).all()
    assert not legal.nan[:, :4].any() and (legal.high == legal.low)[:, :3].all()
    exact = enclose(module, peer=EXACT).result
    assert np.array_equal(exact.low, literal, equal_nan=True)


def test_a_select_may_flush_subnormals_and_keeps_all_else() -> None:
    """LLVM makes a minimum of a select by x > y, in a mode where subnormals are zeros."""
    module = hlo.parse("""HloModule m
ENTRY e {
  x = f64[5] parameter(0)
  y = f64[5] parameter(1)
  p = pred[5] compare(x, y), direction=GT
  ROOT s = f64[5] select(p, y, x)
}""")
    x = np.array([1.0, 5e-324, 1.0, 0.0, np.nan])
    y = np.array([-5e-324, 1.0, -0.0, 1.0, 1.0])
    legal = enclose(module, x, y, peer=XLA_CPU).result
    flushed = np.array([-0.0, 0.0, -0.0, 0.0, np.nan])
    found = kinds(flushed, interp.evaluate(module, x, y), legal)
    names = [KINDS[kind] for kind in found]
    assert OUTSIDE not in names and names[2:] == [EQUAL] * 3
    other = kinds(np.array([0.5, -0.5, 0.0, -0.0, 1.0]), interp.evaluate(module, x, y), legal)
    assert {KINDS[kind] for kind in other} == {OUTSIDE}
