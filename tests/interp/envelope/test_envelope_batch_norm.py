"""Batch normalisation by another compiler."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
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
