"""Texts that want to break the reader: mutations of programs, by token and by byte.

``python -m selftest.hostile_text --count N --seed S --workers W PATH…`` mutates the files at the
paths and modules that it draws itself. Whatever the text, reading, verifying and printing give a
module or one of the errors of ``hlo.errors``: never another exception, a crash, a hang or a lot of
memory. It is a campaign (:mod:`fuzz.campaign`): text number n of a seed is always the same, with
``--state DIR`` a run goes on where the last one ended, and texts that break the reader are there,
reduced. Exit status 1 if there are any.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hlo
from fuzz.campaign.directory import Directory
from fuzz.campaign.subject import Chunk, Done, Finding, Part, Suspect
from fuzz.campaign.text_findings import text_finding, unreduced_text, write_text
from fuzz.draw.text_mutations import (
    LARGEST,
    Sources,
    drawn,
    mutations,
    sources,
    texts_of,
)
from fuzz.draw.time_limit import TooLongError, time_limit
from hlo_oracle import campaign_progress

SECONDS = 10  # then it hangs
MEMORY = 512 << 20  # bytes that a reader may have beyond what it starts with
_CHUNK = 250  # texts
_PERCENTILE = 0.99
_TICK = 1e-4  # seconds: times are counted in these
_SECONDS, _MEMORY = "tenths of milliseconds", "mebibytes"


def read(text: str) -> str:
    """Read, print and verify a text; return ``module``, or the name of the ``hlo.Error`` raised.
    The printed text must parse to the same module."""
    try:
        module = hlo.parse(text)
        printed = hlo.format(module)
        if hlo.parse(printed) != module:
            raise AssertionError("printed, it is another module")
        hlo.verify(module)
    except hlo.Error as error:
        return type(error).__name__
    return "module"


def outcome(text: str) -> tuple[str, str]:
    """Read a text with a time limit; return the outcome and, if it is a defect, a message."""
    try:
        with time_limit(SECONDS):
            return read(text), ""
    except (TooLongError, Exception) as error:  # to find any other exception is the purpose
        last = traceback.extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__} in {Path(last.filename).name}:{last.name}"
        return f"defect: {kind}", f"{type(error).__name__}: {error}"[:300]


def read_all(texts: Iterable[tuple[int, str]]) -> Chunk:
    """Read numbered texts; count outcomes, and record processor times of texts that are not too
    long."""
    found = Chunk()
    for number, text in texts:
        start = time.process_time()
        what, message = outcome(text)
        seconds = time.process_time() - start
        found.count("counts", ["texts"])
        found.count("outcomes", [what])
        if len(text) <= LARGEST:
            found.count(_SECONDS, [str(round(seconds / _TICK))])
        if message:
            found.suspects.append(Suspect("typed errors", what, message, number, evidence=text))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in KiB
    found.count(_MEMORY, [str(peak >> 10)])
    return found


def slowest(total: Chunk, part: float) -> float:
    """Compute a quantile of the processor times, in seconds."""
    times = total.tally(_SECONDS)
    left = int(part * sum(times.values()))
    for ticks in sorted(map(int, times)):
        left -= times[str(ticks)]
        if left < 0:
            return ticks * _TICK
    return max(map(int, times), default=0) * _TICK


@dataclass(frozen=True, slots=True)
class HostileTexts:
    """The plan of the campaign: ``size`` mutations of ``texts`` in a chunk."""

    seed: int
    texts: Sources
    size: int = _CHUNK

    @property
    def facts(self) -> Mapping[str, Any]:
        """All fields, which decide the outcome; texts by their hash."""
        told = json.dumps([self.texts.whole, self.texts.parts]).encode()
        texts = hashlib.sha256(told).hexdigest()
        return {"campaign": "hostile text", "seed": self.seed, "size": self.size, "texts": texts}

    @property
    def memory(self) -> int | None:
        """The memory limit of reading, in bytes."""
        return MEMORY

    def examiner(self, done: Done) -> AbstractContextManager[TextExaminer]:
        """Open an examiner, which needs no other chunks."""
        return nullcontext(TextExaminer(self))


@dataclass(frozen=True, slots=True)
class TextExaminer:
    """Reads texts and finds those that break the reader."""

    subject: HostileTexts

    def chunk(self, number: int, examples: Sequence[int] | None = None) -> Iterator[Part]:
        """Count outcomes; ``notes`` have a message for each text that breaks the reader."""
        wanted = range(self.subject.size) if examples is None else examples
        found = read_all(zip(wanted, self._texts(number, wanted)))
        first = number * self.subject.size
        for one in found.suspects:
            found.notes[str(first + one.example)] = one.detail
        yield Part(set(wanted), found)

    def unreduced(self, suspect: Suspect) -> Finding:
        """Make a finding of a text as it is."""
        return unreduced_text(suspect.kind, suspect.detail, suspect.evidence)

    def reduced(self, suspect: Suspect, number: int, seconds: float) -> Finding:
        """Minimise the lines, tokens and characters that break the reader in the same way."""
        return text_finding(
            suspect.kind,
            suspect.detail,
            suspect.evidence,
            lambda shorter: outcome(shorter)[0] == suspect.kind,
            seconds,
        )

    def write(self, number: int, example: int, folder: Path) -> None:
        """Write the text as it is drawn."""
        (text,) = self._texts(number, [example])
        write_text(folder / "original.txt", text)

    def _texts(self, number: int, examples: Sequence[int]) -> Iterator[str]:
        first = number * self.subject.size
        numbers = [first + example for example in examples]
        return mutations(self.subject.texts, self.subject.seed, numbers)


def report(total: Chunk) -> str:
    """Format outcomes, processor times, and the peak memory of a worker."""
    outcomes = total.tally("outcomes")
    counts = ", ".join(f"{count:,} {name}" for name, count in sorted(outcomes.items()))
    p99, longest = (slowest(total, part) * 1000 for part in (_PERCENTILE, 1))
    memory = max(map(int, total.tally(_MEMORY)), default=0)
    return (
        f"{total.counts['texts']:,} texts: {counts}; p99 {p99:.1f} ms,"
        f" longest {longest:.0f} ms, {memory} MiB"
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m selftest.hostile_text", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="HLO files, directories of them")
    parser.add_argument("--count", type=int, default=10_000, help="texts in all, at least")
    parser.add_argument("--drawn", type=int, default=200, help="how many modules it draws itself")
    parser.add_argument("--keep", type=Path, help="a directory for texts with findings")
    campaign_progress.add_options(parser, workers=1)
    given = parser.parse_args(words)
    texts = sources(texts_of(given.paths) + drawn(given.drawn, given.seed))
    subject = HostileTexts(given.seed, texts, min(_CHUNK, given.count))

    def table(directory: Directory, total: Chunk) -> Iterator[str]:
        yield from (f"{number}: {message}" for number, message in total.notes.items())
        yield report(total)
        if given.keep is not None:
            _keep(given.keep, subject, total)

    return campaign_progress.run(subject, given.count, given, "texts", report, table=table)


def _keep(directory: Path, subject: HostileTexts, total: Chunk) -> None:
    """Write all texts that break the reader to files."""
    directory.mkdir(parents=True, exist_ok=True)
    numbers = list(map(int, total.notes))
    for number, text in zip(numbers, mutations(subject.texts, subject.seed, numbers)):
        write_text(directory / f"{subject.seed}.{number}.txt", text)


if __name__ == "__main__":
    sys.exit(main())
