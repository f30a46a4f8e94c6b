"""What findings are told apart by: the instruction to blame, its types, constants."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import hlo
from fuzz.campaign.chunk_range import work
from fuzz.campaign.directory import Directory
from fuzz.campaign.plan import Plan, cases
from fuzz.judge.blame import blamed
from fuzz.judge.failure import CRASH, Against, Failure, Judged
from fuzz.oracles import ORACLES, Difference, Outcome
from fuzz.oracles.oracle import Oracle, Property, stateless
from fuzz.peers.xla import Answer
from fuzz.reducer.search import Case
from hlo.values import arrays_of
from interp.envelope.budget import XLA_CPU
from tests.fuzz.planted import planted

_ROOTS = {
    "ROOT r = s8[2] convert(x)": "convert(f32) -> s8",
    "ROOT r = f32[2] add(x, x)": "add(f32) -> f32",
    "ROOT r = f32[2] power(x, b)": "power(f32, constant f32) -> f32",
    "ROOT r = f32[2] select(p, x, b)": "select(pred, f32, constant f32) -> f32",
    "ROOT r = f32[2] broadcast(c), dimensions={}": "broadcast(constant f32) -> f32",
    "n = f32[2] negate(x)\n  ROOT r = (f32[2], f32[2]) tuple(n, x)": "negate(f32) -> f32",
}


def _module(root: str) -> hlo.Module:
    return hlo.parse(f"""HloModule m
ENTRY e {{
  x = f32[2] parameter(0)
  p = pred[2] parameter(1)
  c = f32[] constant(2)
  b = f32[2] broadcast(c), dimensions={{}}
  {root}
}}
""")


@pytest.mark.parametrize(("root", "said"), _ROOTS.items())
def test_the_last_instruction_that_computes(root: str, said: str) -> None:
    module = _module(root)
    if "broadcast(c)" not in root:
        assert blamed(Case(module, ())) == said
    assert blamed(Case(module, ()), culprit=said.partition("(")[0]) == said


def test_a_culprit_is_blamed_before_the_last() -> None:
    module = _module("e = f32[2] exponential(x)\n  ROOT r = f32[2] reverse(e), dimensions={0}")
    assert blamed(Case(module, ())) == "reverse(f32) -> f32"
    assert blamed(Case(module, ()), culprit="exponential") == "exponential(f32) -> f32"
    assert blamed(Case(module, ()), culprit="sine") == "reverse(f32) -> f32"


def test_a_wrong_step_is_blamed() -> None:
    wrong = planted("floor", lambda x: x + np.float32(1))
    module = _module("f = f32[2] floor(x)\n  ROOT r = f32[2] reverse(f), dimensions={0}")

    def run(text: str, arrays: Sequence[np.ndarray]) -> Answer:
        return Answer(tuple(arrays_of(wrong(hlo.parse(text), tuple(arrays)))))

    case = Case(module, (np.array([0.5, 1], np.float32), np.array([True, False])))
    against = Against(run, XLA_CPU)
    failure = against.failure(case.module, case.arrays)
    culprit = against.culprit(case.module, case.arrays)
    assert blamed(case, failure, culprit) == "floor(f32) -> f32"


@contextmanager
def _narrow(name: str) -> Iterator[Property]:
    """An oracle that blames an instruction as long as it is open."""
    is_open = [True]

    def culprit(case: Case) -> str | None:
        assert is_open
        return "negate"

    def of(asked: Sequence[Case]) -> list[Outcome]:
        judged = Judged(Failure(CRASH, frozenset(["a"]), "SIGABRT"), XLA_CPU)
        told = Difference("crash: SIGABRT", "here", name, judged=judged, blame=culprit)
        return [told for _ in asked]

    yield of
    is_open.clear()


def test_a_narrower_oracle_blames_before_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, narrower in (("planted", "narrow"), ("narrow", "")):
        made = Oracle(name, "nothing", partial(_narrow, narrower), runs_c=False)
        monkeypatch.setitem(ORACLES, name, made)
    plan = Plan(3, ("planted",), 1)
    work(tmp_path, plan, range(1), 5.0)
    (kept,) = Directory(tmp_path, plan.facts).found()
    assert not kept["flaky"] and kept["blamed"]


def _converts_or_divides(asked: Sequence[Case]) -> list[Outcome]:
    """Speaks of every program with a convert or a divide, in the same words."""
    texts = (hlo.format(case.module) for case in asked)
    return [
        Difference("other bits", "here") if " convert(" in text or " divide(" in text else None
        for text in texts
    ]


def test_one_finding_does_not_hide_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs with two defects of one kind, of which the first may be known."""
    oracle = stateless("planted", "neither", _converts_or_divides)
    monkeypatch.setitem(ORACLES, "planted", replace(oracle, runs_c=False))
    plan = Plan(3, ("planted",), 20)
    work(tmp_path, plan, range(2), 5.0)
    found = Directory(tmp_path, plan.facts).found()
    told = [one["blamed"] for one in found]
    assert any(one.startswith("convert(") for one in told)
    assert any(one.startswith("divide(") for one in told)
    assert len({json.dumps([one["blamed"], one["opcodes"]]) for one in found}) == len(found)


def test_what_does_not_repeat_is_flaky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it fails: the worker goes on, and the program is kept as it is."""
    for times in (1, 2, 3):
        calls = count()

        def fails(asked: Sequence[Case], times: int = times, calls: count = calls) -> list[Outcome]:
            first: Outcome = Difference("other bits", "once") if next(calls) < times else None
            return [first, *[None] * (len(asked) - 1)]

        oracle = stateless("planted", "always", fails)
        monkeypatch.setitem(ORACLES, "planted", replace(oracle, runs_c=False))
        plan, path = Plan(3, ("planted",), 3), tmp_path / str(times)
        work(path, plan, range(1), 5.0)
        (kept,) = Directory(path, plan.facts).found()
        assert kept["kind"] == "other bits" and kept["flaky"]
        (folder,) = (path / "findings").iterdir()
        assert folder.name.startswith("flaky-planted-other-bits-")
        original = hlo.format(cases(plan, 0)[0].module)
        assert {file.read_text() for file in folder.glob("*.hlo")} == {original}
