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
from interp.envelope.verdict import OUTSIDE, UNDETERMINED

K = 288
PRODUCT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
TEXT = f"""HloModule layers
ENTRY e {{
  x = bf16[4,{K}] parameter(0)
  w = bf16[{K},{K}] parameter(1)
  a0 = bf16[4,{K}] dot(x, w), {PRODUCT}
  t0 = bf16[4,{K}] multiply(a0, a0)
  b0 = bf16[4,{K}] subtract(t0, x)
  a1 = bf16[4,{K}] dot(b0, w), {PRODUCT}
  t1 = bf16[4,{K}] multiply(a1, a1)
  ROOT b1 = bf16[4,{K}] subtract(t1, b0)
}}
"""
BF16: Any = ml_dtypes.bfloat16


def given() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, K)).astype(BF16)
    return x, (rng.normal(size=(K, K)) / K**0.5).astype(BF16)


def computed(error: float = 0.0) -> dict[str, Array]:
    """Compute each value as XLA does: sums in f32, what follows in one loop of what is not rounded
    before. ``error`` is added to one element of ``b0``, before what follows is computed of it."""
    x, w = given()
    values = {"x": x, "w": w}
    before = x
    for layer in "01":
        a = before.astype(np.float32) @ w.astype(np.float32)
        t = a * a
        b = t - before.astype(np.float32)
        if layer == "0":
            b[0, 0] += np.float32(error)
        for name, value in (("a", a), ("t", t), ("b", b)):
            values[name + layer] = value.astype(BF16)
        before = values["b" + layer]
    return values


def judged(values: dict[str, Array]) -> dict[str, int]:
    """Count the verdicts on results that come with these values inside."""
    module = hlo.parse(TEXT)
    hlo.verify(module)
    exact = np.asarray(interp.evaluate(module, *given()))

    def run(other: Module) -> list[Array]:
        return [values[name] for name in other.entry.root_instruction.operands]

    judge = Judge(module, given(), [("", exact)], peer=XLA_CPU)
    return judge.judged([values["b1"]], run).counts


def test_results_of_legal_steps_are_determined() -> None:
    """A few are undetermined: differences of nearly equal numbers."""
    found = judged(computed())
    assert (
        found[UNDETERMINED] < K * 4 // 100
    )  # 448 if operands may be anything beside what is shown
    assert found[OUTSIDE] == 0


def test_an_illegal_step_makes_no_result_legal() -> None:
    """A row of results rests on that element, and follows from it by legal steps."""
    found = judged(computed(error=3.0))
    assert found[UNDETERMINED] + found[OUTSIDE] > K // 2
