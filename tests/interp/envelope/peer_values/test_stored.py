"""Layers of bf16, judged on what a compiler shows of each step, rounded as it is stored."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import hlo
import interp
from hlo.module import Module
from hlo.values import Array
from interp.envelope.budget import XLA_CPU
from interp.envelope.judgement import Judge
from interp.envelope.verdict import OUTSIDE, UNDETERMINED, WITHIN

K = 288
PRODUCT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
TEXT = f"""HloModule layers
ENTRY e {{
  x = bf16[4,{K}] parameter(0)
  w = bf16[{K},{K}] parameter(1)
  a = bf16[4,{K}] dot(x, w), {PRODUCT}
  b = bf16[4,{K}] tanh(a)
  c = bf16[4,{K}] dot(b, w), {PRODUCT}
  d = bf16[4,{K}] tanh(c)
  ROOT r = bf16[4,{K}] dot(d, w), {PRODUCT}
}}
"""
BF16: Any = ml_dtypes.bfloat16


def given() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, K)).astype(BF16)
    return x, (rng.normal(size=(K, K)) / K**0.5).astype(BF16)


def computed(error: float = 0.0) -> dict[str, Array]:
    """Compute each value as XLA does: sums in f32, and ``tanh`` of what is not rounded before.
    ``error`` is added to one element of ``c`` before what follows is computed of it."""
    x, w = given()
    values = {"x": x, "w": w}
    before = x
    for product, function in (("a", "b"), ("c", "d"), ("r", None)):
        wide = before.astype(np.float32) @ w.astype(np.float32)
        if product == "c":
            wide[0, 0] += np.float32(error)
        values[product] = wide.astype(BF16)
        if function is not None:
            before = values[function] = np.tanh(wide).astype(BF16)
    return values


def judged(values: dict[str, Array]) -> dict[str, int]:
    """Judge results that come with these values inside."""
    module = hlo.parse(TEXT)
    hlo.verify(module)
    exact = np.asarray(interp.evaluate(module, *given()))
    asked = []

    def run(other: Module) -> list[Array]:
        asked.append(other)
        root = other.entry.root_instruction
        return [values[name] for name in root.operands]

    judge = Judge(module, given(), [("", exact)], peer=XLA_CPU)
    found = judge.judged([values["r"]], run).counts
    assert asked
    return found


def test_results_of_legal_steps_are_within() -> None:
    found = judged(computed())
    assert found[WITHIN] > 0
    assert found[UNDETERMINED] == found[OUTSIDE] == 0


def test_an_illegal_step_makes_no_result_legal() -> None:
    """All of a row of ``r`` rests on that element, and follows from it by legal steps."""
    found = judged(computed(error=3.0))
    assert found[UNDETERMINED] + found[OUTSIDE] > K // 2
