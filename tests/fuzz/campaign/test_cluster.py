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

import pytest

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


def test_files_come_back_as_they_are_and_findings_are_counted(tmp_path: Path) -> None:
    from fuzz.campaign.cluster import files_of

    assert sorted(files_of(_PLAN, range(1, 3), 1.0)) == ["chunks/000001.json", "chunks/000002.json"]
    directory = Directory(tmp_path, _PLAN.facts)
    finding = {"findings/key/finding.json": b'{"times": 2}', "findings/key/reduced.hlo": b"first"}
    directory.take(finding)
    directory.take({**finding, "findings/key/reduced.hlo": b"second"})
    assert (tmp_path / "findings/key/reduced.hlo").read_bytes() == b"first"
    assert '"times": 4' in (tmp_path / "findings/key/finding.json").read_text()
