"""Programs that mean nothing for their arguments are told with the reason, and not run."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
from fuzz.judge.failure import Against
from fuzz.judge.undefined_behaviour import damaging, undefined
from fuzz.peers.xla import Answer
from interp.envelope.budget import XLA_CPU

_TWO = "a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
_COMPUTATIONS = f"""le {{ {_TWO} ROOT c = pred[] compare(a, b), direction=LE }}
lt {{ {_TWO} ROOT c = pred[] compare(a, b), direction=LT }}
total {{ {_TWO} ROOT c = pred[] compare(a, b), direction=LT, type=TOTALORDER }}
"""


def _text(lines: str) -> str:
    return f"HloModule m\n{_COMPUTATIONS}ENTRY e {{\n {lines}\n}}\n"


_MEANINGLESS = {
    "a sort by what is no strict weak order: element [0] (1.0) comes before itself;"
    " compare by LT or GT, not by LE or GE": (
        "k = f32[3] parameter(0)\n ROOT r = f32[3] sort(k), dimensions={0}, to_apply=le",
        (np.ones(3, np.float32),),
    ),
    "a dynamic-reshape to other sizes": (
        "x = f32[3] parameter(0)\n n = s32[] parameter(1)\n"
        " ROOT r = f32[<=3] dynamic-reshape(x, n)",
        (np.ones(3, np.float32), np.int32(2)),
    ),
    "a size of 4 for a bound of 3": (
        "x = f32[3] parameter(0)\n n = s32[] parameter(1)\n"
        " ROOT r = f32[<=3] set-dimension-size(x, n), dimensions={0}",
        (np.ones(3, np.float32), np.int32(4)),
    ),
}


@pytest.mark.parametrize("why", _MEANINGLESS)
def test_what_means_nothing_is_not_even_run(why: str) -> None:
    lines, arguments = _MEANINGLESS[why]
    against = Against(lambda text, arrays: Answer(crash="SIGSEGV"), XLA_CPU)
    assert against.failure(hlo.parse(_text(lines)), arguments) is None
    assert against.refusal == f"the program means nothing: %r: {why}"
    defined = [arguments[0], *(np.int32(3) for _ in arguments[1:])]
    assert against.failure(hlo.parse(_text(lines.replace("=le", "=lt"))), defined) is not None


def test_a_nan_among_what_is_sorted_is_named() -> None:
    lines = "k = f32[2,3] parameter(0)\n ROOT r = f32[2,3] sort(k), dimensions={1}, to_apply=lt"
    given = np.float32([[1, 2, 3], [5, np.nan, 4]])
    module = hlo.parse(_text(lines))
    assert undefined(module, [given]) == (
        "%r: a sort by what is no strict weak order: element [1,1] (nan) is level with element"
        " [1,0] (5.0) and with element [1,2] (4.0), of which one comes before the other;"
        " compare by total order (type=TOTALORDER), or leave NaN out"
    )
    assert damaging(module, [given]) is None
    total = lines.replace("to_apply=lt", "to_apply=total")
    for defined, text in ((given[:1], lines), (given, total)):
        padded = np.broadcast_to(defined, (2, 3)).copy()
        assert undefined(hlo.parse(_text(text)), [padded]) is None


def test_a_loop_of_elements_is_named() -> None:
    """Each of 0, 1 and 2 comes before the next, and 2 before 0."""
    text = """HloModule m
next { a = s32[] parameter(0)
 b = s32[] parameter(1)
 three = s32[] constant(3)
 one = s32[] constant(1)
 d = s32[] subtract(b, a)
 up = s32[] add(d, three)
 r = s32[] remainder(up, three)
 ROOT c = pred[] compare(r, one), direction=EQ }
ENTRY e { k = s32[3] parameter(0)
 ROOT r = s32[3] sort(k), dimensions={0}, to_apply=next }
"""
    why = undefined(hlo.parse(text), [np.arange(3, dtype=np.int32)])
    assert why == (
        "%r: a sort by what is no strict weak order: element [0] (0) comes before element [1] (1)"
        " and that before element [2] (2), but the first not before the last"
    )
