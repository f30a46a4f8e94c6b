"""Findings that are programs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import hlo
from fuzz.campaign.subject import Finding
from fuzz.judge.failure import opcodes
from fuzz.reducer.search import Case
from hlo import archive
from hlo.opcodes import STRUCTURAL, having

# Nearly every program has these: they tell no finding from another.
_IN_MOST = having(STRUCTURAL)


def program_finding(kind: str, detail: str, small: Case, original: Case) -> Finding:
    """A program that violates something, as it was reduced and as it was drawn."""
    facts = {"instructions": small.module.instruction_count}
    told = opcodes(small.module) - _IN_MOST
    return Finding(kind, detail, told, partial(write_both, small, original), facts)


def write_both(small: Case, original: Case, folder: Path) -> None:
    """The programs and their arguments, as files."""
    write_program(folder, "reduced", small)
    write_program(folder, "original", original)


def write_program(folder: Path, name: str, case: Case) -> None:
    """A program and its arguments, as files of that name."""
    (folder / f"{name}.hlo").write_text(hlo.format(case.module))
    archive.write(folder / f"{name}.npz", archive.numbered(case.arrays))
