"""Store a campaign's state, which its processes share, in a directory.

::

    campaign.json          the facts that determine its chunks
    chunks/000017.json     the result of chunk 17; a chunk with this file is finished
    parts/000017.json      what came of the examples of chunk 17 so far, and their numbers
    claims/000017          host and process id of the worker on chunk 17, which has it locked
    alone/000017.3/        example 3 of chunk 17, tested alone after a worker died
    findings/KEY/          a failure: the reduced example, the original, finding.json
    findings.lock          locked while findings are added and counted
"""

from __future__ import annotations

import json
import os
import socket
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fuzz.campaign import atomic_files, file_locks, findings
from fuzz.campaign.subject import Chunk, Part
from hlo.errors import ArgumentError

_EXAMPLES, _NOTES = "examples", "notes"


class Results:
    """Read a campaign's directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def findings(self) -> Path:
        """Return the folder of findings."""
        return self.path / "findings"

    def found(self) -> list[dict[str, Any]]:
        """Read ``finding.json`` of all findings, the most frequent first."""
        return findings.all_kept(self.findings)

    def has(self, number: int) -> bool:
        """Test whether a chunk is finished."""
        return self._chunk(number).exists()

    def chunk(self, number: int) -> Chunk | None:
        """Read the result of a chunk; None if it is unfinished."""
        path = self._chunk(number)
        return _outcomes(_content(path), path) if path.exists() else None

    def finished(self, number: int) -> float:
        """Return the modification time of a finished chunk's file, in seconds."""
        return self._chunk(number).stat().st_mtime

    def numbers(self) -> list[int]:
        """List the finished chunks."""
        return self._numbers("chunks")

    def parts(self) -> list[int]:
        """List the chunks that were begun."""
        return self._numbers("parts")

    def part(self, number: int) -> Part:
        """Read what came of a chunk's examples so far; nothing of one that is finished."""
        try:
            kept = _content(self._part(number))
        except FileNotFoundError:
            return Part()
        examples = set(kept.pop(_EXAMPLES, ()))
        return Part(examples, _outcomes(kept, self._part(number)))

    def at_work(self) -> int:
        """Count the chunks that processes are at work on."""
        return sum(1 for _ in (self.path / "claims").glob("*"))

    def _numbers(self, folder: str) -> list[int]:
        names = (path.stem for path in (self.path / folder).glob("*.json"))
        return sorted(int(name) for name in names if name.isdecimal())

    def _chunk(self, number: int) -> Path:
        return self.path / "chunks" / f"{number:06}.json"

    def _part(self, number: int) -> Path:
        return self.path / "parts" / f"{number:06}.json"


class Directory(Results):
    """Open or create a campaign's directory; raise ArgumentError if it has other facts. Claims are
    this object's, and end with it."""

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        super().__init__(path)
        self._claims: dict[int, file_locks.Lock] = {}
        for name in ("chunks", "claims", "findings", "parts"):
            (path / name).mkdir(parents=True, exist_ok=True)
        # As it is read back from the file: tuples become lists.
        plan, wanted = path / "campaign.json", json.loads(json.dumps(dict(facts)))
        if plan.exists():
            found = _facts(plan)
            if found != wanted:
                raise ArgumentError(f"{path} is of another campaign: {_apart(found, wanted)}")
        else:
            atomic_files.write(plan, wanted)

    def take(self, contents: Mapping[str, bytes]) -> None:
        """Merge the files of another directory of the campaign, which had got :meth:`left`; known
        findings are only counted."""
        folders = defaultdict[str, dict[str, bytes]](dict)
        for name, content in contents.items():
            part, inner, *rest = Path(name).parts
            if part == "findings":
                folders[inner]["/".join(rest)] = content
        for key, files in folders.items():
            findings.take(self.findings, key, files)
        for name, content in contents.items():
            path = Path(name)
            if path.parts[0] not in ("chunks", "parts") or self.has(number := int(path.stem)):
                continue
            for folder in findings.waiting(self.findings, number):
                if folder.name not in folders:
                    findings.remove(folder)
            # Last: a chunk with a file is finished, and is not asked for its findings again.
            atomic_files.write_bytes(self.path / name, content)
            if path.parts[0] == "chunks":
                self._part(number).unlink(missing_ok=True)

    def left(self, numbers: Iterable[int]) -> dict[str, bytes]:
        """Read the files of chunks that were begun, by their paths in the directory: what another
        process needs to go on."""
        paths = []
        for number in numbers:
            paths.append(self._part(number))
            for folder in findings.waiting(self.findings, number):
                paths += folder.rglob("*")
        return {str(p.relative_to(self.path)): p.read_bytes() for p in paths if p.is_file()}

    def alone(self, number: int, example: int) -> Path:
        """Return the folder of an example that is tested alone."""
        return self.path / "alone" / f"{number:06}.{example}"

    def is_open(self, number: int) -> bool:
        """Test whether a chunk is neither finished nor claimed by a living process."""
        if self.has(number):
            return False
        if not self._claim_path(number).exists():
            return True
        is_free = number not in self._claims and self._claim(number)
        if is_free:
            self.release(number)
        return is_free

    @contextmanager
    def claimed(self, number: int) -> Iterator[bool]:
        """Hold a claim on a chunk during the block; yield False if :meth:`claim` fails."""
        is_mine = self.claim(number)
        try:
            yield is_mine
        finally:
            if is_mine:
                self.release(number)

    def claim(self, number: int) -> bool:
        """Claim a chunk for this process; false if it is finished or claimed. Claims of processes
        that have ended are taken over, on other machines if they share locks of files."""
        if self.has(number) or not self._claim(number):
            return False
        if self.has(number):  # done since
            self.release(number)
            return False
        return True

    def release(self, number: int) -> None:
        """Remove this process's claim."""
        file_locks.remove(self._claim_path(number), self._claims.pop(number))

    def close(self) -> None:
        """Remove all claims of this object."""
        for number in [*self._claims]:
            self.release(number)

    def done(self, number: int, found: Chunk) -> None:
        """Write the result of a chunk, which marks it as finished."""
        atomic_files.write(self._chunk(number), _written(found))
        self._part(number).unlink(missing_ok=True)

    def begun(self, number: int, part: Part) -> None:
        """Write what came of some examples of a chunk, so that the others are left to test."""
        examples = {_EXAMPLES: sorted(part.examples)}
        atomic_files.write(self._part(number), examples | _written(part.outcomes))

    def _claim_path(self, number: int) -> Path:
        return self.path / "claims" / f"{number:06}"

    def _claim(self, number: int) -> bool:
        lock = file_locks.acquire(self._claim_path(number))
        if lock is None:
            return False
        self._claims[number] = lock
        # For who looks there; a claim is the lock.
        lock.truncate(0)
        lock.write(f"{socket.gethostname()} {os.getpid()}")
        lock.flush()
        return True


