"""The loop of every campaign, on a subject that can do all the harm there is."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fuzz.campaign import local
from fuzz.campaign.directory import Directory
from fuzz.campaign.subject import Chunk, Done, Finding, Part, Suspect
from hlo.errors import ArgumentError, Error


@dataclass(frozen=True)
class Numbers:
    """Example k of chunk n is the number n * size + k. ``deadly`` end their process, ``odd`` ones
    are found; ``raised`` ones raise an exception; ``killed`` are whole chunks that end it where
    they are asked as one, ``fatal`` ones end it where they are reduced."""

    seed: int = 0
    size: int = 4
    deadly: tuple[int, ...] = ()
    odd: tuple[int, ...] = ()
    killed: tuple[int, ...] = ()
    raised: tuple[int, ...] = ()
    fatal: tuple[int, ...] = ()
    memory = None

    @property
    def facts(self) -> Mapping[str, Any]:
        return asdict(self)

    @contextmanager
    def examiner(self, done: Done) -> Iterator[Examiner]:
        yield Examiner(self, done)


@dataclass(frozen=True)
class Examiner:
    numbers: Numbers
    done: Done

    def chunk(self, number: int, examples: Sequence[int] | None = None) -> Iterator[Part]:
        assert examples is not None
        if len(examples) > 1 and number in self.numbers.killed:
            os.kill(os.getpid(), signal.SIGKILL)
        for example in examples:
            found, value = Chunk(), number * self.numbers.size + example
            if value in self.numbers.deadly:
                os.abort()
            if value in self.numbers.raised:
                raise (KeyError if value % 3 == 0 else ZeroDivisionError)(value)
            found.counts["numbers"] += 1
            found.counts["sum"] += value
            found.count("seen", [str(value)])
            if value in self.numbers.odd:
                found.suspects.append(Suspect("numbers", f"is {value % 10}", "odd", example))
            yield Part({example}, found)

    def unreduced(self, suspect: Suspect) -> Finding:
        return Finding(suspect.kind, suspect.kind[-1], frozenset(), partial(_write, "unreduced"))

    def reduced(self, suspect: Suspect, number: int, seconds: float) -> Finding:
        if number * self.numbers.size + suspect.example in self.numbers.fatal:
            os.abort()
        digit = suspect.kind[-1]
        return Finding(suspect.kind, digit, frozenset(), partial(_write, digit))

    def write(self, number: int, example: int, folder: Path) -> None:
        _write(str(number * self.numbers.size + example), folder)


def _write(text: str, folder: Path) -> None:
    (folder / "number.txt").write_text(text)


def ran(path: Path, subject: Numbers, chunks: int = 5, workers: int = 2) -> list[Chunk]:
    return list(local.run(path, subject, local.Limits(chunks, 120.0), workers))


def files(path: Path) -> dict[str, bytes]:
    found = (one for one in path.rglob("*") if one.is_file())
    return {str(one.relative_to(path)): one.read_bytes() for one in found}


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_every_chunk_is_done_once(workers: int, tmp_path: Path) -> None:
    looks = ran(tmp_path / "one", Numbers(odd=(3, 13, 4)), workers=workers)
    assert looks[-1].counts == {"numbers": 20, "sum": sum(range(20)), "chunks": 5}
    assert set(looks[-1].tallies["seen"].values()) == {1}
    ran(tmp_path / "other", Numbers(odd=(3, 13, 4)), 3, workers)
    ran(tmp_path / "other", Numbers(odd=(3, 13, 4)), 5, workers)
    one, other = files(tmp_path / "one"), files(tmp_path / "other")
    assert {n: x for n, x in one.items() if n.startswith("chunks")} == {
        n: x for n, x in other.items() if n.startswith("chunks")
    }
    assert set(one) == set(other)
    assert not any(map(os.listdir, (tmp_path / "one" / "claims", tmp_path / "other" / "claims")))


def test_findings_of_a_kind_are_one(tmp_path: Path) -> None:
    subject = Numbers(odd=(3, 13, 4))
    ran(tmp_path, subject, workers=1)
    found = Directory(tmp_path, subject.facts).found()
    assert [(one["kind"], one["times"]) for one in found] == [("is 3", 2), ("is 4", 1)]
    assert (found[0]["seed"], found[0]["chunk"], found[0]["program"]) == (0, 0, 3)


def test_an_example_that_ends_its_process_is_a_finding(tmp_path: Path) -> None:
    subject = Numbers(deadly=(6,), odd=(7,))
    total = ran(tmp_path, subject)[-1]
    assert total.counts["numbers"] == 19 and total.counts["sum"] == sum(range(20)) - 6
    assert total.counts["chunks"] == 5 and total.counts["workers: violated"] == 1
    found = {one["kind"]: one for one in Directory(tmp_path, subject.facts).found()}
    assert set(found) == {"is 7", "crash: SIGABRT"}
    crash = found["crash: SIGABRT"]
    assert (crash["oracle"], crash["chunk"], crash["program"]) == ("workers", 1, 2)
    (told,) = tmp_path.glob("findings/workers-*/number.txt")
    assert told.read_text() == "6"
    assert not any(map(os.listdir, (tmp_path / "claims", tmp_path / "alone")))


def test_exceptions_that_end_a_process_are_told_apart(tmp_path: Path) -> None:
    """By the exception and where it was raised: 6 and 9 end it in one way, 7 in another."""
    total = ran(tmp_path, Numbers(raised=(6, 7, 9), deadly=(13,)))[-1]
    assert total.counts["workers: violated"] == 4
    found = Directory(tmp_path, Numbers().facts | {"raised": [6, 7, 9], "deadly": [13]}).found()
    assert {one["kind"]: one["times"] for one in found} == {
        "crash: KeyError in test_local.py:chunk": 2,
        "crash: ZeroDivisionError in test_local.py:chunk": 1,
        "crash: SIGABRT": 1,
    }


def test_a_chunk_whose_worker_was_killed_loses_nothing(tmp_path: Path) -> None:
    subject = Numbers(killed=(0, 3))
    total = ran(tmp_path, subject)[-1]
    assert total.counts == {"numbers": 20, "sum": sum(range(20)), "chunks": 5}
    assert not Directory(tmp_path, subject.facts).found()


def test_a_campaign_ends_if_nothing_but_deaths_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_MOST_DEATHS", 4)
    with pytest.raises(Error, match="4 workers died, the last by SIGABRT; what is done is kept"):
        ran(tmp_path, Numbers(deadly=tuple(range(20))))


def test_chunks_of_others_are_left_alone(tmp_path: Path) -> None:
    subject = Numbers()
    with closing(Directory(tmp_path, subject.facts)) as directory:
        assert directory.claim(2)
        total = ran(tmp_path, subject)[-1]
    assert total.counts["chunks"] == 4 and not Directory(tmp_path, subject.facts).has(2)


def test_a_directory_is_of_one_campaign(tmp_path: Path) -> None:
    ran(tmp_path, Numbers())
    assert json.loads((tmp_path / "campaign.json").read_text())["size"] == 4
    with pytest.raises(ArgumentError, match="another campaign"):
        ran(tmp_path, Numbers(size=5))


def test_nothing_begins_when_time_is_up(tmp_path: Path) -> None:
    (total,) = local.run(tmp_path, Numbers(), local.Limits(5, 0.0), 1)
    assert not total.counts


def test_a_chunk_of_a_process_that_dies_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim that ends while the campaign is at work leaves its chunk to that."""
    monkeypatch.setattr(local, "_LOOK", 0.0)
    subject = Numbers()
    with closing(Directory(tmp_path, subject.facts)) as directory:
        assert directory.claim(0)
        for _ in local.run(tmp_path, subject, local.Limits(5, 120.0), 0):
            directory.close()
    assert directory.has(0)
