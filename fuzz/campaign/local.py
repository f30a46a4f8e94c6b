"""A campaign on this machine: workers that do its chunks, and what these came to so far."""

from __future__ import annotations

import shutil
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fuzz.campaign import findings, worker
from fuzz.campaign.directory import Directory, Totals
from fuzz.campaign.findings import Origin
from fuzz.campaign.subject import Chunk, Finding, Subject
from fuzz.worker_pool import Death, Outcome, WorkerPool
from hlo.errors import Error

_LOOK = 1.0  # seconds between two looks at what others do in the directory
_MOST_DEATHS = 10  # of workers, one after the other, before the campaign ends


@dataclass(frozen=True, slots=True)
class Limits:
    """``chunks`` in all, ``seconds`` from now, ``reducing`` seconds for each finding."""

    chunks: int
    seconds: float
    reducing: float = 120.0


def run(path: Path, subject: Subject, limits: Limits, workers: int) -> Iterator[Chunk]:
    """What all chunks of the directory came to, again and again until the campaign ends; with no
    workers, this process does them. The examples of a chunk that ends its worker are done one by
    one, and what ends a worker alone is a finding. Error if nothing else happens."""
    chunks = _Chunks(Directory(path, subject.facts), subject, limits)
    totals = Totals(chunks.directory)
    opened = partial(worker.opened, path, subject, limits.reducing)
    with WorkerPool(
        opened,
        workers=workers,
        seconds=float("inf"),
        memory=subject.memory,
        preload=(type(subject).__module__,),
    ) as pool:
        tasks: dict[int, _Task] = {}
        while True:
            while pool.is_idle and (task := chunks.next()) is not None:
                tasks[pool.submit(*task)] = task
            if not tasks:
                break
            for number, outcome in pool.finished(_LOOK):
                chunks.take(tasks.pop(number), outcome)
            yield totals.read()
    yield totals.read()


_Task = tuple[int, int | None]  # a chunk; an example of it, or all


@dataclass(slots=True)
class _Alone:
    """The examples of a chunk one by one: how many are left, and what became of the others."""

    left: int
    found: Chunk = field(default_factory=Chunk)


class _Chunks:
    """Those that are to be done, until time is up, and the examples of those that ended workers."""

    def __init__(self, directory: Directory, subject: Subject, limits: Limits) -> None:
        self.directory, self._subject = directory, subject
        self._numbers = iter(range(limits.chunks))
        self._end = time.monotonic() + limits.seconds
        self._examples: deque[_Task] = deque()
        self._alone: dict[int, _Alone] = {}
        self._deaths = 0

    def next(self) -> _Task | None:
        """What is to be done next; None if nothing is."""
        if self._examples:
            return self._examples.popleft()
        if time.monotonic() >= self._end:
            return None
        number = next(filter(self.directory.is_open, self._numbers), None)
        return None if number is None else (number, None)

    def take(self, task: _Task, outcome: Outcome[Any]) -> None:
        """What became of it."""
        number, example = task
        if isinstance(outcome, Death):
            self._died(number, example, outcome)
        else:
            self._deaths = 0
        if example is not None:
            alone = self._alone[number]
            alone.left -= 1
            if not isinstance(outcome, Death):
                alone.found.add(outcome.value)
            if not alone.left:
                self.directory.done(number, self._alone.pop(number).found)
                self.directory.release(number)

    def _died(self, number: int, example: int | None, death: Death) -> None:
        print(*death.lines, sep="\n", file=sys.stderr)
        self._deaths += 1
        if self._deaths >= _MOST_DEATHS:
            told = f"{self._deaths} workers died, the last by {death}"
            raise Error(f"{told}; what is done is kept in {self.directory.path}")
        if example is None:
            if self.directory.claim(number):
                self._alone[number] = _Alone(self._subject.size)
                self._examples += ((number, n) for n in range(self._subject.size))
        else:
            self._alone[number].found.count("counts", {f"{_ORACLE}: violated": 1})
            self._keep(number, example, death)

    def _keep(self, number: int, example: int, death: Death) -> None:
        """An example that ends a worker alone."""
        folder = self.directory.alone(number, example)
        finding = Finding(f"crash: {death.cause}", str(death), frozenset(), partial(_moved, folder))
        origin = Origin(self._subject.seed, number, example)
        findings.keep(self.directory.findings, _ORACLE, finding, origin)
        shutil.rmtree(folder, ignore_errors=True)


_ORACLE = "workers"  # that none ends


def _moved(folder: Path, to: Path) -> None:
    """What there was of it before it was asked; nothing if it could not even be drawn."""
    if folder.exists():
        shutil.copytree(folder, to, dirs_exist_ok=True)
