"""The score of PyTorch's operations: its counting, and a handful of cases as C and in eager."""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from hlo.errors import Error
from selftest.scoring.outcomes import FAILED, PASSED, REFUSED, Outcome
from selftest.torch_score.__main__ import _types, main
from selftest.torch_score.table import DATA, RANDOM, UNSPECIFIED, markdown, rows
from selftest.torch_score.unspecified import Unspecified, table

SESSION = Path(__file__).with_name("torch_score_session.py")
WHY = "aten.svd: 95: %svd = custom-call: no C for the custom call target 'gesdd'; there is for X"
OUTCOMES = (
    Outcome("add", "sample 1", "int64", PASSED),
    Outcome(
        "exp", "sample 2", "float32", FAILED, "differs", "hlo_oracle: 3 within; eager: 3 equal"
    ),
    Outcome("svd", "sample 2", "float32", REFUSED, WHY),
    Outcome("svd", "sample 3", "float32", REFUSED, WHY.replace("95", "96")),
    Outcome("gradient of svd", "sample 3", "float64", REFUSED, WHY),
    Outcome("bernoulli", "sample 1", "float32", RANDOM),
    Outcome("nonzero", "sample 1", "float32", DATA, "its error"),
    Outcome("empty", "sample 1", "float32", UNSPECIFIED, "its reason"),
)


def test_rows_count_by_type_and_direction() -> None:
    of_int64, of_float32, gradients, total = rows(OUTCOMES)
    assert (of_int64.type, of_int64.run, of_int64.passed) == ("int64", 1, 1)
    assert (of_float32.what, of_float32.run, of_float32.failed) == ("operations", 3, 1)
    assert (of_float32.legal, of_float32.refused, of_float32.others) == (1, 2, (1, 1, 0, 1, 0))
    assert (gradients.type, gradients.what, gradients.refused) == ("float64", "gradients", 1)
    assert (total.run, total.passed + total.failed + total.refused) == (5, 5)


def test_failures_are_named_and_refusals_counted_by_reason() -> None:
    text = markdown(OUTCOMES, "how")
    assert "* `exp: sample 2` (float32): differs (hlo_oracle: 3 within; eager: 3 equal)" in text
    why = "aten.svd: no C for the custom call target 'gesdd'"
    assert f"* 3: {why}: `gradient of svd`, `svd` (float64, float32)" in text
    assert "* 1: its reason" in text and "* 1: its error" in text


def test_what_is_unspecified_has_a_reason() -> None:
    assert all(one.reason for one in table().values())
    assert list(table()) == sorted(table())
    assert Unspecified("", ()).covers(3) and not Unspecified("", (1,)).covers(3)


def test_types_are_those_of_the_list() -> None:
    assert _types("float32,bool") == ["float32", "bool"]
    with pytest.raises(argparse.ArgumentTypeError, match="type 'float3': there are float32, "):
        _types("float32,float3")


def test_what_is_missing_is_named() -> None:
    needed = {"torch": "torch", "jax": "torch", "expecttest": "torch-score"}
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if not missing:
        pytest.skip("nothing is missing")
    with pytest.raises(Error, match=rf"{missing[0]} .* 'hlo-oracle\[{needed[missing[0]]}\]'"):
        main([])


def test_cases_of_each_status() -> None:
    for package in ("torch", "jax", "expecttest"):
        pytest.importorskip(package)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environ = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-W", "ignore", str(SESSION)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("as expected\n", 0), done.stderr
