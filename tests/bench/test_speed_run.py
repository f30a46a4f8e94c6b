"""A short real run: a tiny program, all processes, verdicts, page and history."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import CORPUS, ROOT, has_c_compiler

import backend_c
import hlo
from bench.speed import catalogue
from bench.speed.peers import ours
from bench.speed.process import Process
from bench.speed.session import Place
from bench.speed.verdicts import Memory, judge_digest, key, verdicts
from hlo import archive

PROGRAM = CORPUS / "jax" / "gelu_1k.before_optimizations.txt"


def ran(*options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "bench.speed", "--quick", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.skipif(not has_c_compiler(), reason="measures compiled C")
def test_run(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    page, kept = tmp_path / "page.md", tmp_path / "history.jsonl"
    wrong = tmp_path / "wrong.hlo"
    wrong.write_text("HloModule wrong\nENTRY main { ROOT x = f32[] parameter(0), }\n")
    options = ["--json", "--peers", "fast,exact,xla", "--write", str(page), "--keep"]
    options += ["--progress", "plain"]
    done = ran(*options, "--history", str(kept), str(PROGRAM), str(wrong))
    assert done.returncode == 2, done.stderr
    assert "hlo: measuring the machine" in done.stderr
    row, no_program = [json.loads(line) for line in done.stdout.splitlines()]
    assert "wrong.hlo" in no_program["error"] and not no_program["peers"]
    assert row["name"] == "gelu_1k" and set(row["peers"]) == {"fast", "exact", "xla"}
    for measured in row["peers"].values():
        assert measured["error"] is None
        assert measured["verdict"] in ("equal", "within")
        for clock in ("wall", "cpu"):
            assert 0 < measured[clock]["minimum"] <= measured[clock]["median"]
        assert measured["cold"] > 0 and measured["peak"] > 0
    assert row["peers"]["exact"]["verdict"] == "equal"
    assert row["limit"] > 0 and row["limit_one"] > 0
    assert "`gelu_1k`" in page.read_text()
    assert set(json.loads(kept.read_text())["programs"]) == {"gelu_1k"}


@pytest.mark.skipif(not has_c_compiler(), reason="compiles C")
def test_a_warm_cache_knows_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm cache knows the compiler's answers, so that the first program does not wait for
    them."""
    ours.warm_cache(tmp_path / "warm")
    monkeypatch.delattr("backend_c.probe.trial.sources")
    module = hlo.parse("HloModule m\nENTRY e { x = s8[2] parameter(0)\n ROOT y = s8[2] not(x) }")
    executable = backend_c.compile(module, cache=tmp_path / "warm")
    assert executable(np.array([0, 5], np.int8)).tolist() == [-1, -6]


def test_unknown_peer() -> None:
    done = ran("--peers", "nobody")
    assert done.returncode == 2
    assert "one of fast, exact, xla" in done.stdout


def test_results_are_compared_with_those_of_xla_where_there_is_no_time(tmp_path: Path) -> None:
    (program,) = catalogue.found([PROGRAM])
    place = Place(tmp_path, tmp_path)
    archive.write(place.arguments, [("p0", np.zeros(1000, np.float32))])
    results = {"fast": 1.25, "exact": np.inf, "xla": 1.0}
    for peer, value in results.items():
        archive.write(place.results(peer), [("r0", np.full(1000, value, np.float32))])
    found = verdicts(program, [*results], place, Memory(tmp_path / "memory.jsonl"), 0.0)
    assert (
        found["fast"].text == "not judged, off by 2e-01 from XLA's" and not found["fast"].is_wrong
    )
    assert found["exact"].is_wrong
    assert found["xla"].text == "not judged: no answer in 0 s"


def test_verdicts_are_of_a_judge_and_of_results(tmp_path: Path) -> None:
    (program,) = catalogue.found([PROGRAM])
    place = Place(tmp_path, tmp_path)
    archive.write(place.arguments, [("p0", np.zeros(1000, np.float32))])
    keys = []
    for value, judge in ((1.25, "one"), (1.25, "other"), (1.0, "one"), (1.25, "one")):
        archive.write(place.results("fast"), [("r0", np.full(1000, value, np.float32))])
        keys.append(key(program, "fast", place, judge))
    assert len(set(keys)) == 3 and keys[0] == keys[-1]
    assert judge_digest() == judge_digest() != judge_digest(hlo)


def test_process_that_dies_is_an_answer() -> None:
    with Process("bench.speed.no_such_module") as process:
        assert "no_such_module" in process.ask({"do": "anything"}, 60.0)["error"]
        assert "error" in process.ask({"do": "more"}, 60.0)


def test_process_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    (tmp_path / "silent.py").write_text("import sys\nsys.stdin.read()\n")
    with Process("silent", environment={"PYTHONPATH": str(tmp_path)}) as process:
        for _ in range(2):
            assert process.ask({"do": "anything"}, 0.1)["error"] == "no answer in 0.1 s"


def test_process_answers() -> None:
    with Process("bench.speed.worker") as process:
        assert process.ask({"do": "finish"}, 60.0)["peak"] > 0
        refused = process.ask({"do": "start", "peer": "nobody"}, 60.0)
        assert refused == {"error": "KeyError: 'nobody'"}
        assert process.ask({"do": "finish"}, 60.0)["peak"] > 0
