"""Campaigns: the same programs for a seed, nothing done twice or lost, findings told apart."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT

import hlo
from fuzz.campaign import local
from fuzz.campaign.chunk_range import work
from fuzz.campaign.directory import Directory, Totals
from fuzz.campaign.plan import Plan, cases
from fuzz.oracles import ORACLES, Difference, Outcome
from fuzz.oracles.isolation import guarded
from fuzz.oracles.oracle import Property, stateless
from fuzz.reducer.search import Case
from hlo.errors import ArgumentError, Error


def _no_select(found: Sequence[Case]) -> list[Outcome]:
    """Speaks of every program with a select, as if that were a defect."""
    return [
        Difference("selects", "here") if " select(" in hlo.format(case.module) else None
        for case in found
    ]


def _crowded(found: Sequence[Case]) -> list[Outcome]:
    """Speaks of many programs at once, and of none alone."""
    return [Difference("many", "here") if len(found) > 1 else None, *[None] * (len(found) - 1)]


def _ends(found: Sequence[Case]) -> list[Outcome]:
    """Ends its process at a negate."""
    if any(" negate(" in hlo.format(case.module) for case in found):
        os.abort()
    return [None] * len(found)


def _ending() -> AbstractContextManager[Property]:
    return nullcontext(_ends)


_TURNS = range(14)
_DIGEST = """
import hashlib, pickle, sys
import fuzz.campaign.plan as plan
for number in map(int, sys.argv[1:]):
    drawn = [(c.module, c.arrays) for c in plan.cases(plan.Plan(3, ('printed',), 5), number)]
    print(hashlib.sha256(pickle.dumps(drawn)).hexdigest())
