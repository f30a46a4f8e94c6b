"""A campaign on a real cluster of processes, one of which is killed, loses nothing.

What imports distributed, which takes a second, is imported by what is run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from conftest import ROOT
from test_local import Numbers

from fuzz.campaign import findings
from fuzz.campaign.directory import Directory, Totals
from fuzz.campaign.local import Limits
from fuzz.campaign.plan import Plan

_PLAN = Plan(4, ("printed",), 2)


@pytest.fixture
def cluster() -> Iterator[Any]:
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as made:
        yield made


def test_a_killed_worker_loses_nothing(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fuzz.campaign.cluster import run

    monkeypatch.setattr("fuzz.campaign.cluster._AHEAD", 1)  # so that one of 3 ranges has to wait
    looks: list[Counter[str]] = []
    limits = Limits(chunks=12, seconds=120.0)
    for total in run(tmp_path, _PLAN, limits, cluster.scheduler_address):
        if not looks:
            os.kill(cluster.workers[0].pid, signal.SIGKILL)
        looks.append(total.counts)
    assert looks[-1]["chunks"] == 12 and looks[-1]["programs"] == 24
    directory = Directory(tmp_path, _PLAN.facts)
    assert Totals(directory).read().counts == looks[-1]
    assert all(map(directory.has, range(12)))


def test_what_was_taken_in_part_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed while it takes a task's files loses none: a chunk counts as finished
    when all else is there. A finding's folder without finding.json is none."""
    files = {
        "chunks/000000.json": b'{"counts": {"programs": 2}}',
        "findings/killed/reduced.hlo": b"half",
        "findings/new/finding.json": b'{"times": 1}',
        "findings/new/reduced.hlo": b"whole",
    }
    directory = Directory(tmp_path, _PLAN.facts)
    (directory.findings / "new").mkdir()
    (directory.findings / "new" / "reduced.hlo").write_bytes(b"half")
    with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt):
        broken.setattr(findings, "take", mock.Mock(side_effect=KeyboardInterrupt))
        directory.take(files)
    assert not directory.has(0)
    directory.take(files)
    assert directory.has(0) and len(directory.found()) == 1
    assert (directory.findings / "new" / "reduced.hlo").read_bytes() == b"whole"


def test_files_come_back_as_they_are_and_findings_are_counted(tmp_path: Path) -> None:
    from fuzz.campaign.cluster import files_of

    assert sorted(files_of(_PLAN, range(1, 3), 1.0)) == ["chunks/000001.json", "chunks/000002.json"]
    directory = Directory(tmp_path, _PLAN.facts)
    finding = {"findings/key/finding.json": b'{"times": 2}', "findings/key/reduced.hlo": b"first"}
    directory.take(finding)
    directory.take({**finding, "findings/key/reduced.hlo": b"second"})
    assert (tmp_path / "findings/key/reduced.hlo").read_bytes() == b"first"
    assert '"times": 4' in (tmp_path / "findings/key/finding.json").read_text()


def test_an_example_that_ends_its_process_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fuzz.campaign.cluster import files_of

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(Path(__file__).parent)]))
    subject = Numbers(deadly=(6,))
    directory = Directory(tmp_path, subject.facts)
    directory.take(files_of(subject, range(1, 3), 1.0))
    assert Totals(directory).read().counts["numbers"] == 7
    (found,) = directory.found()
    assert (found["kind"], found["chunk"], found["program"]) == ("crash: SIGABRT", 1, 2)


_WAITING = """
import os, sys, time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
@dataclass(frozen=True)
class Waiting:
    path: Path
    facts, memory, seed, size = {}, None, 0, 1
    @contextmanager
    def examiner(self, done):
        self.path.with_suffix(".new").write_text(f"{os.getppid()} {os.getpid()}")
        self.path.with_suffix(".new").rename(self.path)
        time.sleep(600)
        yield
"""
_WORKER = """
import sys
from pathlib import Path
from fuzz.campaign.cluster import files_of
from waiting import Waiting
files_of(Waiting(Path(sys.argv[1])), range(1), 1.0)
"""


def test_a_task_ends_with_its_worker(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(_WAITING)
    told = tmp_path / "told"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    with subprocess.Popen([sys.executable, "-c", _WORKER, told], env=environment) as process:
        while not told.exists() and process.poll() is None:
            time.sleep(0.05)
        process.kill()
    end = time.monotonic() + 60
    for number in map(int, told.read_text().split()):
        with pytest.raises(ProcessLookupError):
            while time.monotonic() < end:
                os.kill(number, 0)
                time.sleep(0.05)
