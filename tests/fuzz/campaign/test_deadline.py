"""Campaigns whose time is up: nothing begins, nothing is lost or counted twice by going on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from test_local import Examiner, Numbers, files

from fuzz.campaign import local, worker
from fuzz.campaign.directory import Directory
from fuzz.campaign.subject import Chunk, Done, Finding, Part, Suspect
from hlo_oracle import campaign_progress
from hlo_oracle.progress_line import ProgressLine


@dataclass
class Clock:
    """A clock that only what is done moves on: an example takes 1, a reduction 10."""

    now: float = 0.0

    def monotonic(self) -> float:
        return self.now


@dataclass(frozen=True)
class Slow(Numbers):
    """Numbers whose examples take time. ``gone`` ones are no longer odd when they are tested again,
    ``interrupted`` ones end the campaign when they are reduced."""

    clock: Clock = field(default_factory=Clock)
    drawing: int = 0
    interrupted: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"size": self.size}

    @contextmanager
    def examiner(self, done: Done) -> Iterator[SlowExaminer]:
        yield SlowExaminer(self, done)


class SlowExaminer(Examiner):
    numbers: Slow

    def chunk(self, number: int, examples: Sequence[int] | None = None) -> Iterator[Part]:
        self.numbers.clock.now += self.numbers.drawing
        for part in super().chunk(number, examples):
            self.numbers.clock.now += 1
            (example,) = part.examples
            if number * self.numbers.size + example in self.numbers.gone:
                part.outcomes.suspects.clear()
            yield part

    def reduced(self, suspect: Suspect, number: int, seconds: float) -> Finding:
        self.numbers.clock.now += 10
        if number * self.numbers.size + suspect.example in self.numbers.interrupted:
            raise KeyboardInterrupt
        return super().reduced(suspect, number, seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(local, "time", made)
    monkeypatch.setattr(worker, "time", made)
    return made


def ran(path: Path, subject: Slow, seconds: float) -> Chunk:
    """Run five chunks of four in this process; return the total."""
    *_, total = local.run(path, subject, local.Limits(5, seconds), 0)
    return total


def brought(path: Path) -> dict[str, bytes]:
    """Return the files that a task of a cluster brings back."""
    parts = ("chunks/", "parts/", "findings/")
    return {name: content for name, content in files(path).items() if name.startswith(parts)}


def kept(path: Path) -> dict[str, tuple[int, bool, bool]]:
    """Return how often each kind was found, whether it waits for its reduction and is flaky."""
    found = (json.loads(one.read_text()) for one in path.glob("findings/*/finding.json"))
    return {one["kind"]: (one["times"], "unreduced" in one, one["flaky"]) for one in found}


@pytest.mark.parametrize("seconds", [1, 3, 4, 7, 19])
def test_a_chunk_that_is_cut_short_is_gone_on_with(
    seconds: int, tmp_path: Path, clock: Clock
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    subject = Slow(clock=clock)
    total = ran(one, subject, seconds)
    assert clock.now == seconds
    assert total.counts["numbers"] == seconds and total.counts["sum"] == sum(range(seconds))
    assert total.counts["chunks"] == seconds // 4
    assert ran(one, subject, 100).counts == ran(other, subject, 100).counts
    assert files(one) == files(other)


def test_of_a_new_chunk_one_example_is_tested(tmp_path: Path, clock: Clock) -> None:
    """However long it takes to draw; of one that was begun none is when time is up."""
    subject = Slow(drawing=50, clock=clock)
    assert ran(tmp_path, subject, 5).counts["numbers"] == 1
    reducing = replace(subject, drawing=0, odd=(1,))
    assert ran(tmp_path, reducing, 1).counts["numbers"] == 2
    assert ran(tmp_path, reducing, 5).counts["numbers"] == 2 and clock.now == 63


def test_no_reduction_begins_when_time_is_up(tmp_path: Path, clock: Clock) -> None:
    """A finding is kept as it is, and reduced when the campaign goes on."""
    one, other = tmp_path / "one", tmp_path / "other"
    subject = Slow(odd=(2, 3, 4), clock=clock)
    ran(one, subject, 13.5)  # 2 is reduced, 3 found
    assert clock.now == 14
    assert kept(one) == {"is 2": (1, False, False), "is 3": (1, True, False)}
    (waiting,) = one.glob("findings/unreduced-*")
    assert (waiting / "number.txt").read_text() == "unreduced"
    for _ in range(4):
        ran(one, subject, 9)
    ran(other, subject, 100)
    assert kept(one) == kept(other)
    assert kept(one) == {f"is {n}": (1, False, False) for n in (2, 3, 4)}
    assert files(one) == files(other)


def test_what_waits_is_no_finding_that_covers_others(tmp_path: Path, clock: Clock) -> None:
    """3 waits, 13 is of the same kind: reduced, it is one finding with 3, found twice."""
    subject = Slow(odd=(3, 13), clock=clock)
    ran(tmp_path, subject, 4)
    assert kept(tmp_path) == {"is 3": (1, True, False)}
    ran(tmp_path, subject, 100)
    assert kept(tmp_path) == {"is 3": (2, False, False)}


def test_a_campaign_that_is_killed_keeps_what_it_found(tmp_path: Path, clock: Clock) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    subject = Slow(odd=(2, 3), interrupted=(2,), clock=clock)
    with pytest.raises(KeyboardInterrupt):
        ran(one, subject, 100)
    assert kept(one) == {"is 2": (1, True, False)}
    assert Directory(one, subject.facts).part(0).examples == {0, 1, 2}
    subject = replace(subject, interrupted=())
    assert ran(one, subject, 100).counts == ran(other, subject, 100).counts
    assert kept(one) == kept(other) and files(one) == files(other)


def test_what_does_not_fail_again_is_flaky(tmp_path: Path, clock: Clock) -> None:
    subject = Slow(odd=(3,), clock=clock)
    ran(tmp_path, subject, 4)
    ran(tmp_path, replace(subject, gone=(3,)), 100)
    assert kept(tmp_path) == {"is 3": (1, False, True)}
    (folder,) = tmp_path.glob("findings/flaky-*")
    assert (folder / "number.txt").read_text() == "unreduced"


def test_a_reduction_that_ends_its_process_is_found(tmp_path: Path) -> None:
    """Its finding is kept as it is, and all other examples are tested."""
    subject = Numbers(odd=(3, 5), fatal=(3,))
    *_, total = local.run(tmp_path, subject, local.Limits(5, 120.0), 1)
    assert total.counts["numbers"] == 20 and total.counts["chunks"] == 5
    assert kept(tmp_path) == {
        "is 3": (1, False, False),
        "is 5": (1, False, False),
        "crash: SIGABRT": (1, False, False),
    }
    assert not any((tmp_path / "parts").iterdir()) and not any((tmp_path / "alone").iterdir())


def test_another_directory_takes_what_was_begun_and_gives_it(tmp_path: Path, clock: Clock) -> None:
    """The tasks of a cluster have directories of their own, and begin with what is left."""
    subject = Slow(odd=(3, 5), clock=clock)
    whole, first, second = (Directory(tmp_path / n, subject.facts) for n in ("whole", "a", "b"))
    ran(first.path, subject, 4)
    whole.take(brought(first.path))
    whole.take(whole.left(range(5)))  # of a task that began nothing
    assert kept(whole.path) == {"is 3": (1, True, False)} and whole.part(0).examples == {0, 1, 2, 3}
    for name, content in whole.left(range(5)).items():
        (second.path / name).parent.mkdir(parents=True, exist_ok=True)
        (second.path / name).write_bytes(content)
    ran(second.path, subject, 12)
    whole.take(brought(second.path))
    assert kept(whole.path) == kept(second.path)
    assert kept(whole.path)["is 3"] == (1, False, False)
    assert brought(whole.path) == brought(second.path)


def test_what_is_still_at_work_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = Directory(tmp_path, {})
    assert directory.claim(0)
    shown, shares = ProgressLine("plain"), iter((0.5, 1.0))
    shown._every = 0.0
    campaign_progress.watched(
        [Chunk(), Chunk()],
        tmp_path,
        "programs",
        lambda total: "some",
        shown=shown,
        share=lambda total, seconds: next(shares),
    )
    directory.close()
    lines = capsys.readouterr().err.splitlines()
    assert any("left" in line for line in lines)
    assert lines[-1].endswith("; finishing 1 program") and "left" not in lines[-1]
