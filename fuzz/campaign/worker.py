"""Define a campaign worker's task: test a chunk, reduce new failures, write the result."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fuzz.campaign import findings
from fuzz.campaign.directory import Directory
from fuzz.campaign.findings import Origin
from fuzz.campaign.subject import Chunk, Examiner, Subject, Suspect

_SHORTER = 4  # so many times, for each sibling


@contextmanager
def chunk_worker(
    path: Path, subject: Subject, reducing: float
) -> Iterator[Callable[..., Chunk | None]]:
    """Open a worker's function: ``work(number)`` finishes a chunk, unless another process has
    claimed it; ``work(number, example)`` tests one example and returns its result. ``reducing`` is
    the time limit of each reduction, in seconds."""
    directory = Directory(path, subject.facts)
    with subject.examiner(directory) as examiner:
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
        """Test one example, after writing its files, which remain if it kills this process."""
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
        """Reduce and keep a failure that no finding covers, also after it is cut. The more siblings
        it has, the less time it gets: it is isolated already, and new defects are worth more."""
        kept, seconds = self._directory.findings, self._reducing
        if findings.is_known(kept, suspect):
            return
        if suspect.narrowed is not None:
            # Half to find out whether it is known after all, half to reduce it if it is not.
            seconds /= 2
            suspect = suspect.narrowed(seconds)
            if findings.is_known(kept, suspect):
                return
        seconds /= _SHORTER ** findings.siblings(kept, suspect)
        small = self._examiner.reduced(suspect, number, seconds)
        origin = Origin(self._subject.seed, number, suspect.example)
        findings.keep(kept, suspect.oracle, small, origin, suspect.isolated)
