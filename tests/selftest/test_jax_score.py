"""The score of JAX's functions: its counting, and a handful of cases on both platforms."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from conftest import ROOT

from selftest.jax_score.__main__ import shares
from selftest.jax_score.outcomes import FAILED, PASSED, REFUSED, SKIPPED, Journal, Outcome
from selftest.jax_score.table import is_legal, markdown, rows

SESSION = Path(__file__).with_name("jax_score_session.py")
WITHIN = "hlo_oracle: 3 equal, 1 within"
OUTSIDE = "hlo_oracle: 1 within, 1 outside"
DIFFERENT = Outcome("lax.exp", "two", True, FAILED, "differs", f"{WITHIN}; cpu: {WITHIN}")
OUTCOMES = (
    Outcome("lax.add", "one", True, PASSED),
    DIFFERENT,
    Outcome("jax.nn", "three", False, REFUSED, "no C for it", interpreted="no C for it"),
    Outcome("jax.nn", "four", False, SKIPPED, "unimplemented"),
)


def test_rows_count_what_xla_runs() -> None:
    lax, nn, total = rows(OUTCOMES)
    assert (nn.module, nn.run, nn.refused, nn.skipped, nn.interpreted) == ("jax.nn", 1, 1, 1, 1)
    assert (lax.run, lax.passed, lax.failed, lax.legal) == (2, 1, 1, 1)
    assert (total.run, total.passed + total.failed + total.refused) == (3, 3)


@pytest.mark.parametrize(
    "legal", ["", OUTSIDE, f"{WITHIN}, 1 undetermined", "hlo_oracle: not judged"]
)
def test_only_proven_values_are_legal(legal: str) -> None:
    assert is_legal(DIFFERENT)
    assert not is_legal(replace(DIFFERENT, legal=f"{legal}; cpu: {WITHIN}"))


def test_both_widths_have_their_share_of_the_time() -> None:
    assert shares("both", 10) == [(True, 5), (False, 10)]
    assert shares("off", 10) == [(False, 10)] and shares("on", 10) == [(True, 10)]
    assert shares("both", inf) == [(True, inf), (False, inf)]


def test_each_failure_is_named() -> None:
    text = markdown(OUTCOMES, "how")
    assert f"* `lax.exp: two` (x64): differs ({WITHIN}; cpu: {WITHIN})" in text
    assert "* `jax.nn: three` (x32): no C for it" in text


def test_a_journal_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    for outcome in OUTCOMES:
        Journal(path, "fast").add(outcome)
    with path.open("a") as file:
        file.write('{"group": "cut o')
    kept = [replace(outcome, mode="fast") for outcome in OUTCOMES]
    assert list(Journal(path, "fast").outcomes.values()) == kept
    assert Journal(path, "exact").outcomes == {}


def test_cases_of_each_kind_pass() -> None:
    """A harness, a record of lax, a call with its transformations; what differs is said."""
    pytest.importorskip("jax")
    pytest.importorskip("absl")
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environ = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-W", "ignore", str(SESSION)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("as expected\n", 0), done.stderr
