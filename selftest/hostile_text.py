"""Texts that want to break the reader: mutations of programs, by token and by byte.

``python -m selftest.hostile_text --count N --seed S --workers W PATH…`` mutates the files at the
paths and modules that it draws itself. Whatever the text, reading, verifying and printing give a
module or one of the errors of ``hlo.errors``: never another exception, a crash, a hang or a lot of
memory. Text number n of a seed is always the same.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import hlo
from fuzz.draw.choices import examples
from fuzz.draw.programs import program
from hlo.opcodes import OPCODES
from hlo.types import ELEMENT_TYPES

LARGEST = 20_000  # characters; longer files are read in windows of so many
SECONDS = 10  # then it hangs
MEMORY = 512 << 20  # bytes that a reader may have beyond what it starts with
_PARTS = 0.1
_PERCENTILE = 0.99

_TOKEN = re.compile(r"""\s+|"[^"\n]*"|[A-Za-z_][\w.\-]*|-?\d+|->|<=|.""", re.ASCII)
_NUMBERS = (
    *("0", "1", "-1", "2", "3", "63", "64", "65", "127", "255", "1000000", "2147483647"),
    *("2147483648", "4294967296", "9223372036854775807", "9223372036854775808", "1e308", "-0"),
    *("18446744073709551616", "99999999999999999999999999999999", "1e99999", "nan", "inf"),
)
_PIECES = (
    *("(", ")", "{", "}", "[", "]", ",", "=", "%", '"', "'", "/*", "*/", "//", "<=", "->", "\\"),
    *("ROOT ", "ENTRY ", "HloModule ", "f32[]", "token[]", "()", "{...}", "\n", "\0", "\x85", "é"),
    *("{1,0}", "s4[0]", "pred[2]{0}", "to_apply=", "calls=", "metadata={", "sharding={", "#0", "?"),
)


_KINDS = sorted(ELEMENT_TYPES), sorted(OPCODES)


def _at(rng: random.Random, tokens: Sequence[str]) -> int:
    return rng.randrange(len(tokens))


