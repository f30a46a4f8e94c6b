"""A compiler's values of instructions in between are judged by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import fuzz
import hlo
import interp
from fuzz.judge.inner_values import inner_outputs
from fuzz.peers.xla import Answer
from hlo.errors import Error
from hlo.values import Array, arrays_of
from interp.envelope.budget import XLA_CPU

CHAIN = hlo.parse("""HloModule chain
negated { x = f32[3] parameter(0)  ROOT n = f32[3] negate(x) }
ENTRY main {
  x = f32[3] parameter(0)
  s = f32[3] sine(x)
  c = f32[3] call(s), to_apply=negated
  b = pred[3] compare(c, x), direction=LT
  t = (f32[3], f32[3]) tuple(s, c)
  e = f32[3] get-tuple-element(t), index=1
  ROOT r = f32[3] add(e, x)
}""")
X = np.float32([1, 2, 3])


def interpreted(text: str, arrays: Sequence[Array]) -> Answer:
    return Answer(tuple(arrays_of(interp.evaluate(hlo.parse(text), *arrays))))


def test_what_is_outside_is_so_at_its_instruction() -> None:
    def wrong(text: str, arrays: Sequence[Array]) -> Answer:
        outputs = [np.array(x) for x in interpreted(text, arrays).outputs or ()]
        outputs[2][1] += 1  # after the result and s
        return Answer(tuple(outputs))

    found = {one.place: one for one in inner_outputs(wrong, XLA_CPU, CHAIN, (X,))}
    assert [*found] == ["s", "c", "b", "e"]
    assert found["c"].verdict.counts["outside"] == 1
    assert found["c"].verdict.first_outside == (1,)
    assert not any(found[name].verdict.counts["outside"] for name in "sbe")
    assert np.array_equal(found["b"].exact, found["b"].actual)


def test_nothing_is_judged_of_what_the_compiler_does_not_take() -> None:
    def refuses(text: str, arrays: Sequence[Array]) -> Answer:
        return Answer(None, error="no tuples here")

    assert inner_outputs(refuses, XLA_CPU, CHAIN, (X,)) == ()
    alone = hlo.parse("HloModule m\nENTRY e { x = f32[3] parameter(0)  ROOT r = f32[3] abs(x) }")
    assert inner_outputs(interpreted, XLA_CPU, alone, (X,)) == ()


@settings(suppress_health_check=list(HealthCheck), max_examples=20)
@given(st.data())
def test_the_interpreter_is_within_its_own_envelope(data: Any) -> None:
    module = data.draw(fuzz.modules(max_instructions=6))
    values = data.draw(fuzz.arguments(module))
    try:
        found = inner_outputs(interpreted, XLA_CPU, module, values)
    except Error:  # it has no result
        assume(False)
    names = {i.name for i in module.entry.instructions}
    for output in found:
        assert output.place in names
        assert not output.verdict.counts["outside"], output.place
