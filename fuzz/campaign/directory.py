"""The directory of a campaign: all that its processes share, and what is left of it.

::

    campaign.json          the plan, and the version that draws from it
    chunks/000017.json     what became of chunk 17; a chunk with this file is done
    claims/000017          the process that is at work on it
    findings/KEY/          a program that violates a property, reduced, and how to see that
"""

from __future__ import annotations

import json
import os
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from fuzz.campaign import atomic_files
from fuzz.campaign.chunk import Examined
from fuzz.campaign.plan import Plan
from hlo.errors import ArgumentError


class Corpus:
    """Of one plan; ArgumentError if the directory is another's."""

    def __init__(self, directory: Path, plan: Plan) -> None:
        self._directory = directory
        for name in ("chunks", "claims", "findings"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        wanted = asdict(plan) | {"oracles": list(plan.oracles)}
        path = directory / "campaign.json"
        if path.exists():
            found = json.loads(path.read_text())
            if found != wanted:
                raise ArgumentError(f"{path} is of another campaign: {found}, not {wanted}")
        else:
            atomic_files.write(path, wanted)

    @staticmethod
    def plan_of(directory: Path) -> Plan:
        """What the directory is of."""
        kept = json.loads((directory / "campaign.json").read_text())
        return Plan(**{**kept, "oracles": tuple(kept["oracles"])})

    def take(self, contents: Mapping[str, bytes]) -> None:
        """What another directory of the campaign has: chunks, and findings that are not here."""
        known = {path.name for path in self.findings.iterdir()}
        for name, content in sorted(contents.items()):
            path = self._directory / name
            kind, inner = Path(name).parts[:2]
            if kind == "findings" and inner in known:
                if path.name == "finding.json":
                    atomic_files.count(path, json.loads(content)["times"])
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def has(self, number: int) -> bool:
        """Whether a chunk is done."""
        return self._chunk(number).exists()

    @property
    def findings(self) -> Path:
        """The directory of findings."""
        return self._directory / "findings"

    def claimed(self, numbers: Iterable[int]) -> Iterator[int]:
        """Those chunks that nobody has done or is at work on, each claimed for this process. A
        claim of a process that is gone does not count."""
        for number in numbers:
            if not self.has(number) and self._claim(number):
                if not self.has(number):  # done since
                    yield number
                self._claim_path(number).unlink(missing_ok=True)

    def done(self, number: int, found: Examined) -> None:
        """A chunk and what became of it."""
        atomic_files.write(
            self._chunk(number),
            {"counts": found.counts, "coverage": found.coverage},
        )

    def totals(self) -> Examined:
        """Of all chunks that are done."""
        total = Examined()
        for path in sorted((self._directory / "chunks").glob("*.json")):
            kept = json.loads(path.read_text())
            total.counts.update(Counter(kept["counts"]))
            total.coverage.update(Counter(kept["coverage"]))
            total.counts["chunks"] += 1
        return total

    def _chunk(self, number: int) -> Path:
        return self._directory / "chunks" / f"{number:06}.json"

    def _claim_path(self, number: int) -> Path:
        return self._directory / "claims" / f"{number:06}"

    def _claim(self, number: int) -> bool:
        path = self._claim_path(number)
        try:
            with path.open("x") as file:
                file.write(f"{socket.gethostname()} {os.getpid()}")
        except FileExistsError:
            if not _is_stale(path):
                return False
            path.unlink(missing_ok=True)
            return self._claim(number)
        return True


def _is_stale(path: Path) -> bool:
    """Whether the process that claimed is gone; of other machines nobody knows."""
    try:
        host, _, process = path.read_text().partition(" ")
    except FileNotFoundError:
        return False  # given back just now
    if host != socket.gethostname() or not process:
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
