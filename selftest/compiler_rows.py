"""Run programs in one configuration of the compiler matrix, and format the table of all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

import hlo
import interp
from fuzz.compilers.combined_programs import merged
from fuzz.compilers.configurations import Configuration, Missing
from fuzz.compilers.source_digests import digest, elsewhere
from fuzz.compilers.trial import Outcome, Trial, outcome, unequal
from fuzz.judge.nan_bits import depends_on_them
from fuzz.oracles.configurations import kind_of
from hlo.values import arrays_of

SAME_TEXT = "the same C text in other processes"


class Wrong(NamedTuple):
    """A fault of a program; ``kind`` is the same for the same defect in other programs."""

    name: str
    kind: str
    detail: str


@dataclass
class Row:
    """Counts of one configuration."""

    name: str
    modules: int = 0
    elements: int = 0  # of results, each number of threads by itself
    differing: int = 0  # programs with another bit
    findings: int = 0  # programs that do not compile, crash, or of which a sanitizer speaks
    open: int = 0  # programs that depend on the bits of a NaN, and differ
    wrong: list[Wrong] = field(default_factory=list)


@dataclass(frozen=True)
class Batch:
    """Programs that are compiled as one."""

    parts: tuple[tuple[str, hlo.Module, tuple[Any, ...]], ...]

    def trial(self) -> Trial:
        name = self.parts[0][0] if len(self.parts) == 1 else f"{len(self.parts)} programs"
        module = self.parts[0][1]
        if len(self.parts) > 1:
            module = merged([module for _, module, _ in self.parts])
        arguments = tuple(a for _, _, given in self.parts for a in given)
        return Trial(name, module, arguments, interp.evaluate(module, *arguments))

    def singles(self) -> Iterator[Batch]:
        return (Batch((part,)) for part in self.parts)


def compared(trial: Trial, configuration: Configuration) -> tuple[Outcome, str, int]:
    """Run a trial; return the outcome, a description of the difference in bits (empty if none), and
    the number of elements compared."""
    found = outcome(trial, configuration)
    elements = sum(array.size for value in found.values for array in arrays_of(value))
    return found, unequal(trial, configuration, found), elements


def tried(batch: Batch, trial: Trial, configuration: Configuration, row: Row) -> None:
    """Add a batch to a row; if it fails, run each of its programs alone to find the fault."""
    found, difference, elements = compared(trial, configuration)
    if len(batch.parts) == 1 and (difference or found.finding.startswith("result ")):
        (_, module, arguments) = batch.parts[0]
        if depends_on_them(module, arguments):
            row.modules += 1
            row.open += 1
            return
    if not (found.finding or difference) or len(batch.parts) == 1:
        row.modules += len(batch.parts)
        row.elements += elements
        row.differing += bool(difference)
        row.findings += bool(found.finding)
        if found.finding or difference:
            kind = kind_of(configuration, found.finding, difference)
            row.wrong.append(Wrong(batch.parts[0][0], kind, found.finding or difference))
        return
    bad = len(row.wrong) + row.open
    for single in batch.singles():
        tried(single, single.trial(), configuration, row)
    if len(row.wrong) + row.open == bad:  # only together
        row.differing += bool(difference)
        row.findings += bool(found.finding)
        kind = f"{kind_of(configuration, found.finding, difference)}, only together"
        row.wrong.append(Wrong(batch.parts[0][0], kind, found.finding or difference))


def same_text(batch: Batch, row: Row) -> None:
    """Compare the generated C with that of other processes."""
    own = [digest(module) for _, module, _ in batch.parts]
    with tempfile.TemporaryDirectory(prefix="everywhere-") as directory:
        for found in elsewhere([module for _, module, _ in batch.parts], Path(directory)):
            for (name, _, _), one, other in zip(batch.parts, own, found, strict=True):
                if one != other:
                    row.differing += 1
                    row.wrong.append(Wrong(name, "other C", "other C in another process"))
    row.modules += len(batch.parts)


def table(rows: Sequence[Row], missing: Sequence[Missing]) -> Table:
    made = Table(box=None, pad_edge=False)
    made.add_column("configuration")
    for title in ("modules", "elements", "differing", "findings"):
        made.add_column(title, justify="right")
    for row in rows:
        numbers = (row.modules, row.elements, row.differing, row.findings)
        made.add_row(row.name, *(f"{number:,}" for number in numbers))
    for absent in missing:
        made.add_row(absent.name, f"[dim]{absent.why}[/dim]")
    return made


def markdown(rows: Sequence[Row], missing: Sequence[Missing]) -> str:
    """Format the table of docs/evidence/same_bits.md."""
    lines = [
        "| configuration | modules | elements | differing | findings |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.name} | {r.modules:,} | {r.elements:,} | {r.differing} | {r.findings} |"
        for r in rows
    ]
    return "\n".join([*lines, *(f"| {absent.name} | {absent.why} | | | |" for absent in missing)])
