"""Lowering a loop takes time in proportion to its state."""

from __future__ import annotations

from cost import python_calls

import hlo
from backend_c.ir.settings import Numerics, threaded
from backend_c.lower.lowering import lower
from hlo.module import Module
from hlo.passes import run


def _shift_register(elements: int) -> Module:
    """Return a loop in each trip of which every element of the state becomes the next."""
    state = f"(s32[], {', '.join(['f32[3]'] * elements)})"
    parts = "\n".join(f"g{n} = f32[3] get-tuple-element(s), index={n + 1}" for n in range(elements))
    given = "\n".join(f"p{n} = f32[3] parameter({n})" for n in range(elements))
    kept = "".join(f", g{n}" for n in range(elements - 1))
    text = f"""HloModule m
    condition {{ s = {state} parameter(0)
      n = s32[] get-tuple-element(s), index=0
      limit = s32[] constant(5)
      ROOT less = pred[] compare(n, limit), direction=LT }}
    body {{ s = {state} parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      more = s32[] add(n, one)
      {parts}
      first = f32[3] sine(g{elements - 1})
      ROOT t = {state} tuple(more, first{kept}) }}
    ENTRY main {{ zero = s32[] constant(0)
      {given}
      t = {state} tuple(zero, {", ".join(f"p{n}" for n in range(elements))})
      ROOT w = {state} while(t), condition=condition, body=body }}"""
    return run(hlo.parse(text), "backend_c")


def test_the_cost_is_linear_in_the_state() -> None:
    small, large = map(_shift_register, (40, 80))
    settings = threaded(Numerics.EXACT)
    assert python_calls(lambda: lower(large, settings)) < 3 * python_calls(
        lambda: lower(small, settings)
    )
