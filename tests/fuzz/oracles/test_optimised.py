"""A program and what a compiler's passes made of it, both evaluated by the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
from fuzz.oracles import ORACLES, Difference, LeftOut, Outcome
from fuzz.oracles.optimised import meaning_changed
from fuzz.reducer.search import Case

_BEFORE = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  d = f32[4] subtract(x, y)
  ROOT r = f32[4] multiply(d, x)
}
"""
_FUSED = """HloModule m, is_scheduled=true
fused {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  xx = f32[4]{0} multiply(x, x)
  yx = f32[4]{0} multiply(y, x)
  ROOT r = f32[4]{0} subtract(xx, yx)
}
ENTRY e {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  ROOT r = f32[4]{0} fusion(x, y), kind=kLoop, calls=fused
}
"""


def _case(text: str = _BEFORE) -> Case:
    numbers = np.array([3, 0.1, 1e-3, 7], np.float32)
    return Case(hlo.parse(text), (numbers, numbers[::-1].copy() / 3))


def _judged(after: str, before: str = _BEFORE) -> Outcome:
    return meaning_changed(_case(before), hlo.parse(after))


def test_what_only_rounds_otherwise_means_the_same() -> None:
    doubled = _BEFORE.replace("multiply(d, x)", "multiply(x, d)")
    assert _judged(doubled) is None
    outcome = _judged(_FUSED)
    assert not isinstance(outcome, Difference)


@pytest.mark.parametrize(
    "after",
    [_BEFORE.replace("subtract(x, y)", "subtract(y, x)"), _FUSED.replace("(y, x)", "(y, y)")],
)
def test_what_means_something_else_is_told(after: str) -> None:
    outcome = _judged(after)
    assert isinstance(outcome, Difference), outcome
    assert "changed" in outcome.detail


def test_other_arguments_are_left_out() -> None:
    assert isinstance(_judged(_BEFORE.replace("f32[4]", "f32[2,2]")), LeftOut)


def test_what_lies_beyond_a_bound_is_left_out() -> None:
    before = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  n = s32[] constant(2)
  z = f32[<=4] set-dimension-size(x, n), dimensions={0}
  d = f32[4] subtract(z, y)
  ROOT r = f32[4] multiply(d, x)
}
"""
    assert isinstance(_judged(_BEFORE, before), LeftOut)


def test_xla_keeps_the_meaning() -> None:
    pytest.importorskip("jaxlib")
    with ORACLES["xla-optimised"].open() as of:
        assert of([_case(), _case(_FUSED)]) == [None, None]
