"""What a campaign found: told apart, counted, and each kept as a folder."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fuzz.campaign import atomic_files
from fuzz.campaign.subject import Finding, Suspect

FILE = "finding.json"

# Of a crash whose place is known that says all; without one it is a signal or an exit status.
_PLACED = re.compile(r"crash: (?!SIG[A-Z]++\Z|exit )")


def key(oracle: str, kind: str, told: frozenset[str]) -> str:
    """The same for findings that are taken for one: property, kind, and opcodes unless the kind
    is a place in a compiler's source."""
    apart = json.dumps([oracle, kind, [] if _PLACED.match(kind) else sorted(told)])
    words = re.sub(r"[^a-z0-9]+", "-", f"{oracle} {kind}".lower()).strip("-")[:60]
    return f"{words}-{hashlib.sha256(apart.encode()).hexdigest()[:8]}"


def is_known(findings: Path, suspect: Suspect) -> bool:
    """Whether a finding of the property and the kind is of the same place, or has no opcode that
    the suspect has not. That one is counted; of ten, a hundred and so on one is reduced all the
    same."""
    is_placed = _PLACED.match(suspect.kind) is not None
    for path in sorted(findings.glob(f"*/{FILE}")):
        kept = json.loads(path.read_text())
        is_alike = is_placed or suspect.opcodes.issuperset(kept["opcodes"])
        if (kept["oracle"], kept["kind"]) == (suspect.oracle, suspect.kind) and is_alike:
            return str(atomic_files.count(path)).rstrip("0") != "1"
    return False


@dataclass(frozen=True, slots=True)
class Origin:
    """What draws an example again: the seed of a campaign, a chunk, and its number there."""

    seed: int
    chunk: int
    program: int


def keep(findings: Path, oracle: str, found: Finding, origin: Origin) -> Path:
    """Write the folder of a finding; or count it where there is one of its key. The folder."""
    folder = findings / key(oracle, found.kind, found.opcodes)
    told = folder / FILE
    if told.exists():
        atomic_files.count(told)
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    found.write(folder)
    kept = {
        "oracle": oracle,
        "kind": found.kind,
        "detail": found.detail,
        "opcodes": sorted(found.opcodes),
        **found.facts,
        "times": 1,
        **asdict(origin),
    }
    atomic_files.write(told, kept)
    return folder


def all_kept(findings: Path) -> list[dict[str, Any]]:
    """What the folders say, the most frequent first."""
    kept = [json.loads(path.read_text()) for path in sorted(findings.glob(f"*/{FILE}"))]
    return sorted(kept, key=lambda one: -int(one["times"]))
