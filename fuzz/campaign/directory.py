"""Store a campaign's state, which its processes share, in a directory.

::

    campaign.json          the facts that determine its chunks
    chunks/000017.json     the result of chunk 17; a chunk with this file is finished
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fuzz.campaign import atomic_files, file_locks, findings
from fuzz.campaign.subject import Chunk
from hlo.errors import ArgumentError

_NOTES = "notes"


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
        return _read(path) if path.exists() else None

    def finished(self, number: int) -> float:
        """Return the modification time of a finished chunk's file, in seconds."""
        return self._chunk(number).stat().st_mtime

    def numbers(self) -> list[int]:
        """List the finished chunks."""
        names = (path.stem for path in (self.path / "chunks").glob("*.json"))
        return sorted(int(name) for name in names if name.isdecimal())

    def _chunk(self, number: int) -> Path:
        return self.path / "chunks" / f"{number:06}.json"


class Directory(Results):
    """Open or create a campaign's directory; raise ArgumentError if it has other facts. Claims are
    this object's, and end with it."""

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        super().__init__(path)
        self._claims: dict[int, file_locks.Lock] = {}
        for name in ("chunks", "claims", "findings"):
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
        """Merge the files of another directory of the campaign; known findings are only counted."""
        folders = defaultdict[str, dict[str, bytes]](dict)
        for name, content in contents.items():
            part, inner, *rest = Path(name).parts
            if part == "findings":
                folders[inner]["/".join(rest)] = content
        for key, files in folders.items():
            findings.take(self.findings, key, files)
        # Last: a chunk with a file is finished, and is not asked for its findings again.
        for name, content in contents.items():
            if Path(name).parts[0] == "chunks":
                atomic_files.write_bytes(self.path / name, content)

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
        notes = {_NOTES: found.notes} if found.notes else {}
        atomic_files.write(self._chunk(number), found.tallies | notes)

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
        """Add the chunks that were finished since the last call; return the sum."""
        for number in self._directory.numbers():
            found = None if number in self._read else self._directory.chunk(number)
            if found is not None:
                self._read.add(number)
                self._whole.add(found)
                self._whole.counts["chunks"] += 1
        # The callers keep what they got, as this sum goes on growing.
        copied = Chunk()
        copied.add(self._whole)
        return copied


def _read(path: Path) -> Chunk:
    """Read the result of a chunk; raise ArgumentError for another file."""
    try:
        kept = json.loads(path.read_text("utf-8"))
        notes = kept.pop(_NOTES, {})
        tallies = {str(what): Counter(numbers) for what, numbers in kept.items()}
        if not all(isinstance(n, int) for tally in tallies.values() for n in tally.values()):
            raise TypeError("it counts by other than numbers")
        return Chunk(tallies, dict(notes))
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise ArgumentError(f"{path} is no result of a chunk: {error}") from None


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
