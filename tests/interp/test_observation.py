"""Values and times of the instructions of an evaluation, one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import DataObject, data

import fuzz
import hlo
import interp
from hlo.bit_equality import differences
from hlo.errors import ArgumentError

LOOP = """HloModule loop

below {
  p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT lt = pred[] compare(i, n), direction=LT
}

plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

step {
  p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[2] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  twice = f32[2] add(x, x)
  unused = f32[2] negate(x)
  ROOT t = (s32[], f32[2]) tuple(next, twice)
}

ENTRY main {
  x = f32[2] parameter(0)
  zero = s32[] constant(0)
  z = f32[] constant(0)
  sum = f32[] reduce(x, z), dimensions={0}, to_apply=plus
  init = (s32[], f32[2]) tuple(zero, x)
  w = (s32[], f32[2]) while(init), condition=below, body=step
  ROOT r = (f32[], (s32[], f32[2])) tuple(sum, w)
}
"""
X = np.array([1, 2], np.float32)


def test_values_by_name_are_those_of_each_trip() -> None:
    module = hlo.parse(LOOP)
    plain = interp.evaluate(module, X)
    result, values = interp.evaluate(module, X, watch=["%twice", "below/i", "x", "step/one"])
    assert not differences(result, plain)
    assert [v.tolist() for v in values["twice"]] == [[2, 4], [4, 8], [8, 16]]
    assert [int(v) for v in values["below/i"]] == [0, 1, 2, 3]
    assert [v.tolist() for v in values["x"]] == [[1, 2], [1, 2], [2, 4], [4, 8]]
    assert len(values["step/one"]) == 3  # constants are seen, too


def test_a_function_sees_every_value_in_order() -> None:
    seen: list[interp.Seen] = []
    interp.evaluate(hlo.parse(LOOP), X, watch=seen.append)
    names = [one.instruction.name for one in seen if one.computation == "main"]
    assert names == ["x", "zero", "z", "sum", "init", "w", "r"]
    assert {one.computation for one in seen} == {"main", "below", "step"}
    assert not any(one.rank for one in seen)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("twise", "%twise names no instruction; did you mean %twice?"),
        ("main/twice", "%main/twice names no instruction; did you mean %twice?"),
        ("unused", "%unused is not evaluated: the result does not need it"),
        ("c", "%c is part of plus, which is applied to elements"),
    ],
)
def test_names_that_show_nothing_are_errors(name: str, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        interp.evaluate(hlo.parse(LOOP), X, watch=name)
    assert str(caught.value) == message


def test_each_rank_has_its_values() -> None:
    module = hlo.parse(
        "HloModule r, replica_count=2\nENTRY e { x = f32[] parameter(0)\n"
        " n = f32[] negate(x)\n ROOT p = f32[] collective-permute(n), source_target_pairs={{0,1}} }"
    )
    given = [(np.float32(1),), (np.float32(2),)]
    results, values = interp.evaluate(module, *given, replicas=2, watch=["n"])
    assert [float(r) for r in results] == [0, -1]
    assert [float(v["n"][0]) for v in values] == [-1, -2]


@settings(max_examples=10, deadline=None)
@given(data())
def test_watching_changes_no_bit(source: DataObject) -> None:
    module = source.draw(fuzz.modules())
    arrays = source.draw(fuzz.arguments(module))
    expected = interp.evaluate(module, *arrays)
    seen: list[interp.Seen] = []
    assert not differences(interp.evaluate(module, *arrays, watch=seen.append), expected)
    entry = [one for one in seen if one.computation == module.entry_name]
    last = next(one for one in reversed(entry) if one.instruction.name == module.entry.root)
    assert not differences(last.value, expected)
    assert not differences(interp.profile(module, *arrays).result, expected)


def test_a_profile_counts_and_times_instructions() -> None:
    profile = interp.profile(hlo.parse(LOOP), X)
    calls = {(row.computation, row.instruction): row.calls for row in profile.rows}
    assert calls["step", "twice"] == 3 and calls["below", "lt"] == 4 and calls["main", "w"] == 1
    assert all(row.computation != "plus" for row in profile.rows)
    assert sum(row.seconds for row in profile.rows) <= profile.seconds
    assert [row.seconds for row in profile.rows] == sorted(
        (row.seconds for row in profile.rows), reverse=True
    )
    lines = profile.table(most=2).splitlines()
    assert lines[0].split() == ["instruction", "opcode", "shape", "calls", "seconds", "share"]
    assert len(lines) == 5 and "more" in lines[3] and lines[4].startswith("preparation")
    assert "\n" not in repr(profile) and "<pre>" in profile._repr_html_()
    assert profile.json()["module"] == "loop"
