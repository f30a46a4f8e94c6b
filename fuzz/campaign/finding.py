"""A violated property: reduced, told from others, kept as a folder."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import fuzz
import hlo
from fuzz.campaign import atomic_files
from fuzz.judge.failure import opcodes
from fuzz.oracles import Difference
from fuzz.oracles.oracle import Property
from fuzz.oracles.violation import Violation
from fuzz.reducer.search import Case
from fuzz.report import Report, write
from hlo import archive
from hlo.module import Module

# Of a crash whose place is known that says all; without one it is a signal or an exit status.
_PLACED = re.compile(r"crash: (?!SIG[A-Z]++\Z|exit )")

_PLAIN = frozenset(("parameter", "constant", "tuple", "get-tuple-element"))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a program comes from: the property, and what draws it again."""

    oracle: str
    seed: int
    chunk: int
    program: int


def key(oracle: str, kind: str, module: Module) -> str:
    """The same for findings that are taken for one: property, kind, and opcodes unless the kind
    is a place in a compiler's source."""
    told = json.dumps([oracle, kind, [] if _PLACED.match(kind) else _told(module)])
    words = re.sub(r"[^a-z0-9]+", "-", f"{oracle} {kind}".lower()).strip("-")[:60]
    return f"{words}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"


def _told(module: Module) -> list[str]:
    return sorted(opcodes(module) - _PLAIN)


def is_known(findings: Path, oracle: str, kind: str, module: Module) -> bool:
    """Whether a finding of the property and the kind is of the same place, or has no opcode that
    the program has not. That one is counted; of ten, a hundred and so on one is reduced all the
    same."""
    own, is_placed = opcodes(module), _PLACED.match(kind) is not None
    for path in sorted(findings.glob("*/finding.json")):
        kept = json.loads(path.read_text())
        is_alike = is_placed or own.issuperset(kept["opcodes"])
        if (kept["oracle"], kept["kind"]) == (oracle, kind) and is_alike:
            return str(atomic_files.count(path)).rstrip("0") != "1"
    return False


def reduced(of: Property, case: Case, kind: str, seconds: float) -> Case:
    """A small program that violates the property in the same way; the program itself if it does
    not, alone."""
    violation = Violation(of, kind)
    if not violation(case.module, case.arrays):
        return case
    return Case(*fuzz.reduce(case.module, case.arrays, violation, seconds=seconds))


def keep(findings: Path, origin: Origin, found: Difference, small: Case, original: Case) -> Path:
    """Write the folder of a finding, with a report of another compiler's; or count it where there
    is one of its key. The folder."""
    folder = findings / key(origin.oracle, found.kind, small.module)
    told = folder / "finding.json"
    if told.exists():
        atomic_files.count(told)
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, case in (("reduced", small), ("original", original)):
        (folder / f"{name}.hlo").write_text(hlo.format(case.module))
        archive.write(folder / f"{name}.npz", archive.numbered(case.arrays))
    if found.judged is not None:
        text = hlo.format(original.module).encode()
        report = Report(small.module, small.arrays, found.judged, text, original.arrays)
        write(report, folder / "report")
    kept = {
        "oracle": origin.oracle,
        "kind": found.kind,
        "detail": found.detail,
        "opcodes": _told(small.module),
        "instructions": small.module.instruction_count,
        "times": 1,
        "seed": origin.seed,
        "chunk": origin.chunk,
        "program": origin.program,
    }
    atomic_files.write(told, kept)
    return folder


def all_kept(findings: Path) -> Sequence[dict[str, object]]:
    """What the folders say, the most frequent first."""
    kept = [json.loads(path.read_text()) for path in sorted(findings.glob("*/finding.json"))]
    return sorted(kept, key=lambda one: -int(str(one["times"])))
