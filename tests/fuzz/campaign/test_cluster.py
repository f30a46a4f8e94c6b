"""A campaign on a real cluster of processes, one of which is killed, loses nothing.

What imports distributed, which takes a second, is imported by what is run.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

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
