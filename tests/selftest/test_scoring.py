"""The parts of every score: choice of cases, shares of the time, journal, legal failures."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from selftest.scoring.outcomes import FAILED, PASSED, Journal, Outcome, shortened
from selftest.scoring.pages import is_legal
from selftest.scoring.runs import chosen, shares

WITHIN = "hlo_oracle: 3 equal, 1 within"
OUTSIDE = "hlo_oracle: 1 within, 1 outside"
DIFFERENT = Outcome("exp", "two", "x64", FAILED, "differs", f"{WITHIN}; cpu: {WITHIN}")
OUTCOMES = (Outcome("add", "one", "x64", PASSED), DIFFERENT)
NAMES = [(group, f"sample {n}") for group in ("add", "exp", "gradient of exp") for n in range(10)]


@pytest.mark.parametrize(
    "legal", ["", OUTSIDE, f"{WITHIN}, 1 undetermined", "hlo_oracle: not judged"]
)
def test_only_proven_values_are_legal(legal: str) -> None:
    assert is_legal(DIFFERENT)
    assert not is_legal(replace(DIFFERENT, legal=f"{legal}; cpu: {WITHIN}"))
    assert not is_legal(replace(DIFFERENT, status=PASSED))


def test_settings_have_equal_shares_of_the_time() -> None:
    assert shares(["x64", "x32"], 10) == [("x64", 5), ("x32", 10)]
    assert shares(["x32"], 10) == [("x32", 10)]
    assert shares(["x64", "x32"], inf) == [("x64", inf), ("x32", inf)]


def test_a_sample_has_one_in_n_of_each_group() -> None:
    parts = [chosen(NAMES, "", 4, seed) for seed in range(4)]
    assert sorted(name for part in parts for name in part) == sorted(NAMES)
    assert [len(part) for part in parts] == [9, 9, 6, 6]
    assert len(chosen(NAMES, "", 1000, 7)) == 3  # at least one
    assert {group for group, _ in chosen(NAMES, "exp", 1, 0)} == {"exp", "gradient of exp"}
    assert chosen(NAMES[::-1], "", 1, 0) == chosen(NAMES, "", 1, 0) != NAMES


def test_a_journal_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    for outcome in OUTCOMES:
        Journal(path, "fast").add(outcome)
    with path.open("a") as file:
        file.write('{"group": "cut o')
    kept = [replace(outcome, mode="fast") for outcome in OUTCOMES]
    assert list(Journal(path, "fast").outcomes.values()) == kept
    assert Journal(path, "exact").outcomes == {}


def test_a_reason_is_one_line() -> None:
    assert shortened("a\n  b") == "a b"
    assert len(shortened("a " * 1000)) == 300
