"""Run the campaign loop on this machine: a scheduler hands chunks to a pool of workers."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fuzz.campaign import findings, worker
from fuzz.campaign.directory import Directory, Totals
from fuzz.campaign.findings import Origin
from fuzz.campaign.subject import Chunk, Finding, Part, Subject
from fuzz.worker_pool import Death, Outcome, WorkerPool
from hlo.errors import Error

_LOOK = 1.0  # seconds between two looks at the directory, where others are at work, too
_MOST_DEATHS = 10  # of workers, one after the other, before the campaign ends


@dataclass(frozen=True, slots=True)
class Limits:
    """Limit a campaign: ``chunks`` in all, or ``examples`` if these are fewer, so that the last
    chunk is left as it is begun; after ``seconds`` from now no example and no reduction begins;
    ``reducing`` seconds a failure."""

    chunks: int
    seconds: float
    reducing: float = 120.0
    examples: float = float("inf")


def run(
    path: Path,
    subject: Subject,
    limits: Limits,
    workers: int,
    numbers: Iterable[int] | None = None,
) -> Iterator[Chunk]:
    """Run a campaign, or the chunks with these ``numbers`` alone; yield the directory's totals from
    time to time. With 0 workers this process does the work. If a chunk kills a worker, its examples
    are tested one by one; one that kills a worker alone is a finding. Raises Error after several
    deaths in a row."""
    numbers = range(limits.chunks) if numbers is None else numbers
    end = worker.End(time.monotonic() + limits.seconds, limits.examples)
    chunks = _Chunks(Directory(path, subject.facts), subject, numbers, end)
    totals = Totals(chunks.directory)
    opener = partial(worker.chunk_worker, path, subject, limits.reducing, end)
    pool = WorkerPool(
        opener,
        workers=workers,
        # No time limit: a chunk lasts as long as the reductions of its failures. What may hang, as
        # compilers and C, runs in processes with limits of their own.
        seconds=float("inf"),
        memory=subject.memory,
        preload=(type(subject).__module__,),
    )
    with closing(chunks.directory), pool:
        tasks: dict[int, _Task] = {}
        look = 0.0
        while True:
            while pool.is_idle and (task := chunks.next()) is not None:
                tasks[pool.submit(*task)] = task
            if not tasks:
                break
            for number, outcome in pool.finished(_LOOK):
                chunks.take(tasks.pop(number), outcome)
            if time.monotonic() >= look:
                yield totals.read()
                look = time.monotonic() + _LOOK
    yield totals.read()


_Task = tuple[int, int | None]  # a chunk; an example of it, or all


@dataclass(slots=True)
class _Alone:
    """Collect the results of a chunk's examples that are tested one by one, after others."""

    left: int
    part: Part


class _Chunks:
    """Schedule chunks until time is up, and single examples of chunks that killed a worker."""

    def __init__(
        self, directory: Directory, subject: Subject, numbers: Iterable[int], end: worker.End
    ) -> None:
        self.directory, self._subject = directory, subject
        self._numbers = iter(numbers)
        self._held: list[int] = []  # those that others had claimed
        self._end = end
        self._examples: deque[_Task] = deque()
        self._alone: dict[int, _Alone] = {}
        self._deaths = 0

    def next(self) -> _Task | None:
        """Return the next task, None if there is none now."""
        if self._end.is_reached:
            return None
        if self._examples:
            return self._examples.popleft()
        for number in self._numbers:
            if self.directory.is_open(number):
                return number, None
            if not self.directory.has(number):
                self._held.append(number)
        # Of those that others had, some may have died.
        self._held = [number for number in self._held if not self.directory.has(number)]
        for number in filter(self.directory.is_open, self._held):
            self._held.remove(number)
            return number, None
        return None

    def take(self, task: _Task, outcome: Outcome[Any]) -> None:
        """Record the outcome of a task."""
        number, example = task
        if isinstance(outcome, Death):
            self._died(number, example, outcome)
        else:
            self._deaths = 0
        if example is not None:
            alone = self._alone[number]
            alone.left -= 1
            found = Chunk() if isinstance(outcome, Death) else outcome.value
            alone.part.add(Part({example}, found))
            self._write(number, alone)

    def _write(self, number: int, alone: _Alone) -> None:
        """Write what came of examples; without any left the chunk is finished, unless the campaign
        ends within it, or time was up before all failures were reduced."""
        is_cut = self._end.examples_of(number, self._subject.size) < self._subject.size
        if alone.left or is_cut or findings.waiting(self.directory.findings, number):
            self.directory.begun(number, alone.part)
        else:
            self.directory.done(number, alone.part.outcomes)
        if not alone.left:
            del self._alone[number]
            self.directory.release(number)

    def _died(self, number: int, example: int | None, death: Death) -> None:
        print(*death.lines, sep="\n", file=sys.stderr)
        self._deaths += 1
        if self._deaths >= _MOST_DEATHS:
            told = f"{self._deaths} workers died, the last by {death}"
            raise Error(f"{told}; what is done is kept in {self.directory.path}")
        if example is None:
            # The dead worker's claim is stale: the pool has waited for the process.
            if self.directory.claim(number):
                self._one_by_one(number)
        else:
            self._alone[number].part.outcomes.count("counts", {f"{_ORACLE}: violated": 1})
            self._keep(number, example, death)

    def _one_by_one(self, number: int) -> None:
        """Ask for the examples of a chunk that are not tested, or whose failures are not
        reduced."""
        part = self.directory.part(number)
        waiting = findings.waiting(self.directory.findings, number).values()
        examples = self._end.examples_of(number, self._subject.size)
        left = [n for n in range(examples) if n not in part.examples or n in waiting]
        self._alone[number] = _Alone(len(left), part)
        self._examples += ((number, example) for example in left)
        if not left:
            self._write(number, self._alone[number])

    def _keep(self, number: int, example: int, death: Death) -> None:
        """Keep an example that kills a worker alone as a finding."""
        folder = self.directory.alone(number, example)
        kind = f"crash: {_place(death) or death.cause}"
        finding = Finding(kind, str(death), frozenset(), partial(_moved, folder))
        origin = Origin(self._subject.seed, number, example)
        findings.keep(self.directory.findings, _ORACLE, finding, origin)
        for waiting, one in findings.waiting(self.directory.findings, number).items():
            if one == example:  # its reduction kills a worker
                findings.keep_as_it_is(waiting, is_flaky=False)
        shutil.rmtree(folder, ignore_errors=True)


def _place(death: Death) -> str | None:
    """Return which exception ended a worker, and in which function; None for other deaths."""
    functions = [found for line in death.lines if (found := _FUNCTION.match(line)) is not None]
    error = _ERROR.match(death.lines[-1]) if death.lines else None
    if not death.status or not functions or error is None:
        return None
    file, function = functions[-1].groups()
    return f"{error[0]} in {Path(file).name}:{function}"


# Of a traceback: the line of each function, and the error in the last line.
_FUNCTION = re.compile(r'\s*File "(.+)", line \d+, in (\S+)')
_ERROR = re.compile(r"[\w.]+(?=:|\Z)")
_ORACLE = "workers"  # the property that no example kills one


def _moved(folder: Path, to: Path) -> None:
    """Copy the files of an example, if it was drawn before the worker died."""
    if folder.exists():
        shutil.copytree(folder, to, dirs_exist_ok=True)
