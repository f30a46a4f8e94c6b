"""Reduce findings whose examples are programs, and write their files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import fuzz
import hlo
from fuzz.campaign.subject import Finding, Told
from fuzz.judge.blame import blamed
from fuzz.judge.failure import opcodes
from fuzz.oracles.oracle import Property
from fuzz.oracles.violation import Violation
from fuzz.reducer.search import Case
from hlo import archive
from hlo.errors import ArgumentError
from hlo.opcodes import STRUCTURAL, having

# Nearly every program has these: they tell no finding from another.
_IN_MOST = having(STRUCTURAL)


def program_finding(kind: str, detail: str, small: Case, original: Case) -> Finding:
    """Make a finding of a reduced program and the original."""
    facts = {"instructions": small.module.instruction_count}
    told = told_of(small)
    write = partial(write_both, small, original)
    return Finding(kind, detail, told.opcodes, write, facts, told.blamed)


def told_of(case: Case) -> Told:
    """Return a program's identity for deduplication: blamed instruction and distinctive opcodes."""
    return Told(blamed(case), opcodes(case.module) - _IN_MOST)


def reduced_case(
    of: Property, case: Case, kind: str, seconds: float, *, is_plain: bool = True
) -> Case | None:
    """Reduce a program while it violates a property with the same kind; None if it does not violate
    it when tested alone. Unless the result ``is_plain``, only cut it."""
    violation = Violation(of, kind)
    try:
        found = fuzz.reduce(
            case.module,
            case.arrays,
            violation,
            seconds=seconds,
            taken=violation.take,
            is_plain=is_plain,
        )
        return Case(*found)
    except ArgumentError:  # there is nothing to reduce
        return None


def write_both(small: Case, original: Case, folder: Path) -> None:
    """Write the reduced program and the original, with their arguments."""
    write_program(folder, "reduced", small)
    write_program(folder, "original", original)


def write_program(folder: Path, name: str, case: Case) -> None:
    """Write a program as NAME.hlo and its arguments as NAME.npz."""
    (folder / f"{name}.hlo").write_text(hlo.format(case.module), "utf-8")
    archive.write(folder / f"{name}.npz", archive.numbered(case.arrays))
