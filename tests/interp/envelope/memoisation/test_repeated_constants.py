"""Compute what follows from constants once for each budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hlo
from interp.envelope import budget
from interp.envelope.budget import EXACT, XLA_CPU
from interp.envelope.enclosure import point
from interp.envelope.evaluation import Enclosing, enclose
from interp.evaluator import evaluate

_LOOP = """HloModule m
body { s = (s32[], f32[3]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = f32[3] get-tuple-element(s), index=1
  one = s32[] constant(1)
  k = s32[] add(n, one)
  c = f32[] constant(0.3)
  b = f32[3] broadcast(c), dimensions={}
  e = f32[3] exponential(b)
  y = f32[3] multiply(x, e)
  ROOT r = (s32[], f32[3]) tuple(k, y) }
again { s = (s32[], f32[3]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  most = s32[] constant(4)
  ROOT r = pred[] compare(n, most), direction=LT }
ENTRY e { x = f32[3] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[3]) tuple(zero, x)
  w = (s32[], f32[3]) while(s), condition=again, body=body
  ROOT r = f32[3] get-tuple-element(w), index=1 }"""


def test_trips_compute_what_depends_on_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[str] = []
    compute = Enclosing._computed

    def noted(self: Enclosing, computation: Any, instruction: Any, *rest: Any) -> Any:
        computed.append(instruction.name)
        return compute(self, computation, instruction, *rest)

    monkeypatch.setattr(Enclosing, "_computed", noted)
    module, x = hlo.parse(_LOOP), np.float32([1, -2, 3])
    found = enclose(module, x, peer=XLA_CPU)
    assert [computed.count(name) for name in "bceyk"] == [1, 1, 1, 4, 4]
    assert found.followed == 4 + 4 * 9 + 5 * 3  # parameters are not followed
    assert (found.result.low <= evaluate(module, x)).all()
    assert (found.result.high >= evaluate(module, x)).all()


def test_each_budget_has_its_own() -> None:
    module = hlo.parse(_LOOP)
    body, evaluation = module.computation("body"), Enclosing(module)
    state = point(np.int32(0)), point(np.ones(3, np.float32))
    found = {}
    for peer in (XLA_CPU, EXACT, XLA_CPU):
        with budget.using(peer):
            found[peer.name] = evaluation.run(body, state)[1]
    assert found["exact"].is_point
    wide = found[XLA_CPU.name]
    assert (wide.low < found["exact"].low).all() and (found["exact"].low < wide.high).all()
