"""The table of judging times: its page, what is kept, and a run of a tiny program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from conftest import CORPUS

from bench.judging import page
from bench.judging.__main__ import kept, rows_of
from bench.judging.one_program import Row
from bench.speed import catalogue
from interp.envelope.verdict import KINDS

ROW = Row("one", 0.5, 1.5, 20.0, 5.0, 2, dict.fromkeys(KINDS, 7), 10**9)


def test_the_goal_is_a_minute_or_twenty_times_the_interpreter() -> None:
    assert not page.is_missed(replace(ROW, judging=54.0))
    assert page.is_missed(replace(ROW, judging=56.0))
    assert not page.is_missed(replace(ROW, judging=560.0, interp=30.0))


def test_page() -> None:
    refused = Row("two", 0.5, 1.5, failure="refused")
    text = page.written([ROW, refused], [replace(ROW, judging=90.0)])
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert "| `one` | 95.0 | 25.0 | 20.0 | 5.0 | 2 |" in text and "`two`: refused" in text
    assert "1 of 1 programs" in text
    assert "95.0" not in page.written([ROW], [])


def test_rows_are_kept(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    state = tmp_path / "rows.jsonl"
    programs = catalogue.found([CORPUS / "jax" / "scalar_tiny.before_optimizations.txt"])
    (row,) = rows_of(programs, state)
    assert row.counts == {**dict.fromkeys(KINDS, 0), "equal": 1}
    assert row.interp > 0 and row.xla > 0 and row.programs == 1
    assert kept(state) == [row] == list(rows_of(programs, state))
