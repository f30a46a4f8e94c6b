"""What a campaign is about: examples, by chunks, and what is asked of each.

The loop (:mod:`fuzz.campaign.local`) knows nothing else of it: a subject says in a few words what
decides its chunks, and is opened in each worker, where chunk n is drawn, asked and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

Tallies = dict[str, Counter[str]]  # numbers of what, by what is counted


@dataclass(frozen=True, slots=True)
class Suspect:
    """An example of a chunk that violates something. ``kind`` is the same for the same defect in
    other examples; ``opcodes`` are those of the example; ``evidence`` is what the examiner needs to
    reduce it."""

    oracle: str
    kind: str
    detail: str
    example: int  # its number in the chunk
    opcodes: frozenset[str] = frozenset()
    evidence: Any = None


@dataclass(slots=True)
class Chunk:
    """What became of the examples of a chunk. ``notes`` are for whoever shows it, by name."""

    tallies: Tallies = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    suspects: list[Suspect] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """The numbers of examples, and of what became of them."""
        return self.tallies.setdefault("counts", Counter())

    def tally(self, what: str) -> Counter[str]:
        """The numbers of what was counted; none if nothing was."""
        return self.tallies.get(what, Counter())

    def count(self, what: str, of: Iterable[str] | Mapping[str, int]) -> None:
        """Add to the numbers of what is counted."""
        self.tallies.setdefault(what, Counter()).update(of)

    def add(self, other: Chunk) -> None:
        """Count what became of other examples, too."""
        for what, numbers in other.tallies.items():
            self.count(what, numbers)
        self.notes.update(other.notes)
        self.suspects += other.suspects


@dataclass(frozen=True, slots=True)
class Finding:
    """A suspect that was reduced. ``write`` puts what there is of it into its folder; ``facts`` are
    told beside what all findings have."""

    kind: str
    detail: str
    opcodes: frozenset[str]
    write: Callable[[Path], object]
    facts: Mapping[str, Any] = field(default_factory=dict)


class Examiner(Protocol):
    """Draws the examples of chunks, and asks what they are asked, in one process."""

    def chunk(self, number: int, only: int | None = None) -> Chunk:
        """What becomes of the examples of a chunk, or of only one of them."""

    def reduced(self, suspect: Suspect, number: int, seconds: float) -> Finding:
        """A small example that violates the same, found within so many seconds."""

    def write(self, number: int, example: int, folder: Path) -> None:
        """Put an example of a chunk into a folder, without asking it anything."""


class Subject(Protocol):
    """What decides the chunks of a campaign: plain data that can be pickled."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """All that decides what is in chunk n, for a file: a campaign goes on where that is the
        same."""

    @property
    def seed(self) -> int:
        """What its examples are drawn from."""

    @property
    def size(self) -> int:
        """Of a chunk, in examples."""

    @property
    def memory(self) -> int | None:
        """Bytes that a worker may have beyond what it begins with; None: any number."""

    def opened(self, done: Done) -> AbstractContextManager[Examiner]:
        """What draws and asks, in a worker, beside the chunks that are done."""


class Done(Protocol):
    """The chunks of a campaign that are done."""

    def chunk(self, number: int) -> Chunk | None:
        """What became of a chunk; None if it is not done."""
