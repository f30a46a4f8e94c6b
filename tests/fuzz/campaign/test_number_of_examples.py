"""A campaign of N examples draws N, and a longer one goes on with its last chunk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_local import Numbers

from fuzz.campaign import local
from fuzz.campaign.subject import Chunk
from fuzz.campaign.worker import End


def ran(path: Path, examples: int, workers: int = 0, **given: Any) -> Chunk:
    subject = Numbers(**given)
    limits = local.Limits(-(-examples // subject.size), 120.0, examples=examples)
    return [*local.run(path, subject, limits, workers)][-1]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("examples", [1, 4, 6])
def test_as_many_as_were_asked_for(tmp_path: Path, examples: int, workers: int) -> None:
    total = ran(tmp_path, examples, workers, odd=(0, 5))
    assert {*total.tallies["seen"]} == {*map(str, range(examples))}
    assert total.counts["chunks"] == examples // 4


def test_a_longer_campaign_goes_on(tmp_path: Path) -> None:
    for examples in (1, 3, 3, 2, 9):
        total = ran(tmp_path, examples)
    assert total.tallies["seen"] == {str(n): 1 for n in range(9)}
    assert total.counts["chunks"] == 2


def test_examples_that_kill_a_worker_are_counted_too(tmp_path: Path) -> None:
    total = ran(tmp_path, 6, 1, killed=(1,), deadly=(5,))
    assert {*total.tallies["seen"]} == {"0", "1", "2", "3", "4"}
    assert ran(tmp_path, 8, 1, killed=(1,), deadly=(5,)).counts["sum"] == 0 + 1 + 2 + 3 + 4 + 6 + 7


@pytest.mark.parametrize(("number", "left"), [(0, 4), (1, 2), (2, 0)])
def test_examples_of_a_chunk(number: int, left: int) -> None:
    assert End(examples=6).examples_of(number, 4) == left
    assert End().examples_of(number, 4) == 4
