"""Store a campaign's state, which its processes share, in a directory.

::

    campaign.json          the facts that determine its chunks
    chunks/000017.json     the result of chunk 17; a chunk with this file is finished
    claims/000017          host and process id of the worker on chunk 17
    alone/000017.3/        example 3 of chunk 17, tested alone after a worker died
    findings/KEY/          a failure: the reduced example, the original, finding.json
"""

from __future__ import annotations

import json
import os
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fuzz.campaign import atomic_files, findings
from fuzz.campaign.subject import Chunk
from hlo.errors import ArgumentError

_NOTES = "notes"


class Directory:
    """Open or create a campaign's directory; raise ArgumentError if it has other facts."""

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        self.path = path
        for name in ("chunks", "claims", "findings"):
            (path / name).mkdir(parents=True, exist_ok=True)
        # As it is read back from the file: tuples become lists.
        plan, wanted = path / "campaign.json", json.loads(json.dumps(dict(facts)))
        if plan.exists():
            found = json.loads(plan.read_text())
            if found != wanted:
                raise ArgumentError(f"{plan} is of another campaign: {found}, not {wanted}")
        else:
            atomic_files.write(plan, wanted)

    def take(self, contents: Mapping[str, bytes]) -> None:
        """Merge the files of another directory of the campaign; known findings are only counted."""
        # Before anything is written: a new finding has several files, of which the first makes its
        # folder.
        known = {path.name for path in self.findings.iterdir()}
        for name, content in sorted(contents.items()):
            path = self.path / name
            kind, inner = Path(name).parts[:2]
            if kind == "findings" and inner in known:
                if path.name == findings.FILE:
                    atomic_files.count(path, json.loads(content)["times"])
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    @property
    def findings(self) -> Path:
        """Return the folder of findings."""
        return self.path / "findings"

    def found(self) -> list[dict[str, Any]]:
        """Read ``finding.json`` of all findings, the most frequent first."""
        return findings.all_kept(self.findings)

    def alone(self, number: int, example: int) -> Path:
        """Return the folder of an example that is tested alone."""
        return self.path / "alone" / f"{number:06}.{example}"

    def has(self, number: int) -> bool:
        """Test whether a chunk is finished."""
        return self._chunk(number).exists()

    def is_open(self, number: int) -> bool:
        """Test whether a chunk is neither finished nor claimed by a living process."""
        claim = self._claim_path(number)
        return not self.has(number) and (not claim.exists() or _is_stale(claim))

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
        that have ended are taken over."""
        if self.has(number) or not self._claim(number):
            return False
        if self.has(number):  # done since
            self.release(number)
            return False
        return True

    def release(self, number: int) -> None:
        """Remove this process's claim."""
        self._claim_path(number).unlink(missing_ok=True)

    def done(self, number: int, found: Chunk) -> None:
        """Write the result of a chunk, which marks it as finished."""
        notes = {_NOTES: found.notes} if found.notes else {}
        atomic_files.write(self._chunk(number), found.tallies | notes)

    def chunk(self, number: int) -> Chunk | None:
        """Read the result of a chunk; None if it is unfinished."""
        path = self._chunk(number)
        return _read(path) if path.exists() else None

    def finished(self, number: int) -> float:
        """Return the modification time of a finished chunk's file, in seconds."""
        return self._chunk(number).stat().st_mtime

    def numbers(self) -> list[int]:
        """List the finished chunks."""
        return sorted(int(path.stem) for path in (self.path / "chunks").glob("*.json"))

    def _chunk(self, number: int) -> Path:
        return self.path / "chunks" / f"{number:06}.json"

    def _claim_path(self, number: int) -> Path:
        return self.path / "claims" / f"{number:06}"

    def _claim(self, number: int) -> bool:
        path = self._claim_path(number)
        try:
            # Exclusive creation: of several processes that try, one succeeds.
            with path.open("x") as file:
                file.write(f"{socket.gethostname()} {os.getpid()}")
        except FileExistsError:
            if not _is_stale(path):
                return False
            path.unlink(missing_ok=True)
            return self._claim(number)
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
    kept = json.loads(path.read_text())
    notes = kept.pop(_NOTES, {})
    return Chunk({what: Counter(numbers) for what, numbers in kept.items()}, notes)


def _is_stale(path: Path) -> bool:
    """Return whether the claiming process has ended; False for one on another machine."""
    try:
        host, _, process = path.read_text().partition(" ")
    except FileNotFoundError:
        return False  # given back just now
    # Empty: its owner has created it, and is about to write.
    if host != socket.gethostname() or not process:
        return False
    try:
        # Signal 0 is not sent, but fails as a signal would.
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    # It lives, and belongs to another user.
    except PermissionError:
        return False
    return False