"""


def test_a_chunk_is_the_same_in_another_process() -> None:
    """A chunk is the same in another process, whatever is loaded there and whichever chunks were
    drawn before."""
    told = []
    for before, numbers in (("", _TURNS), ("import fuzz.campaign.worker, jax", reversed(_TURNS))):
        command = [sys.executable, "-c", before + _DIGEST, *map(str, numbers)]
        told.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    first, second = (text.splitlines() for text in told)
    assert first == second[::-1] and len(set(first)) == len(_TURNS)


def test_findings_are_reduced_and_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = stateless("planted", "no select", _no_select)
    monkeypatch.setitem(ORACLES, "planted", replace(oracle, runs_c=False))
    plan = Plan(1, ("planted",), 30)
    work(tmp_path, plan, range(2), 5.0)
    directory = Directory(tmp_path, plan.facts)
    assert Totals(directory).read().counts["programs"] == 60
    violated = Totals(directory).read().counts["planted: violated"]
    told = [json.loads(file.read_text()) for file in directory.findings.glob("*/finding.json")]
    assert sum(kept["times"] for kept in told) == violated > 1
    assert len({(kept["blamed"], *kept["opcodes"]) for kept in told}) == len(told) < violated
    assert any(kept["opcodes"] == ["select"] and kept["instructions"] <= 4 for kept in told)
    for file in directory.findings.glob("*/finding.json"):
        kept = json.loads(file.read_text())
        assert kept["kind"] == "selects" and "select" in kept["opcodes"]
        small = hlo.parse((file.parent / "reduced.hlo").read_text())
        hlo.verify(small)
        original = cases(plan, kept["chunk"])[kept["program"]]
        assert hlo.format(original.module) == (file.parent / "original.hlo").read_text()


def test_what_only_many_programs_show_is_kept_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = stateless("planted", "few at once", _crowded, together=True)
    monkeypatch.setitem(ORACLES, "planted", replace(oracle, runs_c=False))
    plan = Plan(1, ("planted",), 3)
    work(tmp_path, plan, range(1), 5.0)
    (told,) = Directory(tmp_path, plan.facts).findings.glob("*/finding.json")
    assert json.loads(told.read_text())["kind"] == "many"
    original = hlo.format(cases(plan, 0)[0].module)
    assert {path.read_text() for path in told.parent.glob("*.hlo")} == {original}


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    plan = Plan(1, ("printed",), 3)
    work(tmp_path, plan, range(2), 1.0)
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "chunks").iterdir()}
    (tmp_path / "chunks" / "000001.json").unlink()
    work(tmp_path, plan, range(3), 1.0)
    assert len(list((tmp_path / "chunks").iterdir())) == 3
    kept = tmp_path / "chunks" / "000000.json"
    assert kept.stat().st_mtime_ns == written[kept]
    assert not list((tmp_path / "claims").iterdir())
    with pytest.raises(ArgumentError, match="another campaign"):
        Directory(tmp_path, Plan(2, ("printed",), 3).facts)


_CLAIM = """
import os, signal, sys
from pathlib import Path
from fuzz.campaign.directory import Directory
from fuzz.campaign.plan import Plan
directory = Directory(Path(sys.argv[1]), Plan(1, ("printed",)).facts)
print(directory.claim(0), directory.claim(1), end="", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_claim_counts_as_long_as_its_process_lives(tmp_path: Path) -> None:
    """The claims of a killed process are free, whatever it wrote there, and on whatever host."""
    facts = Plan(1, ("printed",)).facts
    with closing(Directory(tmp_path, facts)) as one, closing(Directory(tmp_path, facts)) as other:
        assert one.claim(0)
        command = [sys.executable, "-c", _CLAIM, str(tmp_path)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=environment, check=False, stdout=subprocess.PIPE)
        assert done.stdout == b"False True" and done.returncode == -signal.SIGKILL
        (tmp_path / "claims" / "000002").write_text("")
        (tmp_path / "claims" / "000003").write_text("another 1")
        assert [number for number in range(5) if other.is_open(number)] == [1, 2, 3, 4]
        assert [number for number in range(5) if other.claim(number)] == [1, 2, 3, 4]
        assert not any(map(one.is_open, range(5)))
        one.release(0)
        assert other.claim(0) and not one.claim(0)


def test_a_worker_that_dies_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_LOOK", 0.02)
    plan, killed = Plan(2, ("printed",), 4), False
    for total in local.run(tmp_path, plan, local.Limits(20, 120.0), 2):
        if not killed and total.counts["chunks"]:
            multiprocessing.active_children()[0].kill()
            killed = True
    assert killed
    assert total.counts["chunks"] == 20 and total.counts["programs"] == 80


def test_a_campaign_whose_workers_all_die_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(local, "_LOOK", 0.02)
    monkeypatch.setattr(local, "_MOST_DEATHS", 3)
    with pytest.raises(Error, match="workers died"):
        list(local.run(tmp_path, Plan(2, ("no compiler",), 4), local.Limits(2, 120.0), 2))
    assert "FileNotFoundError" in capfd.readouterr().err


_CAMPAIGN = """
import sys
from pathlib import Path
from fuzz.campaign import local
from fuzz.campaign.plan import Plan
if __name__ == "__main__":
    limits = local.Limits(100_000, 120.0)
    for _ in local.run(Path(sys.argv[1]), Plan(4, ("printed",), 2), limits, 1):
        pass
"""


def _claimant(claims: Path) -> int | None:
    """A process that is at work on a chunk now."""
    for claim in claims.glob("*"):
        with suppress(FileNotFoundError):  # it was done meanwhile
            words = claim.read_text().split()
            if len(words) == 2:
                return int(words[1])
    return None


def test_workers_end_with_what_started_them(tmp_path: Path) -> None:
    script, claims = tmp_path / "campaign.py", tmp_path / "corpus" / "claims"
    script.write_text(_CAMPAIGN)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, script, claims.parent], env=environment) as process:
        while (worker := _claimant(claims)) is None:
            time.sleep(0.05)
        process.kill()
    end = time.time() + 60
    with pytest.raises(ProcessLookupError):
        while time.time() < end:
            os.kill(worker, 0)
            time.sleep(0.1)
        os.kill(worker, signal.SIGKILL)


def test_a_program_that_ends_its_process_is_found() -> None:
    texts = [
        f"HloModule m\nENTRY e {{\n  x = f32[2] parameter(0)\n  ROOT r = f32[2] {name}(x)\n}}\n"
        for name in ("abs", "negate", "cosine")
    ]
    found = [Case(hlo.parse(text), ()) for text in texts]
    with guarded(_ending) as of:
        assert [type(outcome) for outcome in of(found)] == [type(None), Difference, type(None)]
