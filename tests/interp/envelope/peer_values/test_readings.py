"""Layers of bf16, judged on what a compiler shows of each step: rounded, or unrounded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

import hlo
import interp
from hlo.module import Module
from hlo.values import Array
from interp.envelope.budget import XLA_CPU, Budget
from interp.envelope.judgement import Judge
from interp.envelope.verdict import OUTSIDE, UNDETERMINED, WITHIN

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


def judged(
    values: dict[str, Array], text: str = TEXT, root: str = "b1", peer: Budget = XLA_CPU
) -> dict[str, int]:
    """Count the verdicts on results that come with these values inside."""
    module = hlo.parse(text)
    hlo.verify(module)
    arguments = [values[p.name] for p in module.entry.parameters]
    exact = np.asarray(interp.evaluate(module, *arguments))

    def run(other: Module) -> list[Array]:
        return [values[name] for name in other.entry.root_instruction.operands]

    judge = Judge(module, arguments, [("", exact)], peer=peer)
    return judge.judged([values[root]], run).counts


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


ATTENTION = """HloModule attention
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  q = bf16[12,8] parameter(0)
  k = bf16[8,12] parameter(1)
  d = bf16[12,12] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  f = f32[12,12] convert(d)
  x = f32[12,12] exponential(f)
  zero = f32[] constant(0)
  n = f32[12] reduce(x, zero), dimensions={1}, to_apply=sum
  m = f32[12,12] broadcast(n), dimensions={0}
  p = f32[12,12] divide(x, m)
  t = f32[12] reduce(p, zero), dimensions={0}, to_apply=sum
  u = f32[12,12] broadcast(t), dimensions={1}
  ROOT r = f32[12,12] divide(p, u)
}
"""


def attention(error: float = 0.0) -> dict[str, Array]:
    """Compute each value as XLA does, which goes on from the product to f32 unrounded: ``f`` is
    shown as the rounded one. ``error`` is relative, of one exponential."""
    rng = np.random.default_rng(1)
    q, k = ((2 * rng.normal(size=dims)).astype(BF16) for dims in ((12, 8), (8, 12)))
    wide = q.astype(np.float32) @ k.astype(np.float32)
    x = np.exp(wide)
    x[0, 0] *= np.float32(1 + error)
    n = x.sum(1)
    p = x / n[:, None]
    t = p.sum(0)
    d = wide.astype(BF16)
    values = {"q": q, "k": k, "d": d, "f": d.astype(np.float32), "x": x, "n": n, "p": p, "t": t}
    spread = {"m": np.broadcast_to(n[:, None], p.shape), "u": np.broadcast_to(t, p.shape)}
    return {**values, **spread, "r": p / t}


def test_what_follows_from_unrounded_values_is_determined() -> None:
    """Values that follow from unrounded ones are determined; half are not if operands may be
    anything beside the shown values, or are as shown."""
    found = judged(attention(), ATTENTION, "r")
    assert found[UNDETERMINED] == found[OUTSIDE] == 0


def test_an_error_beside_an_unrounded_value_is_not_legal() -> None:
    """Rounding a product of 10 to bf16 moves its exponential by 2 %; this is 0.1 %."""
    found = judged(attention(error=1e-3), ATTENTION, "r")
    assert found[UNDETERMINED] + found[OUTSIDE] > 0


def test_unrounded_values_are_for_those_who_may_keep_them() -> None:
    found = judged(attention(), ATTENTION, "r", replace(XLA_CPU, keeps_wide=False))
    assert found[UNDETERMINED] + found[OUTSIDE] > 0


CONVERTED = f"""HloModule converted
sum {{
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT s = bf16[] add(a, b)
}}
ENTRY e {{
  x = bf16[4,{K}] parameter(0)
  w = bf16[{K},{K}] parameter(1)
  a = bf16[4,{K}] dot(x, w), {PRODUCT}
  t = bf16[4,{K}] multiply(a, a)
  b = bf16[4,{K}] subtract(t, x)
  zero = bf16[] constant(0)
  s = bf16[4] reduce(t, zero), dimensions={{1}}, to_apply=sum
  m = bf16[4,{K}] broadcast(s), dimensions={{0}}
  q = bf16[4,{K}] multiply(m, x)
  f = f32[4,{K}] convert(q)
  g = f32[4,{K}] sine(f)
  h = bf16[4,{K}] convert(g)
  c = bf16[4,{K}] dot(b, w), {PRODUCT}
  u = bf16[4,{K}] multiply(c, h)
  d = bf16[4,{K}] subtract(u, b)
  ROOT r = f32[4,{K}] convert(d)
}}
"""


def converted(error: float = 0.0) -> dict[str, Array]:
    """Round each step, also of the sum, but not before conversions to f32. ``error`` is added to
    one row of ``q``."""
    x, w = given()
    a = (x.astype(np.float32) @ w.astype(np.float32)).astype(BF16)
    t = a * a
    b = t - x
    s = np.add.accumulate(t, axis=1)[:, -1]
    f = s.astype(np.float32)[:, None] * x.astype(np.float32)
    f[0] += np.float32(error)
    h = np.sin(f).astype(BF16)
    c = (b.astype(np.float32) @ w.astype(np.float32)).astype(BF16)
    u = c * h
    values = {"x": x, "w": w, "a": a, "t": t, "b": b, "s": s, "q": f.astype(BF16), "f": f}
    values["m"] = np.broadcast_to(s[:, None], x.shape)
    rest = {"g": np.sin(f), "h": h, "c": c, "u": u, "d": u - b}
    return {**values, **rest, "r": u.astype(np.float32) - b.astype(np.float32)}


def test_what_is_unrounded_before_conversions_alone_is_determined() -> None:
    """The sum is legal as its steps are rounded, ``f`` as ``q`` is not, on that sum, and the result
    as ``d`` is not, on those."""
    found = judged(converted(), CONVERTED, "r")
    assert found[OUTSIDE] == 0
    assert found[UNDETERMINED] < K * 4 // 100


def test_an_error_before_a_conversion_makes_no_result_legal() -> None:
    found = judged(converted(error=30.0), CONVERTED, "r")
    assert found[UNDETERMINED] + found[OUTSIDE] > K // 2


ANGLES = f"""HloModule angles
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[4,{K}] parameter(0)
  n = f32[4] parameter(1)
  zero = f32[] constant(0)
  d = f32[4] reduce(x, zero), dimensions={{1}}, to_apply=sum
  a = f32[4] atan2(d, n)
  ROOT r = f32[4] exponential(a)
}}
"""


def angles(sign: int) -> dict[str, Array]:
    """Add up numbers that cancel, take the angle of the zero beside a negative number, and its
    exponential one unit off."""
    half = np.random.default_rng(0).normal(size=(4, K // 2)).astype(np.float32)
    x = np.concatenate([half, -half[:, ::-1]], axis=1)
    a = np.full(4, sign * np.pi, np.float32)
    values = {"x": x, "n": np.full(4, -1, np.float32), "d": np.zeros(4, np.float32), "a": a}
    return {**values, "r": np.nextafter(np.exp(a), np.float32(np.inf))}


def test_zeros_that_are_shown_have_the_sign_that_is_shown() -> None:
    """Beside a branch cut a zero that may be a flushed subnormal of either sign opens the angle."""
    assert judged(angles(1), ANGLES, "r")[WITHIN] == 4
    found = judged(angles(-1), ANGLES, "r")
    assert found[UNDETERMINED] == 4
