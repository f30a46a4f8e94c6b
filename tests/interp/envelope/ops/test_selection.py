"""Iotas, and selects, by a compiler with types of its own."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from interp.envelope.budget import EXACT, XLA_CPU
from interp.envelope.enclosure import Enclosure, contains, point
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


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("compare(x, y), direction=LT, type=TOTALORDER", (True, False)),
        ("compare(y, x), direction=LT, type=TOTALORDER", (True, False)),
        ("reduce-precision(x), exponent_bits=8, mantissa_bits=0", (1.0, 2.0, np.inf)),
    ],
)
def test_a_nan_beside_numbers_has_its_own_exact_result(
    line: str, values: tuple[float, ...]
) -> None:
    """A number from 1 to 2, or a NaN of either sign, under the budget that permits nothing."""
    x = Enclosure(np.float32([1.0]), np.float32([2.0]), np.array([True]))
    y = point(np.float32([5.0]))
    shape = "pred[1]" if "compare" in line else "f32[1]"
    parameters = "x = f32[1] parameter(0)\n  y = f32[1] parameter(1)"
    module = hlo.parse(f"HloModule m\nENTRY e {{\n  {parameters}\n  ROOT r = {shape} {line}\n}}")
    legal = enclose(module, x, y, peer=EXACT).result
    for value in values:
        assert contains(legal, np.array([value], legal.low.dtype)).all()
    assert not legal.nan.any()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_single_nan_has_one_exact_result(sign: int) -> None:
    module = hlo.parse("""HloModule m
ENTRY e {
  x = f32[1] parameter(0)
  z = f32[1] constant({5})
  c = pred[1] compare(x, z), direction=LT, type=TOTALORDER
  p = f32[1] reduce-precision(x), exponent_bits=8, mantissa_bits=0
  ROOT t = (pred[1], f32[1]) tuple(c, p)
}""")
    x = np.copysign(np.float32([np.nan]), np.float32(sign))
    for legal, exact in zip(
        enclose(module, x, peer=EXACT).result, interp.evaluate(module, x), strict=True
    ):
        assert legal.low == legal.high == exact and not legal.nan.any()
