"""Batch normalisation by another compiler."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from hlo.types import ELEMENT_TYPES
from interp.envelope.budget import EXACT, XLA_CPU
from interp.envelope.evaluation import enclose

OPS = {
    "training": ("(f32[9,4,3], f32[3], f32[3])", "x, s, t"),
    "inference": ("f32[9,4,3]", "x, s, t, m, v"),
    "grad": ("(f32[9,4,3], f32[3], f32[3])", "x, s, m, v, g"),
}


def parts(value: object) -> tuple:  # type: ignore[type-arg]
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("op", OPS)
def test_close_around_the_exact_result(op: str) -> None:
    shape, operands = OPS[op]
    module = hlo.parse(f"""HloModule m
ENTRY e {{
  x = f32[9,4,3] parameter(0)
  s = f32[3] parameter(1)
  t = f32[3] parameter(2)
  m = f32[3] parameter(3)
  v = f32[3] parameter(4)
  g = f32[9,4,3] parameter(5)
  ROOT r = {shape} batch-norm-{op}({operands}), epsilon=0.001, feature_index=2
}}""")
    rng = np.random.default_rng(0)
    large = [rng.standard_normal((9, 4, 3), np.float32) for _ in range(2)]
    small = [rng.uniform(1, 2, 3).astype(np.float32) for _ in range(4)]
    arguments = (large[0], *small, large[1])
    exact = parts(interp.evaluate(module, *arguments))
    for legal, value in zip(
        parts(enclose(module, *arguments, peer=XLA_CPU).result), exact, strict=True
    ):
        assert ((legal.low <= value) & (value <= legal.high)).all()
        assert (legal.high - legal.low <= 1e-4 * np.maximum(np.abs(value), 1)).all()
    for legal, value in zip(
        parts(enclose(module, *arguments, peer=EXACT).result), exact, strict=True
    ):
        assert (legal.low == value).all() and (legal.high == value).all()


@pytest.mark.parametrize("element_type", ["f8e3m4", "f8e4m3fn", "f8e5m2", "f4e2m1fn", "bf16"])
@pytest.mark.parametrize("count", [5, 16, 17, 257, 600])
def test_a_number_of_elements_that_stays_wide_is_legal(element_type: str, count: int) -> None:
    """The mean of ones is 1, although in f8e3m4 sixteen of them are infinitely many."""
    module = hlo.parse(
        f"""HloModule m
ENTRY e {{
  x = {element_type}[{count}] parameter(0)
  s = {element_type}[1] parameter(1)
  r = ({element_type}[{count}], {element_type}[1], {element_type}[1])
    batch-norm-training(x, s, s), epsilon=0.5, feature_index=0
  ROOT mean = {element_type}[1] get-tuple-element(r), index=1
}}""".replace(f"[{count}]", f"[{count},1]").replace("feature_index=0", "feature_index=1")
    )
    dtype = ELEMENT_TYPES[element_type].numpy
    legal = enclose(module, np.ones((count, 1), dtype), np.ones(1, dtype), peer=XLA_CPU).result
    assert legal.low.astype(np.float64) <= 1 <= legal.high.astype(np.float64)
