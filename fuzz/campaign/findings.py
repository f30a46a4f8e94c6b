"""The findings of a campaign: deduplicated, counted, one folder each."""

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


def key(oracle: str, found: Finding) -> str:
    """Hash what findings are told apart by: property, kind, whether it repeats, and, unless the
    kind names a place in a compiler's source, the instruction to blame and the opcodes."""
    told = [] if _PLACED.match(found.kind) else [found.blamed, *sorted(found.opcodes)]
    apart = json.dumps([oracle, found.kind, found.is_flaky, told])
    words = f"{'flaky ' * found.is_flaky}{oracle} {found.kind}".lower()
    name = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:60]
    return f"{name}-{hashlib.sha256(apart.encode()).hexdigest()[:8]}"


def is_known(findings: Path, suspect: Suspect) -> bool:
    """Test whether a finding of the same property and kind covers the suspect, as it does where the
    kind says all; what reduction tells apart must be reduced. If so, count it; every tenth,
    hundredth, … is reduced all the same."""
    if suspect.told_by_reduction and _PLACED.match(suspect.kind) is None:
        return False
    for path in sorted(findings.glob(f"*/{FILE}")):
        kept = json.loads(path.read_text())
        if (kept["oracle"], kept["kind"]) == (suspect.oracle, suspect.kind):
            return str(atomic_files.count(path)).rstrip("0") != "1"
    return False


@dataclass(frozen=True, slots=True)
class Origin:
    """Locate an example: the seed of the campaign, the chunk, the number in it."""

    seed: int
    chunk: int
    program: int


def keep(findings: Path, oracle: str, found: Finding, origin: Origin) -> Path:
    """Write the folder of a finding, or count it if its key exists; return the folder."""
    folder = findings / key(oracle, found)
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
        "blamed": found.blamed,
        "opcodes": sorted(found.opcodes),
        "flaky": found.is_flaky,
        **found.facts,
        "times": 1,
        **asdict(origin),
    }
    atomic_files.write(told, kept)
    return folder


def all_kept(findings: Path) -> list[dict[str, Any]]:
    """Read all findings, the most frequent first."""
    kept = [json.loads(path.read_text()) for path in sorted(findings.glob(f"*/{FILE}"))]
    return sorted(kept, key=lambda one: -int(one["times"]))
