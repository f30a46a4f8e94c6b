"""Check that texts that crash XLA's parser are found, and reduced to the characters that matter."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hlo
from fuzz.campaign import findings, local
from fuzz.campaign.findings import Origin
from fuzz.campaign.oracle_examiner import OracleExaminer
from fuzz.campaign.plan import Plan
from fuzz.campaign.subject import whole
from fuzz.oracles import ORACLES, Difference, parsing
from fuzz.oracles.parsing import texts
from fuzz.peers.xla import Answer
from fuzz.reducer.search import Case
from fuzz.reducer.texts import shortest

_CASE = Case(
    hlo.parse("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] tan(x)\n}"),
    (np.zeros(4, np.float32),),
)


class _Peer:
    """A parser that dies of every text with a brace and no ENTRY."""

    def __enter__(self) -> _Peer:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def parsed(self, text: str) -> Answer:
        if "{" in text and "ENTRY" not in text:
            return Answer(crash="SIGABRT: F1121 10:00:00.0 1 hlo_parser.cc:12] Check failed: x")
        return Answer(error="no") if "ENTRY" not in text else Answer(optimised="")


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "XLA", lambda timeout, memory: _Peer())
    monkeypatch.setitem(ORACLES, "xla-parses", replace(ORACLES["xla-parses"], runs_c=False))


def test_texts_are_the_same_for_a_program() -> None:
    assert [*texts(_CASE)] == [*texts(_CASE)]
    assert len({*texts(_CASE)}) > 4


def test_what_breaks_the_parser_is_kept(parser: None, tmp_path: Path) -> None:
    plan = Plan(1, ("xla-parses",), 20)
    limits = local.Limits(3, 60, reducing=10)
    for _ in local.run(tmp_path, plan, limits, 0):
        pass
    (folder,) = (tmp_path / "findings").iterdir()
    told = json.loads((folder / "finding.json").read_text())
    assert (told["kind"], told["characters"]) == ("crash: hlo_parser.cc:12]", 1)
    assert (folder / "reduced.txt").read_text() == "{"
    assert "{" in (folder / "original.txt").read_text()


def test_crashes_of_the_parser_without_a_place_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, parser: None, tmp_path: Path
) -> None:
    """Damaged memory ends it at a tan and at a sort: these are two findings, and a hang is one."""

    def parsed(peer: _Peer, text: str) -> Answer:
        if " tan(" in text or " sort(" in text:
            return Answer(crash="SIGSEGV")
        return Answer(crash="no answer in 10 s") if " tanh(" in text else Answer(error="no")

    monkeypatch.setattr(_Peer, "parsed", parsed)
    drawn = [f"HloModule m\nENTRY e {{\n  x = f32[4] {op}(y)\n}}\n" for op in _ENDING]
    monkeypatch.setattr(parsing, "texts", lambda case: drawn[len(case.arrays) :])
    cases = [Case(_CASE.module, (np.zeros(1),) * n) for n in range(len(drawn))]
    with parsing.xla_parses() as of:
        examiner = OracleExaminer(lambda number: cases, {"xla-parses": of})
        for suspect in whole(examiner.chunk(0)).suspects:
            assert not findings.is_known(tmp_path, suspect)
            small = examiner.reduced(suspect, 0, 5.0)
            findings.keep(tmp_path, "xla-parses", small, Origin(0, 0, suspect.example))
    told = {(one["kind"], *one["opcodes"]): one["times"] for one in findings.all_kept(tmp_path)}
    crash = "crash: SIGSEGV"
    assert told == {(crash, "tan"): 2, (crash, "sort"): 1, ("hang: hang", "tanh"): 1}


_ENDING = ("tan", "sort", "tanh", "tan")


def test_a_text_is_reduced_in_time() -> None:
    text = "one {\n two }\nthree {\n"
    assert shortest(text, lambda shorter: "{" in shorter, 60) == "{"
    assert shortest(text, lambda shorter: "{" in shorter, 0) == text


def test_xla_refuses_or_reads_them() -> None:
    pytest.importorskip("jaxlib")
    with ORACLES["xla-parses"].open() as of:
        (found,) = of([_CASE])
    assert found is None or (isinstance(found, Difference) and found.text is not None)
