"""Large states of loops change places with what the next ones are computed into."""

from __future__ import annotations

import numpy as np
import pytest
from against_interp import assert_same_bits

import hlo
from backend_c.lower.exchanges import with_exchanges
from backend_c.lower.plan import Copy, Exchange, Repeat, in_order
from backend_c.pipeline import lowered

_LOOP = """HloModule m
more {{ s = (s32[], f32[600], f32[600]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({trips})
  ROOT l = pred[] compare(i, n), direction=LT }}
step {{ s = (s32[], f32[600], f32[600]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[600] get-tuple-element(s), index=1
  b = f32[600] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  r = f32[600] reverse(a), dimensions={{0}}
  c = f32[600] add(r, b)
  d = f32[600] {other}
  ROOT t = (s32[], f32[600], f32[600]) tuple(j, c, d) }}
inner {{ p = f32[600] parameter(0)
  q = f32[600] parameter(1)
  zero = s32[] constant(0)
  s = (s32[], f32[600], f32[600]) tuple(zero, p, q)
  ROOT w = (s32[], f32[600], f32[600]) while(s), condition=more, body=step }}
outer_more {{ s = (s32[], f32[600]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT }}
outer_step {{ s = (s32[], f32[600]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[600] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[600] negate(x)
  w = (s32[], f32[600], f32[600]) call(x, y), to_apply=inner
  z = f32[600] get-tuple-element(w), index=1
  ROOT t = (s32[], f32[600]) tuple(j, z) }}
ENTRY e {{ x = f32[600] parameter(0)
  y = f32[600] parameter(1)
  once = (s32[], f32[600], f32[600]) call(x, y), to_apply=inner
  u = f32[600] get-tuple-element(once), index=1
  v = f32[600] get-tuple-element(once), index=2
  zero = s32[] constant(0)
  o = (s32[], f32[600]) tuple(zero, v)
  w = (s32[], f32[600]) while(o), condition=outer_more, body=outer_step
  k = f32[600] get-tuple-element(w), index=1
  ROOT r = (f32[600], f32[600], f32[600], f32[600]) tuple(u, k, v, u) }}
"""
_OTHERS = ("copy(a)", "copy(c)", "negate(b)", "reverse(c), dimensions={0}", "multiply(a, b)")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("other", _OTHERS)
def test_the_same_results(other: str) -> None:
    """Loops that exchange arrays have the interpreter's bits after an even and an odd number of
    trips, inside other loops, and after none."""
    x, y = np.random.default_rng(3).normal(size=(2, 600)).astype(np.float32)
    for trips in (0, 1, 2, 5):
        assert_same_bits(_LOOP.format(trips=trips, other=other), x, y)


def test_what_changes_places() -> None:
    plan = lowered(hlo.parse(_LOOP.format(trips=4, other="negate(b)")))
    found = [step for _, step in in_order(plan.steps) if isinstance(step, Exchange)]
    assert len(found) >= 4
    assert with_exchanges(plan, 1 << 20) == plan


_ROTATED = """HloModule m
more {{ s = (s32[], {parts}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({trips})
  ROOT l = pred[] compare(i, n), direction=LT }}
step {{ s = (s32[], {parts}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[600] get-tuple-element(s), index=1
  b = f32[600] get-tuple-element(s), index=2
  c = f32[600] get-tuple-element(s), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  r = f32[600] reverse(c), dimensions={{0}}
  n = f32[600] subtract(r, a)
  ROOT t = (s32[], {parts}) tuple(j, {next}) }}
ENTRY e {{ x = f32[600] parameter(0)
  y = f32[600] parameter(1)
  z = f32[600] parameter(2)
  zero = s32[] constant(0)
  s = (s32[], {parts}) tuple(zero, x, y, z)
  ROOT w = (s32[], {parts}) while(s), condition=more, body=step }}
"""


@pytest.mark.parametrize("following", ["n, a, b", "b, n, a", "b, c, a", "n, n, a", "n, a, a"])
def test_parts_of_a_state_that_become_others(following: str) -> None:
    """A loop that rotates the arrays of its state, as a time step of second order does, has the
    interpreter's bits; all arrays are results, too."""
    given = np.random.default_rng(3).normal(size=(3, 600)).astype(np.float32)
    parts = "f32[600], f32[600], f32[600]"
    for trips in range(5):
        assert_same_bits(_ROTATED.format(trips=trips, next=following, parts=parts), *given)


def test_a_state_that_becomes_another_is_not_copied() -> None:
    text = _ROTATED.format(trips=4, next="n, a, b", parts="f32[600], f32[600], f32[600]")
    loops = [step for step in lowered(hlo.parse(text)).steps if isinstance(step, Repeat)]
    (loop,) = loops
    copied = [step for step in loop.body if isinstance(step, Copy)]
    assert all(step.target.bytes == 4 for step in copied)  # the counter
    assert sum(isinstance(step, Exchange) for step in loop.body) == 3
