"""Define a campaign worker's task: test a chunk, reduce new failures, write the result."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fuzz.campaign import findings
from fuzz.campaign.directory import Directory
from fuzz.campaign.findings import Origin
from fuzz.campaign.subject import Chunk, Examiner, Part, Subject, Suspect, whole

_SHORTER = 4  # so many times, for each sibling
_EVERY = 1.0  # seconds between two looks of others at what is done of a chunk


@dataclass(frozen=True, slots=True)
class End:
    """Say where a campaign ends: when it is ``time``, by the monotonic clock, which is one for all
    processes of a machine, and after so many ``examples``, counted through all chunks."""

    time: float = float("inf")
    examples: float = float("inf")

    @property
    def is_reached(self) -> bool:
        """Test whether time is up."""
        return time.monotonic() >= self.time

    def examples_of(self, number: int, size: int) -> int:
        """Count the examples of a chunk of this size that are before the end."""
        return int(min(size, max(0, self.examples - number * size)))


@contextmanager
def chunk_worker(
    path: Path, subject: Subject, reducing: float, end: End | None = None
) -> Iterator[Callable[..., Chunk | None]]:
    """Open a worker's function: ``work(number)`` goes on with a chunk, unless another process has
    claimed it; ``work(number, example)`` tests one example and returns its result. ``reducing`` is
    the time limit of each reduction, in seconds. At the ``end`` no further example of the chunk and
    no further reduction begins."""
    directory = Directory(path, subject.facts)
    with subject.examiner(directory) as examiner:
        yield _Worker(directory, subject, examiner, reducing, end or End())


class _Worker:
    def __init__(
        self,
        directory: Directory,
        subject: Subject,
        examiner: Examiner,
        reducing: float,
        end: End,
    ) -> None:
        self._directory, self._subject, self._examiner = directory, subject, examiner
        self._reducing, self._end = reducing, end

    def __call__(self, number: int, only: int | None = None) -> Chunk | None:
        if only is not None:
            return self._alone(number, only)
        with self._directory.claimed(number) as is_mine:
            if is_mine:
                self._go_on(number)
        return None

    def _go_on(self, number: int) -> None:
        """Test what is left of a chunk, and write it as finished, or as far as it got."""
        part = self._directory.part(number)
        self._reduce_waiting(number, findings.waiting(self._directory.findings, number))
        if self._test(number, part) and not findings.waiting(self._directory.findings, number):
            self._directory.done(number, part.outcomes)
        else:
            self._directory.begun(number, part)

    def _test(self, number: int, part: Part) -> bool:
        """Add the outcomes of examples to those of others; return whether all of the chunk were
        tested. Of a new chunk at least one is, so that a campaign of short commands gets on."""
        size = self._subject.size
        examples = self._end.examples_of(number, size)
        left = [n for n in range(examples) if n not in part.examples]
        if left and part.examples and self._end.is_reached:
            return False
        written = time.monotonic()
        for more in self._examiner.chunk(number, left) if left else ():
            suspects = [*more.outcomes.suspects]
            more.outcomes.suspects.clear()
            part.add(more)
            self._keep_unreduced(number, suspects)
            if suspects or time.monotonic() >= written + _EVERY:
                self._directory.begun(number, part)
                written = time.monotonic()
            for suspect in suspects:
                self._examine(suspect, number)
            if self._end.is_reached and not part.examples.issuperset(left):
                return False
        return examples == size or part.examples.issuperset(range(size))

    def _alone(self, number: int, example: int) -> Chunk:
        """Test one example, after writing its files, which remain if it kills this process. One
        that was tested is reduced only, and counted no more."""
        folder = self._directory.alone(number, example)
        folder.mkdir(parents=True, exist_ok=True)
        self._examiner.write(number, example, folder)
        if example in self._directory.part(number).examples:
            waiting = findings.waiting(self._directory.findings, number)
            self._reduce_waiting(number, {at: n for at, n in waiting.items() if n == example})
            found = Chunk()
        else:
            found = whole(self._examiner.chunk(number, [example]))
            suspects = [*found.suspects]
            found.suspects.clear()
            self._keep_unreduced(number, suspects)
            for suspect in suspects:
                self._examine(suspect, number)
        shutil.rmtree(folder)
        return found

    def _reduce_waiting(self, number: int, waiting: Mapping[Path, int]) -> None:
        """Test examples again whose failures wait for their reduction, and reduce those; what does
        not fail again is flaky."""
        for example in sorted(set(waiting.values())):
            if self._end.is_reached:
                return
            left = {folder for folder, one in waiting.items() if one == example}
            for suspect in whole(self._examiner.chunk(number, [example])).suspects:
                folder = self._waiting(suspect, number)
                if folder in left:
                    self._examine(suspect, number)
                    left.remove(folder)
            for folder in left:
                findings.keep_as_it_is(folder, is_flaky=True)

    def _keep_unreduced(self, number: int, suspects: Iterable[Suspect]) -> None:
        """Keep failures that no finding covers: reducing them may take long, and never end."""
        kept = self._directory.findings
        for suspect in suspects:
            if findings.covered(kept, suspect) is None:
                found, origin = self._examiner.unreduced(suspect), self._origin(suspect, number)
                findings.keep_unreduced(kept, suspect, found, origin)

    def _examine(self, suspect: Suspect, number: int) -> None:
        """Reduce and keep a failure that no finding covers, also after it is cut; unless it is too
        late, when it goes on waiting. The more siblings it has, the less time it gets: it is
        isolated already, and new defects are worth more."""
        kept = self._directory.findings
        if not findings.is_known(kept, suspect):
            if self._end.is_reached:
                return
            self._reduce(suspect, number)
        findings.remove(self._waiting(suspect, number))

    def _reduce(self, suspect: Suspect, number: int) -> None:
        kept, seconds = self._directory.findings, self._reducing
        if suspect.narrowed is not None:
            # Half to find out whether it is known after all, half to reduce it if it is not.
            seconds /= 2
            suspect = suspect.narrowed(seconds)
            if findings.is_known(kept, suspect):
                return
        seconds /= _SHORTER ** findings.siblings(kept, suspect)
        small = self._examiner.reduced(suspect, number, seconds)
        findings.keep(kept, suspect.oracle, small, self._origin(suspect, number), suspect.isolated)

    def _waiting(self, suspect: Suspect, number: int) -> Path:
        """Return the folder of a failure while it waits."""
        return findings.unreduced(self._directory.findings, suspect, self._origin(suspect, number))

    def _origin(self, suspect: Suspect, number: int) -> Origin:
        return Origin(self._subject.seed, number, suspect.example)
