"""How many trips loops take exactly, and how many of them are followed to choose anchors."""

import numpy as np

import hlo
from interp.envelope.anchors import planned
from interp.envelope.budget import XLA_CPU
from interp.envelope.exact_trips import exact_trips

# 1, 1/2, 1/4, … until it is small; floor(exp(x)) is 0, but 1 is legal: with the midpoint of both
# the loop goes on until its counter ends it.
HALVING = """HloModule halving

goes_on {
  s = (f32[], f32[], s32[]) parameter(0)
  t = f32[] get-tuple-element(s), index=0
  i = s32[] get-tuple-element(s), index=2
  small = f32[] constant(0.001)
  most = s32[] constant(500)
  more = pred[] compare(t, small), direction=GT
  few = pred[] compare(i, most), direction=LT
  ROOT r = pred[] and(more, few)
}
turn {
  s = (f32[], f32[], s32[]) parameter(0)
  t = f32[] get-tuple-element(s), index=0
  x = f32[] get-tuple-element(s), index=1
  i = s32[] get-tuple-element(s), index=2
  half = f32[] constant(0.5)
  less = f32[] multiply(t, half)
  power = f32[] exponential(x)
  whole = f32[] floor(power)
  next = f32[] maximum(less, whole)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (f32[], f32[], s32[]) tuple(next, x, j)
}
ENTRY e {
  x = f32[] parameter(0)
  start = f32[] constant(1)
  zero = s32[] constant(0)
  s = (f32[], f32[], s32[]) tuple(start, x, zero)
  w = (f32[], f32[], s32[]) while(s), condition=goes_on, body=turn
  ROOT r = f32[] get-tuple-element(w), index=0
}
"""
X = np.float32(-6e-8)  # one unit below 1 as a power of e


def test_a_loop_that_midpoints_never_leave_is_left() -> None:
    module = hlo.parse(HALVING)
    assert exact_trips(module, (X,)) == {("e", "w"): 10}
    plan = planned(module, X, peer=XLA_CPU)
    assert plan.trips == {"w": 14}  # a quarter and two more
    assert {"w:trips", "w:states:0", "w/whole"} <= plan.names.keys()


def test_the_most_trips_of_an_inner_loop_count() -> None:
    """The inner loop takes as many trips as the outer one has taken: none, one, two, three."""
    module = hlo.parse("""HloModule nested
less { s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT r = pred[] compare(i, n), direction=LT }
inner { s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], s32[]) tuple(j, n) }
outer { s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  zero = s32[] constant(0)
  t = (s32[], s32[]) tuple(zero, i)
  w = (s32[], s32[]) while(t), condition=less, body=inner
  again = s32[] get-tuple-element(w), index=0
  one = s32[] constant(1)
  j = s32[] add(again, one)
  ROOT r = (s32[], s32[]) tuple(j, n) }
ENTRY e { n = s32[] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], s32[]) tuple(zero, n)
  ROOT w = (s32[], s32[]) while(s), condition=less, body=outer }""")
    assert exact_trips(module, (np.int32(4),)) == {("outer", "w"): 3, ("e", "w"): 4}
