"""Values in loops inside of branches inside of loops are judged on the peer's own, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from conftest import TESTS

import hlo
import interp
from hlo.module import Module
from hlo.passes.inline import inline
from hlo.values import Array, arrays_of
from hlo_oracle.arguments import from_seed
from interp.envelope.anchors import planned
from interp.envelope.budget import XLA_CPU
from interp.envelope.judgement import Judge
from interp.envelope.recorded_values import exposed
from interp.envelope.trying import Found
from interp.envelope.value_names import decisions, with_plain_names
from interp.envelope.verdict import EQUAL, UNDETERMINED, WITHIN

OUTER, INNER = 4, 30
# In every other trip, x -> 3.9 x (1 - x) for so many trips: after one trip of the outer loop the
# envelope says nothing.
NESTED = f"""HloModule nested

turn {{
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  k = f32[] constant(3.9)
  ks = f32[8] broadcast(k), dimensions={{}}
  u = f32[] constant(1)
  us = f32[8] broadcast(u), dimensions={{}}
  rest = f32[8] subtract(us, x)
  kx = f32[8] multiply(ks, x)
  y = f32[8] multiply(kx, rest)
  ROOT t = (s32[], f32[8]) tuple(next, y)
}}

again {{
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({INNER})
  ROOT c = pred[] compare(i, n), direction=LT
}}

chaos {{
  x = f32[8] parameter(0)
  i = s32[] constant(0)
  init = (s32[], f32[8]) tuple(i, x)
  inner = (s32[], f32[8]) while(init), condition=again, body=turn
  ROOT y = f32[8] get-tuple-element(inner), index=1
}}

half {{
  x = f32[8] parameter(0)
  h = f32[] constant(0.5)
  hs = f32[8] broadcast(h), dimensions={{}}
  ROOT y = f32[8] multiply(x, hs)
}}

body {{
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  two = s32[] constant(2)
  next = s32[] add(i, one)
  odd = s32[] remainder(i, two)
  choice = f32[8] conditional(odd, x, x), branch_computations={{chaos, half}}
  ROOT t = (s32[], f32[8]) tuple(next, choice)
}}

condition {{
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({OUTER})
  ROOT c = pred[] compare(i, n), direction=LT
}}

ENTRY e {{
  x = f32[8] parameter(0)
  i = s32[] constant(0)
  init = (s32[], f32[8]) tuple(i, x)
  outer = (s32[], f32[8]) while(init), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(outer), index=1
}}
"""
X = np.linspace(0.1, 0.9, 8, dtype=np.float32)
STATES = "outer/choice#0/inner:states:1"
MODULE = hlo.parse(NESTED)
Change = Callable[[str], str]


def reordered(text: str) -> str:
    """Multiply in another order, as a compiler may."""
    text = text.replace("multiply(ks, x)", "multiply(x, rest)")
    return text.replace("multiply(kx, rest)", "multiply(kx, ks)")


def verdict(change: Change) -> Found:
    def peer(program: Module) -> Sequence[Array]:
        return list(arrays_of(interp.evaluate(hlo.parse(change(hlo.format(program))), X)))

    exact = [("", array) for array in arrays_of(interp.evaluate(MODULE, X))]
    return Judge(MODULE, (X,), exact, peer=XLA_CPU).judged(peer(MODULE), peer)


def test_a_program_returns_the_values_of_its_loops_and_branches() -> None:
    plan = planned(MODULE, X, peer=XLA_CPU)
    assert STATES in plan.names
    shown = exposed(MODULE, tuple(plan.names), plan.trips)
    hlo.verify(shown)
    assert hlo.parse(hlo.format(shown)) == shown
    root, *values = arrays_of(interp.evaluate(shown, X))
    assert np.array_equal(root, interp.evaluate(MODULE, X))
    known = dict(zip(plan.names, values, strict=True))
    assert known["outer:trips"] == OUTER
    assert known["outer/choice:branch"].tolist() == [0, 1, 0, 1, 0]  # the last row says nothing
    assert known["outer/choice#0/inner:trips"].tolist() == [INNER, 0, INNER, 0, 0]
    turned = known[STATES]
    assert turned.shape == (OUTER + 1, INNER + 1, 8)
    assert np.array_equal(turned[2, INNER - 1] / 2, root)


def test_what_says_whether_a_program_was_where_a_value_is() -> None:
    plan = planned(MODULE, X, peer=XLA_CPU)
    assert decisions("x") == []
    inner = "outer/choice#0/inner:trips"
    assert decisions(STATES) == ["outer:trips", "outer/choice:branch", inner]
    assert set(plan.names).issuperset(d for name in plan.names for d in decisions(name))
    shown = exposed(MODULE, (STATES, *decisions(STATES)), plan.trips)
    assert len(list(arrays_of(interp.evaluate(shown, X)))) == 5


def test_a_legal_compiler_is_followed_inwards() -> None:
    found = verdict(reordered)
    assert found.counts[WITHIN] + found.counts[EQUAL] == X.size
    (whole,) = found.outputs
    assert np.abs(whole.actual - whole.exact).max() > 0.01


def test_a_bug_inside_is_proven_and_blamed() -> None:
    """A wrong factor inside of nested loops is proven, though the envelope of the whole program
    admits all that it gives."""
    found = verdict(lambda text: text.replace("constant(3.9)", "constant(3.8999)"))
    assert [step.instruction.name for step in found.wrong][:1] == ["inner"]


# Newton's iteration for a root of 2, until two numbers are the same: a rounding decides when. Then
# a branch by whether the last one is above the root.
UNTIL = """HloModule until

