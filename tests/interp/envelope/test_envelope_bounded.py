"""Bounded results of a compiler: in the room of their bounds, or of their actual sizes."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from interp.envelope.budget import XLA_CPU
from interp.envelope.evaluation import enclose
from interp.envelope.judgement import Judge
from interp.envelope.verdict import EQUAL, OUTSIDE


def test_the_room_of_a_bounded_result() -> None:
    """XLA returns it whole; what counts is within the actual size."""
    module = hlo.parse("""HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  n = s32[] constant(2)
  ROOT r = f32[<=4] set-dimension-size(x, n), dimensions={0}
}
""")
    x = np.arange(4, dtype=np.float32)
    judge = Judge(module, [x], [("", interp.evaluate(module, x))], peer=XLA_CPU)
    assert (
        judge.judged([x + np.array([0, 0, 9, 9], np.float32)], lambda other: None).counts[EQUAL]
        == 2
    )
    assert judge.judged([x + 1], lambda other: None).counts[OUTSIDE] == 2
    assert judge.judged([x[:3]], lambda other: None).mismatch is not None


def test_elements_of_bounded_rows_are_one_after_the_other() -> None:
    """Elements of bounded rows may be packed, as XLA:CPU 0.10 returns them: 1 2 4 5, then old
    contents of memory."""
    module = hlo.parse("""HloModule m
ENTRY e {
  x = s32[2,3] parameter(0)
  n = s32[] constant(2)
  ROOT r = s32[2,<=3] set-dimension-size(x, n), dimensions={1}
}
""")
    x = np.arange(1, 7, dtype=np.int32).reshape(2, 3)
    judge = Judge(module, [x], [("", interp.evaluate(module, x))], peer=XLA_CPU)
    packed = np.array([[1, 2, 4], [5, 77, 99]], np.int32)
    assert judge.judged([packed], lambda other: None).counts[EQUAL] == 4


def test_a_token_after_a_bounded_array() -> None:
    module = hlo.parse("""HloModule m
ENTRY e {
  x = s32[3] parameter(0)
  n = s32[] constant(2)
  b = s32[<=3] set-dimension-size(x, n), dimensions={0}
  t = token[] after-all(b)
  ROOT r = s32[<=3] add-dependency(b, t)
}
""")
    x = np.arange(3, dtype=np.int32)
    judge = Judge(module, [x], [("", interp.evaluate(module, x))], peer=XLA_CPU)
    assert judge.judged([x[:2]], lambda other: None).counts[EQUAL] == 2
    assert judge.judged([x[:2] + 1], lambda other: None).counts[OUTSIDE] == 2


@pytest.mark.parametrize(
    "sized",
    [
        "r = f32[<=4] set-dimension-size(y, n), dimensions={0}",
        "r = f32[<=4] dynamic-reshape(y, n)",
    ],
)
def test_sizes_move_elements(sized: str) -> None:
    """Setting a size moves elements: their intervals stay as narrow as they are."""
    text = f"""HloModule m
ENTRY e {{
  x = f32[4] parameter(0)
  y = f32[4] exponential(x)
  n = s32[] constant(4)
  ROOT {sized}
}}
"""
    x = np.arange(4, dtype=np.float32)
    moved = enclose(hlo.parse(text), x, peer=XLA_CPU).result
    made = enclose(hlo.parse(text.replace("ROOT ", "").replace("  y", "  ROOT y")), x, peer=XLA_CPU)
    assert (moved.low == made.result.low).all() and (moved.high == made.result.high).all()
    assert not moved.nan.any()


@pytest.mark.parametrize("size", [0, 1, 4])
@pytest.mark.parametrize("factor", ["f32[] constant(inf)", "s32[] constant(3)"])
@pytest.mark.parametrize("result", ["f32", "s32"])
def test_a_product_that_may_be_anything_has_the_size_of_its_operands(
    size: int, factor: str, result: str
) -> None:
    """It once had that of their bounds, and no results could be compared with it."""
    module = hlo.parse(f"""HloModule m
ENTRY e {{
  x = f32[3,4] parameter(0)
  n = s32[] constant({size})
  b = f32[3,<=4] set-dimension-size(x, n), dimensions={{1}}
  y = {factor}
  ROOT r = {result}[3,<=4] dot(b, y)
}}
""")
    x = np.ones((3, 4), np.float32)
    exact = np.asarray(interp.evaluate(module, x))
    assert exact.shape == (3, size)
    judge = Judge(module, [x], [("", exact)], peer=XLA_CPU)
    assert judge.judged([exact], lambda other: None).mismatch is None
