"""What a worker of a campaign does with a chunk: draw, ask, reduce what is new, write it down."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fuzz.campaign import findings
from fuzz.campaign.directory import Directory
from fuzz.campaign.findings import Origin
from fuzz.campaign.subject import Chunk, Examiner, Subject, Suspect


@contextmanager
def opened(path: Path, subject: Subject, reducing: float) -> Iterator[Callable[..., Chunk | None]]:
    """The function of a worker: does a chunk, unless another process does, or only one example of
    it, of which it gives what became. Each finding is reduced for at most ``reducing`` seconds."""
    directory = Directory(path, subject.facts)
    with subject.opened(directory) as examiner:
        yield _Worker(directory, subject, examiner, reducing)


class _Worker:
    def __init__(
        self, directory: Directory, subject: Subject, examiner: Examiner, reducing: float
    ) -> None:
        self._directory, self._subject = directory, subject
        self._examiner, self._reducing = examiner, reducing

    def __call__(self, number: int, only: int | None = None) -> Chunk | None:
        if only is not None:
            return self._alone(number, only)
        with self._directory.claimed(number) as is_mine:
            if is_mine:
                self._directory.done(number, self._examined(number, None))
        return None

    def _alone(self, number: int, example: int) -> Chunk:
        """If it ends this process the example is there to be looked at."""
        folder = self._directory.alone(number, example)
        folder.mkdir(parents=True, exist_ok=True)
        self._examiner.write(number, example, folder)
        found = self._examined(number, example)
        shutil.rmtree(folder)
        return found

    def _examined(self, number: int, only: int | None) -> Chunk:
        found = self._examiner.chunk(number, only)
        for suspect in found.suspects:
            self._examine(suspect, number)
        found.suspects.clear()
        return found

    def _examine(self, suspect: Suspect, number: int) -> None:
        """Reduce and keep a finding that is not known."""
        if findings.is_known(self._directory.findings, suspect):
            return
        small = self._examiner.reduced(suspect, number, self._reducing)
        origin = Origin(self._subject.seed, number, suspect.example)
        findings.keep(self._directory.findings, suspect.oracle, small, origin)
