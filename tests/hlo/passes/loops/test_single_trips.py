"""Loops that run at most once are their body, or their initial state."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from hlo.passes import PASSES
from hlo.passes.loops.single_trips import single_trips

_LOOP = """HloModule m
body {
  s = (T[], f32[4], T[]) parameter(0)
  n = T[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  end = T[] get-tuple-element(s), index=2
  by = T[] constant(BY)
  next = T[] OP
  y = f32[4] multiply(x, x)
  ROOT r = (T[], f32[4], T[]) tuple(next, y, end)
}
condition {
  s = (T[], f32[4], T[]) parameter(0)
  n = T[] get-tuple-element(s), index=0
  BOUND
  ROOT c = pred[] compare(SIDES), direction=DIRECTION
}
ENTRY e {
  x = f32[4] parameter(0)
  n = T[] constant(START)
  end = T[] constant(END)
  state = (T[], f32[4], T[]) tuple(n, x, end)
  loop = (T[], f32[4], T[]) while(state), condition=condition, body=body
  ROOT r = f32[4] get-tuple-element(loop), index=1
}
"""
_USUAL = {
    "T": "s32", "START": "0", "END": "1", "BY": "1", "OP": "add(n, by)",
    "BOUND": "limit = T[] constant(END)", "SIDES": "n, limit", "DIRECTION": "LT",
}  # fmt: skip


def loop(**changes: str) -> hlo.Module:
    given = {**_USUAL, **changes}
    text = _LOOP
    for name in ("BOUND", *(key for key in given if key not in ("BOUND", "T"))):
        text = text.replace(name, given[name])
    module = hlo.parse(text.replace("T[]", f"{given['T']}[]"))
    hlo.verify(module)
    return module


@pytest.mark.parametrize(
    ("changes", "is_loop"),
    [
        ({}, False),
        ({"START": "1"}, False),  # no trip at all
        ({"START": "5"}, False),
        ({"OP": "add(by, n)"}, False),
        ({"BOUND": "limit = T[] get-tuple-element(s), index=2"}, False),
        ({"SIDES": "limit, n", "DIRECTION": "GT"}, False),
        ({"DIRECTION": "LE", "END": "0"}, False),
        ({"DIRECTION": "EQ", "END": "0"}, False),
        ({"DIRECTION": "NE"}, False),
        ({"START": "9", "END": "7", "BY": "-3", "DIRECTION": "GE"}, False),
        ({"END": "2"}, True),
        ({"DIRECTION": "LE"}, True),
        ({"OP": "multiply(n, by)"}, True),
        ({"OP": "add(n, n)"}, True),
        ({"BY": "0"}, True),  # without end
        ({"T": "s8", "START": "126", "END": "127", "BY": "5"}, True),  # it wraps around
        ({"T": "u8", "START": "1", "END": "0", "BY": "255", "DIRECTION": "GT"}, True),
    ],
)
def test_which_loops_are_left(changes: dict[str, str], is_loop: bool) -> None:
    module = loop(**changes)
    changed = single_trips(module)
    hlo.verify(changed)
    assert any(i.opcode == "while" for i in changed.entry.instructions) == is_loop
    if is_loop:
        assert changed is module
        return
    x = np.array([1.5, -2, 0.25, 3], np.float32)
    expected = interp.evaluate(module, x)
    for after in (changed, PASSES["simplify"](changed)):
        assert np.asarray(interp.evaluate(after, x)).tobytes() == expected.tobytes()
