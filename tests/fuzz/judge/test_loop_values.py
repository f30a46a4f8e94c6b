"""A compiler's values inside of loops are those of each trip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import fuzz
import hlo
import interp
from fuzz.judge.loop_values import loop_values
from fuzz.peers.xla import Answer
from hlo.errors import Error
from hlo.values import Array, arrays_of

NESTED = hlo.parse("""HloModule nested
inner_condition { s = (s32[], s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT less = pred[] compare(i, n), direction=LT }
inner_body { s = (s32[], s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  x = f32[2] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  doubled = f32[2] add(x, x)
  ROOT all = (s32[], s32[], f32[2]) tuple(next, n, doubled) }
condition { s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(i, three), direction=LT }
body { s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[2] get-tuple-element(s), index=1
  zero = s32[] constant(0)
  init = (s32[], s32[], f32[2]) tuple(zero, i, x)
  again = (s32[], s32[], f32[2]) while(init), condition=inner_condition, body=inner_body
  y = f32[2] get-tuple-element(again), index=2
  negated = f32[2] negate(y)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT both = (s32[], f32[2]) tuple(next, negated) }
ENTRY main {
  x = f32[2] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[2]) tuple(zero, x)
  loop = (s32[], f32[2]) while(init), condition=condition, body=body
  ROOT result = f32[2] get-tuple-element(loop), index=1
}""")
X = np.float32([1, 3])


def interpreted(text: str, arrays: Sequence[Array]) -> Answer:
    return Answer(tuple(arrays_of(interp.evaluate(hlo.parse(text), *arrays))))


def test_each_trip_of_each_loop_has_its_values() -> None:
    found = {(v.computation, v.instruction): v for v in loop_values(interpreted, NESTED, (X,))}
    assert all(np.array_equal(v.exact, v.actual) for v in found.values())
    negated = found["body", "negated"].exact
    assert negated.tolist() == [[-1, -3], [2, 6], [-8, -24]]
    doubled = found["inner_body", "doubled"].exact  # no trip, one, two
    assert doubled.shape == (3, 2, 2)
    assert doubled[1, 0].tolist() == [-2, -6] and doubled[2, 1].tolist() == [8, 24]
    assert ("main", "result") not in found


def test_another_value_is_at_its_trip() -> None:
    def wrong(text: str, arrays: Sequence[Array]) -> Answer:
        outputs = [np.array(x) for x in interpreted(text, arrays).outputs or ()]
        for array in outputs:
            if array.shape == (4, 2):
                array[1] += 1
        return Answer(tuple(outputs))

    (found,) = (v for v in loop_values(wrong, NESTED, (X,)) if v.instruction == "negated")
    assert (found.exact != found.actual).any(axis=1).tolist() == [False, True, False]


def test_without_loops_and_answers_there_is_nothing() -> None:
    alone = hlo.parse("HloModule m\nENTRY e { x = f32[3] parameter(0)  ROOT r = f32[3] abs(x) }")
    assert loop_values(interpreted, alone, (X,)) == ()
    refuses = Answer(None, error="no tuples here")
    assert loop_values(lambda text, arrays: refuses, NESTED, (X,)) == ()


@settings(suppress_health_check=list(HealthCheck), max_examples=15)
@given(st.data())
def test_the_interpreter_shows_itself_the_exact_values(data: Any) -> None:
    module = data.draw(fuzz.modules(max_instructions=6))
    values = data.draw(fuzz.arguments(module))
    try:
        found = loop_values(interpreted, module, values)
    except Error:  # it has no result
        assume(False)
    assert all(v.exact.tobytes() == v.actual.tobytes() for v in found)
