"""Loops are judged trip by trip, on the states that the peer's own loop carries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import hlo
import interp
from hlo.module import Module
from hlo.values import Array, arrays_of
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import contains
from interp.envelope.judgement import Judge
from interp.envelope.peer_values.followed import followed
from interp.envelope.recorded_values import exposed, stored_elements
from interp.envelope.trying import Found
from interp.envelope.verdict import EQUAL, OUTSIDE, WITHIN

TRIPS = 60
# x -> 3.9 x (1 - x): an error grows by a factor of 1.6 at each trip, on average.
CHAOS = """HloModule chaos

body {
  s = (s32[], f32[8], f32[60,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  all = f32[60,8] get-tuple-element(s), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(i, one)
  k = f32[] constant(FACTOR)
  ks = f32[8] broadcast(k), dimensions={}
  u = f32[] constant(1)
  us = f32[8] broadcast(u), dimensions={}
  rest = f32[8] subtract(us, x)
  kx = f32[8] multiply(ks, x)
  y = f32[8] multiply(kx, rest)
  row = f32[1,8] reshape(y)
  more = f32[60,8] dynamic-update-slice(all, row, i, zero)
  ROOT t = (s32[], f32[8], f32[60,8]) tuple(next, y, more)
}

condition {
  s = (s32[], f32[8], f32[60,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(60)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY e {
  x = f32[8] parameter(0)
  i = s32[] constant(0)
  zero = f32[] constant(0)
  none = f32[60,8] broadcast(zero), dimensions={}
  init = (s32[], f32[8], f32[60,8]) tuple(i, x, none)
  loop = (s32[], f32[8], f32[60,8]) while(init), condition=condition, body=body
  last = f32[8] get-tuple-element(loop), index=1
  ROOT all = f32[60,8] get-tuple-element(loop), index=2
}
"""
X = np.linspace(0.1, 0.9, 8, dtype=np.float32)
Peer = Callable[[Module], Sequence[Array]]


def module(factor: str = "3.9") -> Module:
    return hlo.parse(CHAOS.replace("FACTOR", factor))


def verdict(peer: Peer) -> Found:
    exact = [("", array) for array in arrays_of(interp.evaluate(module(), X))]
    return Judge(module(), (X,), exact, peer=XLA_CPU).judged(peer(module()), peer)


def test_the_states_are_those_of_the_trips() -> None:
    given = module()
    (loop,) = (i for i in given.entry.instructions if i.opcode == "while")
    assert stored_elements(given, loop, TRIPS) == [1]  # the other one is written row by row
    shown = exposed(given, ("loop:states:1", "loop:trips"), {"loop": TRIPS})
    hlo.verify(shown)
    assert hlo.parse(hlo.format(shown)) == shown
    root, states, trips = arrays_of(interp.evaluate(shown, X))
    assert np.array_equal(root, interp.evaluate(given, X))
    assert np.array_equal(states[:-1], root) and trips == TRIPS


def test_a_legal_compiler_is_followed() -> None:
    """One that multiplies in another order: its results soon differ from the exact ones in all
    digits, and nothing is undetermined."""

    def peer(program: Module) -> Sequence[Array]:
        text = hlo.format(program).replace("multiply(ks, x)", "multiply(x, rest)")
        text = text.replace("multiply(kx, rest)", "multiply(kx, ks)")
        return list(arrays_of(interp.evaluate(hlo.parse(text), X)))

    found = verdict(peer)
    assert found.counts[WITHIN] > 300
    assert found.counts[EQUAL] + found.counts[WITHIN] == TRIPS * X.size
    (whole,) = found.outputs
    assert np.abs(whole.actual - whole.exact).max() > 0.5


def test_a_wrong_trip_is_proven() -> None:
    """One wrong element in trip 40 is proven: by then the envelope of the whole loop says
    nothing."""

    def peer(program: Module) -> Sequence[Array]:
        arrays = [np.array(x) for x in arrays_of(interp.evaluate(program, X))]
        for array in arrays:
            if array.shape in ((TRIPS, 8), (TRIPS + 1, 8)):
                array[40:, 3] = 0.5 * array[40:, 3]
        return arrays

    found = verdict(peer)
    assert [step.instruction.name for step in found.wrong][:1] == ["loop"]
    assert found.wrong[0].verdict.counts[OUTSIDE] == 1


def test_another_program_is_proven_wrong() -> None:
    def peer(program: Module) -> Sequence[Array]:
        text = hlo.format(program).replace("constant(3.9)", "constant(3.8999)")
        return list(arrays_of(interp.evaluate(hlo.parse(text), X)))

    assert verdict(peer).wrong


# x -> x / 2 until it is below a bound that the exact value just misses at trip 10.
HALVING = """HloModule halving

body {
  s = (f32[], f32[]) parameter(0)
  x = f32[] get-tuple-element(s), index=0
  n = f32[] get-tuple-element(s), index=1
  c = f32[] constant(0.1)
  y = f32[] multiply(x, c)
  k = f32[] constant(5)
  z = f32[] multiply(y, k)
  one = f32[] constant(1)
  more = f32[] add(n, one)
  ROOT t = (f32[], f32[]) tuple(z, more)
}

condition {
  s = (f32[], f32[]) parameter(0)
  x = f32[] get-tuple-element(s), index=0
  n = f32[] constant(0.000976562558)
  ROOT c = pred[] compare(x, n), direction=GT
}

ENTRY e {
  x = f32[] parameter(0)
  zero = f32[] constant(0)
  init = (f32[], f32[]) tuple(x, zero)
  loop = (f32[], f32[]) while(init), condition=condition, body=body
  last = f32[] get-tuple-element(loop), index=0
  trips = f32[] get-tuple-element(loop), index=1
  ROOT r = (f32[], f32[]) tuple(last, trips)
}
"""


@pytest.mark.parametrize("factor", ["0.1", "0.100000009", "0.099999994"])
def test_a_compiler_may_take_other_trips(factor: str) -> None:
    """One that rounds differently leaves the loop a trip later, or earlier: neither is wrong."""
    given, one = hlo.parse(HALVING), np.float32(1)
    exact = [("", array) for array in arrays_of(interp.evaluate(given, one))]

    def peer(program: Module) -> Sequence[Array]:
        text = hlo.format(program).replace("constant(0.1)", f"constant({factor})")
        return list(arrays_of(interp.evaluate(hlo.parse(text), one)))

    found = Judge(given, (one,), exact, peer=XLA_CPU).judged(peer(given), peer)
    assert not found.counts[OUTSIDE] and not found.wrong


# x -> x + 1000 -> x + 1000 - 1000 -> ...
THERE_AND_BACK = """HloModule there

body {
  s = (s32[], f32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[] get-tuple-element(s), index=1
  c = f32[] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[] add(x, c)
  d = f32[] negate(c)
  ROOT t = (s32[], f32[], f32[]) tuple(next, y, d)
}

condition {
  s = (s32[], f32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY e {
  x = f32[] parameter(0)
  i = s32[] constant(0)
  c = f32[] constant(1000)
  init = (s32[], f32[], f32[]) tuple(i, x, c)
  loop = (s32[], f32[], f32[]) while(init), condition=condition, body=body
  ROOT r = f32[] get-tuple-element(loop), index=1
}
"""


def test_an_unrolled_loop_need_not_round_its_state() -> None:
    """Two trips together are x + (1000 - 1000), whatever the loop shows between them."""
    given, x = hlo.parse(THERE_AND_BACK), np.float32(0.001)
    states = np.array([x + np.float32(1000), x, x + np.float32(1000), x, 0], np.float32)
    known = {"loop:trips": np.asarray(4, np.int32), "loop:states:1": states}
    enclosed, wrong = followed(given, known, x, peer=XLA_CPU)
    (legal,) = arrays_of(enclosed.result)
    assert not wrong and contains(legal, np.asarray(x))


# x -> log(exp(x) + exp(y)) + 0.3 of neighbours x and y, where -1e30 stands for the logarithm of 0.
FORWARD = """HloModule forward

body {
  s = (s32[], f32[6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[6] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  never = f32[1] constant({-1e30})
  others = f32[5] slice(x), slice={[0:5]}
  y = f32[6] concatenate(never, others), dimensions={0}
  most = f32[6] maximum(x, y)
  dx = f32[6] subtract(x, most)
  dy = f32[6] subtract(y, most)
  ex = f32[6] exponential(dx)
  ey = f32[6] exponential(dy)
  sum = f32[6] add(ex, ey)
  log = f32[6] log(sum)
  both = f32[6] add(most, log)
  k = f32[] constant(0.3)
  ks = f32[6] broadcast(k), dimensions={}
  z = f32[6] add(both, ks)
  ROOT t = (s32[], f32[6]) tuple(next, z)
}

condition {
  s = (s32[], f32[6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(8)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY e {
  x = f32[6] parameter(0)
  i = s32[] constant(0)
  init = (s32[], f32[6]) tuple(i, x)
  loop = (s32[], f32[6]) while(init), condition=condition, body=body
  ROOT r = f32[6] get-tuple-element(loop), index=1
}
"""


def test_what_cancels_in_a_trip_is_asked_for() -> None:
    """The peer is asked for values of a trip that cancels: the last bit of its first number, 1e30,
    is 1e22, and ``dx`` and ``dy`` may be nothing else."""
    given, x = hlo.parse(FORWARD), np.float32([0.125] + [-1e30] * 5)
    units = ",".join(["1.0000001"] * x.size)
    log = f"l = f32[6] log(sum)  u = f32[6] constant({{{units}}})  log = f32[6] multiply(l, u)"

    def peer(program: Module) -> Sequence[Array]:
        text = hlo.format(program).replace("log = f32[6] log(sum)", log)
        return list(arrays_of(interp.evaluate(hlo.parse(text), x)))

    judge = Judge(given, (x,), [("", interp.evaluate(given, x))], peer=XLA_CPU)
    found = judge.judged(peer(given), peer)
    assert not found.wrong and found.counts[WITHIN] > 0
    assert found.counts[EQUAL] + found.counts[WITHIN] == x.size
