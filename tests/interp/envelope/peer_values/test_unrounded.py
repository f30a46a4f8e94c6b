"""Programs in which narrow values stay in f32."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hlo
import interp
from interp.envelope.peer_values.unrounded import with_unrounded_values

BF16: Any = ml_dtypes.bfloat16
TEXT = """HloModule m
largest {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT m = bf16[] maximum(a, b)
}
body {
  s = (s32[], bf16[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = bf16[4] get-tuple-element(s), index=1
  y = bf16[4] multiply(x, x)
  z = bf16[4] subtract(y, x)
  ROOT t = (s32[], bf16[4]) tuple(j, z)
}
condition {
  s = (s32[], bf16[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  two = s32[] constant(2)
  ROOT c = pred[] compare(i, two), direction=LT
}
ENTRY e {
  x = bf16[4,6] parameter(0)
  w = bf16[6,4] parameter(1)
  d = bf16[4,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  f = f32[4,4] convert(d)
  h = f32[4,4] multiply(f, f)
  n = bf16[4,4] convert(h)
  a = bf16[4,4] add(n, d)
  lowest = bf16[] constant(-inf)
  m = bf16[4] reduce(a, lowest), dimensions={1}, to_apply=largest
  zero = s32[] constant(0)
  s = (s32[], bf16[4]) tuple(zero, m)
  l = (s32[], bf16[4]) while(s), condition=condition, body=body
  r = bf16[4] get-tuple-element(l), index=1
  ROOT g = f32[4] convert(r)
}
"""


def given() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(4, 6)).astype(BF16), rng.normal(size=(6, 4)).astype(BF16)


@pytest.mark.parametrize("between", [True, False])
def test_a_rewritten_program_is_valid_and_keeps_its_types(between: bool) -> None:
    module = hlo.parse(TEXT)
    found = with_unrounded_values(module, between=between)
    assert found is not None
    hlo.verify(found.module)
    shapes = {i.name: i.shape for c in module.computations for i in c.instructions}
    after = {i.name: i.shape for c in found.module.computations for i in c.instructions}
    assert {name: after[name] for name in shapes} == shapes
    whole = np.eye(4, 6).astype(BF16), np.eye(6, 4).astype(BF16)  # nothing is to be rounded
    one, other = (np.asarray(interp.evaluate(m, *whole)) for m in (module, found.module))
    assert np.array_equal(one, other)


def test_conversions_to_f32_read_the_sum_itself() -> None:
    """A conversion to f32 reads the sum before it is rounded, which is then computed of exact
    products."""
    text = TEXT.replace("ROOT g = f32[4] convert(r)", "ROOT g = f32[4,4] copy(f)")
    found = with_unrounded_values(hlo.parse(text), between=False)
    assert found is not None and ("e", "f") in found.conversions
    assert ("e", "d.unrounded") in found.sums
    x, w = given()
    result = np.asarray(interp.evaluate(found.module, x, w))
    exact = x.astype(np.float64) @ w.astype(np.float64)
    assert np.array_equal(result, exact.astype(np.float32))


def test_between_fused_instructions_nothing_is_rounded() -> None:
    """Nothing is rounded between fused instructions, but the result of a dot is: n is f32 of the
    unrounded f, added to the rounded d."""
    text = TEXT.replace("ROOT g = f32[4] convert(r)", "ROOT g = f32[4,4] convert(a)")
    x, w = given()
    d = x.astype(np.float64) @ w.astype(np.float64)
    f = d.astype(np.float32)
    rounded = f.astype(BF16).astype(np.float32)
    for between, n in ((True, f * f), (False, (f * f).astype(BF16).astype(np.float32))):
        found = with_unrounded_values(hlo.parse(text), between=between)
        assert found is not None
        result = np.asarray(interp.evaluate(found.module, x, w))
        assert np.array_equal(result, n + rounded)


def test_programs_without_narrow_values_are_left_alone() -> None:
    text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT r = f32[2] add(x, x) }"
    assert with_unrounded_values(hlo.parse(text), between=True) is None