class Totals:
    """Sum the results of a directory's chunks, reading each file once."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._read: set[int] = set()
        self._whole = Chunk()

    def read(self) -> Chunk:
        """Add the chunks that were finished since the last call; return the sum, with what came of
        those that were begun."""
        # First: one that is finished meanwhile is not counted twice, and not left out.
        parts = {number: self._directory.part(number) for number in self._directory.parts()}
        for number in self._directory.numbers():
            found = None if number in self._read else self._directory.chunk(number)
            if found is not None:
                self._read.add(number)
                self._whole.add(found)
                self._whole.counts["chunks"] += 1
        # The callers keep what they got, as this sum goes on growing.
        copied = Chunk()
        copied.add(self._whole)
        for number, part in parts.items():
            if number not in self._read:
                copied.add(part.outcomes)
        return copied


def _written(found: Chunk) -> dict[str, Any]:
    """Convert outcomes to JSON."""
    return found.tallies | ({_NOTES: found.notes} if found.notes else {})


def _content(path: Path) -> dict[str, Any]:
    """Read the JSON object of a chunk; raise ArgumentError for another file."""
    try:
        kept = json.loads(path.read_text("utf-8"))
    except (RecursionError, ValueError) as error:
        raise _other(path, error) from None
    if not isinstance(kept, dict):
        raise _other(path, TypeError("it is no object"))
    return kept


def _outcomes(kept: dict[str, Any], path: Path) -> Chunk:
    """Convert outcomes from JSON; raise ArgumentError for those of another file."""
    try:
        notes = kept.pop(_NOTES, {})
        tallies = {str(what): Counter(numbers) for what, numbers in kept.items()}
        if not all(isinstance(n, int) for tally in tallies.values() for n in tally.values()):
            raise TypeError("it counts by other than numbers")
        return Chunk(tallies, dict(notes))
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise _other(path, error) from None


def _other(path: Path, error: Exception) -> ArgumentError:
    return ArgumentError(f"{path} is no result of a chunk: {error}")


def _facts(plan: Path) -> dict[str, Any]:
    """Read the facts of a campaign; ArgumentError if the file holds none."""
    try:
        found = json.loads(plan.read_text("utf-8"))
    except ValueError as error:
        raise ArgumentError(f"{plan}: not the facts of a campaign: {error}") from error
    if not isinstance(found, dict):
        raise ArgumentError(f"{plan}: not the facts of a campaign")
    return found


def _apart(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Say in which facts two campaigns differ, with the values where they are short."""
    parts = []
    for name in sorted(found.keys() | wanted.keys()):
        one, other = found.get(name), wanted.get(name)
        if one != other:
            is_short = not any(isinstance(x, list | dict) for x in (one, other))
            parts.append(f"{name} {one}, not {other}" if is_short else f"other {name}")
    return "; ".join(parts)
