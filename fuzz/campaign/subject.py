"""Define the protocol between the campaign loop and the subject of a campaign.

A :class:`Subject` is plain data that determines the examples of every chunk. Each worker opens it
and gets an :class:`Examiner`, which draws the examples of chunk n, tests them, counts the outcomes
and reduces failures. The loop (:mod:`fuzz.campaign.local`) knows nothing else of either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

Tallies = dict[str, Counter[str]]  # several counters by name


class Told(NamedTuple):
    """Identify a failing program for deduplication: the instruction to blame, and the opcodes."""

    blamed: str
    opcodes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Suspect:
    """Record that an example violates the property ``oracle``.

    ``kind`` is equal for the same defect in other examples. If ``told_by_reduction``, different
    defects may share it, and only the reduced example tells them apart. ``isolated`` identifies the
    instruction that fails alone, or, if there are ``several``, those that fail only together.
    ``opcodes`` are those of the program, if it is one: a failure at a known place is another one if
    what was left of the known one has others.
    ``evidence`` is what the examiner needs to reduce the example; it stays in its process.
    ``narrowed(seconds)`` isolates what is not isolated yet, if that can be done: the time is lost
    if the kind alone says that the failure is known.
    """

    oracle: str
    kind: str
    detail: str
    example: int  # its number in the chunk
    told_by_reduction: bool = False
    evidence: Any = None
    isolated: Told | None = None
    several: bool = False
    narrowed: Callable[[float], Suspect] | None = None
    opcodes: frozenset[str] | None = None


@dataclass(slots=True)
class Chunk:
    """Accumulate the outcomes of a chunk: counters, notes by name, the first of each, and
    suspects."""

    tallies: Tallies = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    suspects: list[Suspect] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """Return the counter of examples and of their outcomes."""
        return self.tallies.setdefault("counts", Counter())

    def tally(self, what: str) -> Counter[str]:
        """Return the counter with this name, empty if nothing was counted."""
        return self.tallies.get(what, Counter())

    def count(self, what: str, of: Iterable[str] | Mapping[str, int]) -> None:
        """Add to a counter."""
        self.tallies.setdefault(what, Counter()).update(of)

    def add(self, other: Chunk) -> None:
        """Add the outcomes of other examples."""
        for what, numbers in other.tallies.items():
            self.count(what, numbers)
        for name, note in other.notes.items():
            self.notes.setdefault(name, note)
        self.suspects += other.suspects


@dataclass(frozen=True, slots=True)
class Part:
    """Hold what came of some ``examples`` of a chunk, by their numbers in it."""

    examples: set[int] = field(default_factory=set)
    outcomes: Chunk = field(default_factory=Chunk)

    def add(self, other: Part) -> None:
        """Add other examples of the chunk."""
        self.examples.update(other.examples)
        self.outcomes.add(other.outcomes)


def whole(parts: Iterable[Part]) -> Chunk:
    """Sum the outcomes of a chunk's parts."""
    total = Chunk()
    for part in parts:
        total.add(part.outcomes)
    return total


@dataclass(frozen=True, slots=True)
class Finding:
    """Describe a reduced failure. ``opcodes`` are those of the reduced example, ``blamed``
    describes the instruction to blame; ``write`` puts its files into a folder; ``facts`` are
    further fields of its JSON; ``is_flaky`` if it did not fail again."""

    kind: str
    detail: str
    opcodes: frozenset[str]
    write: Callable[[Path], object]
    facts: Mapping[str, Any] = field(default_factory=dict)
    blamed: str = ""
    is_flaky: bool = False


class Examiner(Protocol):
    """Draw and test the examples of chunks, in one process."""

    def chunk(self, number: int, examples: Sequence[int] | None = None) -> Iterator[Part]:
        """Test the examples of a chunk, or those of ``examples`` that it has; yield what came of
        each, or of several that cannot be tested apart. Whoever asks may stop in between."""

    def unreduced(self, suspect: Suspect) -> Finding:
        """Make a finding of a suspect as it is, without testing anything."""

    def reduced(self, suspect: Suspect, number: int, seconds: float) -> Finding:
        """Reduce a suspect of a chunk, for at most ``seconds``."""

    def write(self, number: int, example: int, folder: Path) -> None:
        """Write an example of a chunk into a folder, untested."""


class Subject(Protocol):
    """Determine the chunks of a campaign, as plain data that can be pickled."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """Return all that determines chunk n, as JSON: equal facts may continue a directory."""

    @property
    def seed(self) -> int:
        """Return the seed of the examples."""

    @property
    def size(self) -> int:
        """Return the maximal number of examples in a chunk."""

    @property
    def memory(self) -> int | None:
        """Return a worker's memory limit in bytes (:class:`WorkerPool`); None for no limit."""

    def examiner(self, done: Done) -> AbstractContextManager[Examiner]:
        """Open an examiner in a worker; ``done`` are the results so far."""


class Done(Protocol):
    """Read the results of finished chunks."""

    def chunk(self, number: int) -> Chunk | None:
        """Return the result of a chunk; None if it is unfinished."""
