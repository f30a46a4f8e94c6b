"""Values that are computed once are those that the interpreter computes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import fuzz
import hlo
import interp
from bisect_dump.matching import Side, matched
from bisect_dump.shared_values import Program, Reference, Values
from hlo.bit_equality import differences
from hlo.errors import ArgumentError, OutOfFuel

CHAIN = """HloModule chain
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[64] parameter(0)
  zero = f32[] constant(0)
  e = f32[64] exponential(x)
  n = f32[64] negate(e)
  t = f32[64] tanh(n)
  s = f32[] reduce(t, zero), dimensions={0}, to_apply=sum
  ROOT r = (f32[], f32[64]) tuple(s, e)
}
"""
X = np.linspace(-3, 3, 64, dtype=np.float32)


def evaluated(values: Values, program: Program, *arrays: object) -> dict[str, Reference]:
    arguments = tuple(map(values.given, program.steps.arguments(arrays)))
    return values.evaluated(program, arguments)


@settings(max_examples=24, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.sampled_from([0, 200, 1 << 30]))
def test_the_interpreter_s_values(data: st.DataObject, most_bytes: int) -> None:
    """Values are the interpreter's, however few arrays are kept, also if all are asked for again
    from the last one."""
    module = data.draw(fuzz.modules())
    arrays = data.draw(fuzz.arguments(module))
    note(hlo.format(module))
    expected = interp.evaluate(module, *arrays)
    values, program = Values(most_bytes), Program(module, 0)
    found = evaluated(values, program, *arrays)
    assert not differences(expected, values.value(found[program.module.entry.root]))
    again = evaluated(values, Program(module, 0), *arrays)
    for name in reversed(found):
        assert not differences(values.value(found[name]), values.value(again[name]))


def test_what_two_programs_share_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    values = Values()
    first = evaluated(values, Program(hlo.parse(CHAIN), 0), X)
    other = CHAIN.replace("n = ", "m = ").replace("tanh(n)", "sine(m)").replace("(e)", "(e) ")
    program = Program(hlo.parse(other), 0)
    opcodes: list[str] = []
    value = program.steps.value
    monkeypatch.setattr(
        program.steps, "value", lambda i, operands: opcodes.append(i.opcode) or value(i, operands)
    )
    second = evaluated(values, program, X)
    assert opcodes == ["sine", "reduce"]
    assert second["m"] == first["n"] and second["t"] != first["t"]


def test_programs_that_end_with_one_result_are_equal() -> None:
    """Values are equal, however they are computed."""
    values = Values()
    text = CHAIN.replace("n = f32[64] negate(e)", "z = f32[64] subtract(e, e)\n  n = f32[64] SUB")
    one = text.replace("SUB", "subtract(z, e)")
    found = [evaluated(values, Program(hlo.parse(t), 0), X) for t in (CHAIN, one)]
    assert found[0]["r"] == found[1]["r"]


def test_what_draws_is_run_in_order_from_the_seed() -> None:
    text = """HloModule random
ENTRY main {
  a = f32[] constant(0)
  b = f32[] constant(1)
  x = f32[5] rng(a, b), distribution=rng_uniform
  y = f32[5] rng(a, b), distribution=rng_uniform
  ROOT r = (f32[5], f32[5]) tuple(x, y)
}
"""
    module = hlo.parse(text)
    values, program = Values(0), Program(module, 7)
    for _ in range(2):
        found = values.value(evaluated(values, program)["r"])
        assert not differences(interp.evaluate(module, seed=7), found)


def test_errors() -> None:
    endless = """HloModule endless
more { s = s32[] parameter(0)
  ROOT l = pred[] constant(true) }
ENTRY main { x = s32[] parameter(0)
  ROOT l = s32[] while(x), condition=more, body=step }
step { s = s32[] parameter(0)
  ROOT n = s32[] negate(s) }
"""
    head, step = endless.split("step {")
    text = head.replace("ENTRY", "step {" + step + "ENTRY")
    values, program = Values(), Program(hlo.parse(text), 0, fuel=500)
    with pytest.raises(OutOfFuel):
        evaluated(values, program, np.int32(1))
    with pytest.raises(ArgumentError, match="expected s32"):
        program.steps.arguments([X])


RENAMED = """HloModule chain
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[64] parameter(0)
  zero = f32[] constant(0)
  t = f32[64] exponential(x)
  n = f32[64] negate(t)
  e = f32[64] sine(n)
  s = f32[] reduce(e, zero), dimensions={0}, to_apply=sum
  ROOT r = (f32[], f32[64]) tuple(s, t)
}
"""


def test_equal_values_are_matched_whatever_their_names() -> None:
    values = Values()
    programs = [Program(hlo.parse(text), 0) for text in (CHAIN, RENAMED)]
    sides = [Side(program, evaluated(values, program, X)) for program in programs]
    found = matched(sides[0], sides[1], values)
    assert found.shared >= {"e", "n"}  # %e is %t there, and another value is called %e
    assert found.pairs["e"] == "t" and "t" not in found.pairs
