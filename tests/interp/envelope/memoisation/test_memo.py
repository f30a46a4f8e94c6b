"""Evaluations that share a memo give what each gives alone, and compute less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import hlo
from hlo.values import arrays_of
from interp.envelope import budget
from interp.envelope.budget import EXACT, FAST, XLA_CPU
from interp.envelope.enclosure import Enclosure, point
from interp.envelope.evaluation import Enclosing, enclose
from interp.envelope.memoisation.memo import Memo

_LOOP = """HloModule m
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
body { s = (s32[], f32[3], f32[3]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = f32[3] get-tuple-element(s), index=1
  before = f32[3] get-tuple-element(s), index=2
  one = s32[] constant(1)
  k = s32[] add(n, one)
  e = f32[3] exponential(x)
  zero = f32[] constant(0)
  t = f32[] reduce(e, zero), dimensions={0}, to_apply=sum
  b = f32[3] broadcast(t), dimensions={}
  y = f32[3] divide(e, b)
  ROOT r = (s32[], f32[3], f32[3]) tuple(k, y, x) }
again { s = (s32[], f32[3], f32[3]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  most = s32[] constant(4)
  ROOT r = pred[] compare(n, most), direction=LT }
ENTRY e { x = f32[3] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[3], f32[3]) tuple(zero, x, x)
  w = (s32[], f32[3], f32[3]) while(s), condition=again, body=body
  y = f32[3] get-tuple-element(w), index=1
  ROOT r = f32[3] log(y) }"""


def _ends(value: Any) -> Sequence[bytes]:
    return [x.tobytes() for e in arrays_of(value) for x in (e.low, e.high, e.nan)]


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the instructions that are computed."""
    computed: list[str] = []
    compute = Enclosing._computed

    def noted(self: Enclosing, computation: Any, instruction: Any, *rest: Any) -> Any:
        computed.append(instruction.name)
        return compute(self, computation, instruction, *rest)

    monkeypatch.setattr(Enclosing, "_computed", noted)
    return computed


def test_an_evaluation_computes_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    module, x, memo = hlo.parse(_LOOP), np.float32([1, -2, 3]), Memo()
    alone = enclose(module, x, peer=XLA_CPU)
    first = enclose(module, x, peer=XLA_CPU, memo=memo)
    computed = _counted(monkeypatch)
    second = enclose(module, x, peer=XLA_CPU, memo=memo)
    assert set(computed) <= {"s", "w", "x", "r"}  # tuples are handed on, the loop is followed
    for found in first, second:
        assert _ends(found.result) == _ends(alone.result)
        assert (found.followed, found.openings) == (alone.followed, alone.openings)


def test_each_budget_and_operand_has_its_own() -> None:
    module, memo = hlo.parse(_LOOP), Memo()
    for peer in (XLA_CPU, FAST, EXACT, XLA_CPU):
        for x in (np.float32([1, -2, 3]), np.float32([0.0, 1, 2]), np.float32([-0.0, 1, 2])):
            alone = enclose(module, x, peer=peer)
            assert _ends(enclose(module, x, peer=peer, memo=memo).result) == _ends(alone.result)


def test_openings_are_told_each_time() -> None:
    text = """HloModule m
ENTRY e { x = f32[2] parameter(0)
  ROOT r = f32[2] power(x, x) }"""
    module, memo = hlo.parse(text), Memo()
    x = Enclosure(np.float32([-1, 1]), np.float32([1, 2]), np.zeros(2, bool))
    found = [enclose(module, x, peer=XLA_CPU, memo=memo).openings for _ in range(3)]
    assert found[0] and found[0] == found[1] == found[2]


def test_numbers_of_one_interval_are_not_equal_for_certain() -> None:
    """A memo gives the same interval of two trips, in which two numbers may differ."""
    text = """HloModule m
ENTRY e { x = f32[2] parameter(0)
  ROOT r = f32[2] exponential(x) }"""
    module, memo = hlo.parse(text), Memo()
    evaluation = Enclosing(module, None, memo)
    comparison = hlo.parse(
        "HloModule c\nENTRY e { x = f32[2] parameter(0)  y = f32[2] parameter(1)\n"
        "  ROOT r = pred[2] compare(x, y), direction=EQ }"
    )
    with budget.using(XLA_CPU):
        x = point(np.float32([0.5, 1.5]))
        one, other = (evaluation.run(module.entry, x) for _ in range(2))
        assert _ends(one) == _ends(other)
        equal = Enclosing(comparison).run(comparison.entry, one, other)
        same = Enclosing(comparison).run(comparison.entry, one, one)
    assert isinstance(equal, Enclosure) and not equal.low.any() and equal.high.all()
    assert same.low.all()


def test_one_value_given_twice_is_not_two_of_one_interval() -> None:
    text = """HloModule m
ENTRY e { s = (f32[2], f32[2]) parameter(0)
  x = f32[2] get-tuple-element(s), index=0
  y = f32[2] get-tuple-element(s), index=1
  ROOT r = pred[2] compare(x, y), direction=EQ }"""
    module, memo = hlo.parse(text), Memo()
    evaluation = Enclosing(module, None, memo)
    ends = np.float32([1, 2]), np.float32([2, 3]), np.zeros(2, bool)
    one, other = Enclosure(*ends), Enclosure(*ends)
    with budget.using(XLA_CPU):
        for _ in range(2):
            assert evaluation.run(module.entry, (one, one)).low.all()
            assert not evaluation.run(module.entry, (one, other)).low.any()


def test_each_pair_of_operands_is_one_value_or_two() -> None:
    memo, module = Memo(), hlo.parse("HloModule m\nENTRY e { ROOT x = f32[2] parameter(0) }")
    facts, root = memo.facts(module), module.entry.root_instruction
    ends = np.float32([1, 2]), np.float32([2, 3]), np.zeros(2, bool)
    one, other, third = (Enclosure(*ends) for _ in range(3))
    given = (one, other, third), (one, one, other), (one, other, one), (one, other, other)
    keys = [memo.key(facts, module.entry, root, XLA_CPU, operands) for operands in given]
    assert None not in keys and len(set(keys)) == 4


def test_what_is_seldom_known_is_no_longer_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    module, memo = hlo.parse(_LOOP), Memo()
    for number in range(80):  # of four trips each
        x = np.float32([number / 99, 1, 2])
        found = enclose(module, x, peer=XLA_CPU, memo=memo)
    computed = _counted(monkeypatch)
    assert _ends(enclose(module, x, peer=XLA_CPU, memo=memo).result) == _ends(found.result)
    assert computed.count("e") == 4 and computed.count("one") <= 1
