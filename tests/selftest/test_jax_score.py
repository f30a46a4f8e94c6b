"""The score of JAX's functions: its counting, and a handful of cases on both platforms."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from selftest.jax_score.table import SKIPPED, markdown, rows
from selftest.scoring.outcomes import FAILED, PASSED, REFUSED, Outcome

SESSION = Path(__file__).with_name("jax_score_session.py")
WITHIN = "hlo_oracle: 3 equal, 1 within"
DIFFERENT = Outcome("lax.exp", "two", "x64", FAILED, "differs", f"{WITHIN}; cpu: {WITHIN}")
OUTCOMES = (
    Outcome("lax.add", "one", "x64", PASSED),
    DIFFERENT,
    Outcome("jax.nn", "three", "x32", REFUSED, "no C for it", interpreted="no C for it"),
    Outcome("jax.nn", "four", "x32", SKIPPED, "unimplemented"),
)


def test_rows_count_what_xla_runs() -> None:
    lax, nn, total = rows(OUTCOMES)
    assert (nn.module, nn.run, nn.refused, nn.skipped, nn.interpreted) == ("jax.nn", 1, 1, 1, 1)
    assert (lax.run, lax.passed, lax.failed, lax.legal) == (2, 1, 1, 1)
    assert (total.run, total.passed + total.failed + total.refused) == (3, 3)


def test_each_failure_is_named() -> None:
    text = markdown(OUTCOMES, "how")
    assert f"* `lax.exp: two` (x64): differs ({WITHIN}; cpu: {WITHIN})" in text
    assert "* `jax.nn: three` (x32): no C for it" in text


def test_cases_of_each_kind_pass() -> None:
    """A harness, a record of lax, a call with its transformations; what differs is said."""
    pytest.importorskip("jax")
    pytest.importorskip("absl")
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environ = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-W", "ignore", str(SESSION)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("as expected\n", 0), done.stderr