body {
  s = (f32[], f32[]) parameter(0)
  x = f32[] get-tuple-element(s), index=0
  two = f32[] constant(2)
  half = f32[] constant(0.5)
  q = f32[] divide(two, x)
  sum = f32[] add(x, q)
  y = f32[] multiply(sum, half)
  ROOT t = (f32[], f32[]) tuple(y, x)
}

condition {
  s = (f32[], f32[]) parameter(0)
  x = f32[] get-tuple-element(s), index=0
  y = f32[] get-tuple-element(s), index=1
  d = f32[] subtract(x, y)
  a = f32[] abs(d)
  e = f32[] constant(2e-7)
  ROOT c = pred[] compare(a, e), direction=GT
}

above {
  x = f32[] parameter(0)
  k = f32[] constant(3)
  ROOT y = f32[] multiply(x, k)
}

below {
  x = f32[] parameter(0)
  k = f32[] constant(-5)
  ROOT y = f32[] multiply(x, k)
}

ENTRY e {
  x = f32[] parameter(0)
  zero = f32[] constant(0)
  init = (f32[], f32[]) tuple(x, zero)
  loop = (f32[], f32[]) while(init), condition=condition, body=body
  last = f32[] get-tuple-element(loop), index=0
  root = f32[] constant(1.41421354)
  p = pred[] compare(last, root), direction=GT
  ROOT r = f32[] conditional(p, last, last), true_computation=above, false_computation=below
}
"""


def test_the_peer_s_decisions_are_followed_where_all_are_legal() -> None:
    module, x = hlo.parse(UNTIL), np.float32(1.7)
    exact = [("", array) for array in arrays_of(interp.evaluate(module, x))]

    def undecided(direction: str) -> Found:
        def peer(program: Module) -> Sequence[Array]:
            text = hlo.format(program).replace("direction=GT", f"direction={direction}")
            return list(arrays_of(interp.evaluate(hlo.parse(text), x)))

        return Judge(module, (x,), exact, peer=XLA_CPU).judged(peer(module), peer)

    for direction in ("GT", "GE"):
        found = undecided(direction)
        assert not found.wrong and not found.counts[UNDETERMINED]


def test_what_follows_a_difference_of_nearly_equal_numbers_is_judged() -> None:
    """Nothing but roundings is left of it, so the envelope says nothing. But the peer's own is the
    difference of the peer's own operands, and what one decides by it follows from that."""
    module = hlo.parse("""HloModule cancelling
ENTRY e {
  x = f32[8] parameter(0)
  q = f32[8] sqrt(x)
  y = f32[8] multiply(q, q)
  d = f32[8] subtract(y, x)
  s = f32[8] sign(d)
  k = f32[8] multiply(s, x)
  ROOT t = (f32[8], f32[8]) tuple(k, d)
}
""")
    x = np.linspace(1, 2, 8, dtype=np.float32)
    exact = [("", array) for array in arrays_of(interp.evaluate(module, x))]

    def peer(program: Module) -> Sequence[Array]:
        text = hlo.format(program).replace("multiply(q, q)", "copy(x)")  # over the reals
        return list(arrays_of(interp.evaluate(hlo.parse(text), x)))

    judge = Judge(module, (x,), exact, peer=XLA_CPU)
    alone = judge.judged(peer(module), lambda program: None)
    assert [output.verdict.counts[UNDETERMINED] > 0 for output in alone.outputs] == [True, True]
    found = judge.judged(peer(module), peer)
    assert not found.wrong and not found.counts[UNDETERMINED]


def test_every_regression_can_be_asked_for_what_would_be_anchored() -> None:
    """Every regression stays legal when the values that would be anchored are exposed: also loops
    of one number, or with states of asynchronous calls, which cannot carry more."""
    for path in sorted((TESTS / "regressions").glob("*.hlo")):
        module = inline(hlo.parse(path.read_text()))
        arrays = from_seed(module, 0)
        plan = planned(module, *arrays, peer=XLA_CPU)
        hlo.verify(exposed(module, tuple(plan.names), plan.trips))


def test_names_in_quotes_are_not_taken_for_places() -> None:
    """Instructions that are called like a value in a loop, or like its number of trips."""
    text = """HloModule odd
ENTRY e {
  x = f32[8] parameter(0)
  "outer:trips" = f32[8] exponential(x)
  outer_trips = f32[8] negate(x)
  ROOT "outer/x" = f32[8] add("outer:trips", outer_trips)
}
"""
    module = hlo.parse(text)
    plain = with_plain_names(module)
    hlo.verify(plain)
    assert not any(set("/#:") & set(i.name) for c in plain.computations for i in c.instructions)
    assert np.array_equal(interp.evaluate(plain, X), interp.evaluate(module, X), equal_nan=True)


def test_a_fold_in_any_order_is_no_decision() -> None:
    """A wrong fold stays undetermined if it is not associative: in some order any result may be
    legal."""
    module = hlo.parse("""HloModule fold
f {
  a = s16[] parameter(0)
  b = s16[] parameter(1)
  s = s16[] subtract(a, b)
  ROOT m = s16[] multiply(s, b)
}
ENTRY e {
  x = s16[8] parameter(0)
  z = s16[] constant(1)
  r = s16[] reduce(x, z), dimensions={0}, to_apply=f
  ROOT n = s16[] negate(r)
}
""")
    x = np.arange(3, 11, dtype=np.int16)

    def peer(program: Module) -> Sequence[Array]:
        text = hlo.format(program).replace("subtract(a, b)", "add(a, b)")
        return list(arrays_of(interp.evaluate(hlo.parse(text), x)))

    exact = [("", np.asarray(interp.evaluate(module, x)))]
    found = Judge(module, (x,), exact, peer=XLA_CPU).judged(peer(module), peer)
    assert not found.wrong and found.counts[UNDETERMINED] == 1
