"""Transfers that are under way through a loop, as pipelined programs have them."""

import numpy as np
import pytest

import hlo
import interp

PAIRS = "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}"
PIPELINED = f"""HloModule pipelined, num_partitions=2
unfinished {{
  t = (s32[], ((f32[2], u32[], token[]), (f32[2], u32[], token[]))) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  three = s32[] constant(3)
  ROOT more = pred[] compare(i, three), direction=LT
}}
turn {{
  t = (s32[], ((f32[2], u32[], token[]), (f32[2], u32[], token[]))) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  states = ((f32[2], u32[], token[]), (f32[2], u32[], token[])) get-tuple-element(t), index=1
  sending = (f32[2], u32[], token[]) get-tuple-element(states), index=0
  receiving = (f32[2], u32[], token[]) get-tuple-element(states), index=1
  sent = token[] send-done(sending), channel_id=1
  received = (f32[2], token[]) recv-done(receiving), channel_id=1
  x = f32[2] get-tuple-element(received), index=0
  y = f32[2] add(x, x)
  k = token[] after-all()
  s = (f32[2], u32[], token[]) send(y, k), channel_id=1, {PAIRS}
  r = (f32[2], u32[], token[]) recv(k), channel_id=1, {PAIRS}
  both = ((f32[2], u32[], token[]), (f32[2], u32[], token[])) tuple(s, r)
  ROOT u = (s32[], ((f32[2], u32[], token[]), (f32[2], u32[], token[]))) tuple(next, both)
}}
ENTRY e {{
  x = f32[2] parameter(0)
  k = token[] after-all()
  s = (f32[2], u32[], token[]) send(x, k), channel_id=1, {PAIRS}
  r = (f32[2], u32[], token[]) recv(k), channel_id=1, {PAIRS}
  both = ((f32[2], u32[], token[]), (f32[2], u32[], token[])) tuple(s, r)
  zero = s32[] constant(0)
  t = (s32[], ((f32[2], u32[], token[]), (f32[2], u32[], token[]))) tuple(zero, both)
  w = (s32[], ((f32[2], u32[], token[]), (f32[2], u32[], token[]))) while(t),
    condition=unfinished, body=turn
  states = ((f32[2], u32[], token[]), (f32[2], u32[], token[])) get-tuple-element(w), index=1
  sending = (f32[2], u32[], token[]) get-tuple-element(states), index=0
  receiving = (f32[2], u32[], token[]) get-tuple-element(states), index=1
  sent = token[] send-done(sending), channel_id=1
  received = (f32[2], token[]) recv-done(receiving), channel_id=1
  ROOT y = f32[2] get-tuple-element(received), index=0
}}
"""


@pytest.mark.parametrize("dialect", ["short", "long", "canonical"])
def test_transfers_under_way_through_a_loop(dialect: str) -> None:
    module = hlo.parse(hlo.format(hlo.parse(PIPELINED), dialect))
    hlo.verify(module)
    given = ((np.array(row, np.float32),) for row in ([1, 2], [3, 4]))
    results = interp.evaluate(module, *given, partitions=2)
    assert [result.tolist() for result in results] == [[8, 16], [24, 32]]