def _removed(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    start = _at(rng, tokens)
    del tokens[start : start + rng.choice((1, 1, 2, 3, 20))]


def _repeated(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    start = _at(rng, tokens)
    piece = tokens[start : start + rng.choice((1, 2, 5, 30))]
    tokens[start:start] = piece * rng.choice((1, 1, 2, 10, 100))


def _exchanged(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    one, other = _at(rng, tokens), _at(rng, tokens)
    tokens[one], tokens[other] = tokens[other], tokens[one]


def _replaced(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    tokens[_at(rng, tokens)] = rng.choice(rng.choice((tokens, others)))


def _renumbered(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    places = [n for n, token in enumerate(tokens) if token.lstrip("-").isdigit()]
    if places:
        tokens[rng.choice(places)] = rng.choice(_NUMBERS)


def _renamed(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    """A word becomes another one of its kind: types, opcodes, or names and keys of the text."""
    places = [n for n, token in enumerate(tokens) if token[0].isalpha()]
    if not places:
        return
    place = rng.choice(places)
    words = next((kind for kind in _KINDS if tokens[place] in kind), None)
    if words is None:
        words = [tokens[n] for n in places if not any(tokens[n] in kind for kind in _KINDS)]
    tokens[place] = rng.choice(words)


def _inserted(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    tokens.insert(_at(rng, tokens), rng.choice(_PIECES))


def _spliced(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    start, length = rng.randrange(len(others)), rng.choice((3, 10, 50, 300))
    tokens[_at(rng, tokens) : 0] = others[start : start + length]


_BY_TOKEN: tuple[Callable[[random.Random, list[str], Sequence[str]], None], ...] = (
    _removed, _repeated, _exchanged, _replaced, _inserted, _spliced,
    _renumbered, _renumbered, _renumbered, _renamed, _renamed, _renamed, _renamed, _renamed,
)  # fmt: skip


def _by_byte(rng: random.Random, text: str) -> str:
    """Some bytes changed, put in or taken away; or the text cut off."""
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        place = rng.randrange(len(data) + 1)
        if rng.random() < 0.3:
            del data[place : place + rng.choice((1, 1, 4))]
        elif rng.random() < 0.5:
            data[place:place] = bytes([rng.randrange(256)])
        else:
            data[place : place + 1] = bytes([rng.randrange(256)])
    if rng.random() < 0.1:
        del data[rng.randrange(len(data) + 1) :]
    return data.decode("utf-8", rng.choice(("replace", "surrogateescape")))


def mutated(rng: random.Random, text: str, other: str) -> str:
    """The text with one to eight mutations; pieces of ``other`` get into it."""
    if rng.random() < 0.2:
        return _by_byte(rng, text)
    tokens, others = _TOKEN.findall(text), _TOKEN.findall(other)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if tokens and others:
            rng.choice(_BY_TOKEN)(rng, tokens, others)
    return "".join(tokens)


def drawn(count: int, seed: int) -> list[str]:
    """Texts of modules from :func:`fuzz.draw.programs.program`; the same for a seed."""
    return examples(lambda choices: hlo.format(program(choices)), count, seed)


def pieces(text: str) -> list[str]:
    """A text, in pieces of whole lines if it is too long, each with the first line."""
    lines = text.splitlines(keepends=True)
    found, size, piece = [], 0, lines[:1]
    for line in lines[1:]:
        if size + len(line) > LARGEST:
            found.append("".join(piece))
            size, piece = 0, lines[:1]
        size += len(line)
        piece.append(line[:LARGEST])
    return [*found, "".join(piece)]


def texts_of(paths: Sequence[Path]) -> list[str]:
    """The texts of HLO files, and of those in directories."""
    files: list[Path] = []
    for path in paths:
        names = ("*.hlo", "*.txt")
        found = [f for name in names for f in path.rglob(name)] if path.is_dir() else [path]
        files += sorted(found)
    return [file.read_text() for file in files]


@dataclass(frozen=True, slots=True)
class Sources:
    """What is mutated: whole programs most of the time, else pieces of long ones."""

    whole: tuple[str, ...]
    parts: tuple[str, ...]

    def choice(self, rng: random.Random) -> str:
        rest = self.parts if self.parts and rng.random() < _PARTS else self.whole
        return rng.choice(rest)


def sources(texts: Sequence[str]) -> Sources:
    long = [text for text in texts if len(text) > LARGEST]
    whole = tuple(text for text in texts if len(text) <= LARGEST)
    return Sources(whole, tuple(piece for text in long for piece in pieces(text)))


@dataclass
class Findings:
    """What became of the texts of one run."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)  # of the CPU, for texts not too long
    defects: list[tuple[str, str]] = field(default_factory=list)  # what is wrong, the text
    memory: int = 0  # the most bytes that a worker had

    def add(self, other: Findings) -> None:
        self.outcomes += other.outcomes
        self.seconds += other.seconds
        self.defects += other.defects
        self.memory = max(self.memory, other.memory)

    def slowest(self, part: float) -> float:
        """The seconds that this part of the texts stays under."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


class _HangsError(BaseException):
    """Not an Exception: nothing that a reader catches may swallow it."""


def _alarm(number: int, frame: FrameType | None) -> None:
    raise _HangsError


def read(text: str) -> str:
    """``module``, or the name of the error of ``hlo.errors`` that reading, verifying and printing
    raise. What is printed must be read as the same module."""
    try:
        module = hlo.parse(text)
        printed = hlo.format(module)
        if hlo.parse(printed) != module:
            raise AssertionError("printed, it is another module")
        hlo.verify(module)
    except hlo.Error as error:
        return type(error).__name__
    return "module"


def judge(texts: Iterator[str]) -> Findings:
    """Read texts one after the other, each with a limit of time."""
    findings = Findings()
    signal.signal(signal.SIGALRM, _alarm)
    for text in texts:
        start = time.process_time()
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            outcome = read(text)
        except (_HangsError, Exception) as error:  # to find any other exception is the purpose
            outcome = f"defect: {type(error).__name__}"
            findings.defects.append((f"{type(error).__name__}: {error}"[:300], text))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        findings.outcomes[outcome] += 1
        if len(text) <= LARGEST:
            findings.seconds.append(time.process_time() - start)
    findings.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return findings


def mutations(texts: Sources, seed: int, numbers: Sequence[int]) -> Iterator[str]:
    for number in numbers:
        rng = random.Random(f"{seed} {number}")
        yield mutated(rng, texts.choice(rng), texts.choice(rng))[: 2 * LARGEST]


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


_Job = tuple[Sources, int, Sequence[int]]


def _work(job: _Job) -> Findings:
    return judge(mutations(*job))


def campaign(texts: Sources, seed: int, count: int, workers: int) -> Iterator[Findings]:
    """The findings so far, again and again, while ``workers`` processes read ``count`` texts; with
    none, this process does, and its memory is not limited."""
    step = min(1000, -(-count // max(1, workers)))
    jobs = [
        (texts, seed, range(start, min(start + step, count))) for start in range(0, count, step)
    ]
    total = Findings()
    for findings in _in_processes(jobs, workers) if workers else map(_work, jobs):
        total.add(findings)
        yield total


def _in_processes(jobs: Sequence[_Job], workers: int) -> Iterator[Findings]:
    # Not forked from this process: it may have threads (jax starts some when it is imported).
    with multiprocessing.get_context("forkserver").Pool(workers, _limit_memory) as pool:
        yield from pool.imap_unordered(_work, jobs)


def report(findings: Findings) -> str:
    counts = ", ".join(f"{count:,} {name}" for name, count in sorted(findings.outcomes.items()))
    p99 = findings.slowest(_PERCENTILE) * 1000
    return (
        f"{findings.outcomes.total():,} texts: {counts}; p99 {p99:.1f} ms,"
        f" longest {findings.slowest(1) * 1000:.0f} ms, {findings.memory >> 20} MiB"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m selftest.hostile_text", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="HLO files, directories of them")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--drawn", type=int, default=200, help="how many modules it draws itself")
    parser.add_argument("--workers", type=int, default=1, help="0: none, read here (to debug)")
    parser.add_argument("--keep", type=Path, help="a directory for texts with findings")
    given = parser.parse_args(arguments)
    texts = sources(texts_of(given.paths) + drawn(given.drawn, given.seed))
    findings, kept = Findings(), 0
    for findings in campaign(texts, given.seed, given.count, given.workers):
        for message, text in findings.defects[kept:]:
            print(f"{kept}: {message}", flush=True)
            if given.keep is not None:
                given.keep.mkdir(parents=True, exist_ok=True)
                encoded = text.encode("utf-8", "surrogatepass")
                (given.keep / f"{given.seed}.{kept}.txt").write_bytes(encoded)
            kept += 1
        print(f"\r{report(findings)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(report(findings))
    return 1 if findings.defects else 0


if __name__ == "__main__":
    sys.exit(main())
