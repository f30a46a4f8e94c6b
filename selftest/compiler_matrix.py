"""``python -m selftest.compiler_matrix [PATH…]``: the same bits under every compiler and flag.

Drawn programs (``--modules``) and those in the given files and directories run in the interpreter
and, as C, in every configuration that this machine has: compilers, -O0 and -O3, SSE2 to AVX-512,
models of processors, with OpenMP and without it, 1 to 8 threads, the embedded target with its
main, and the sanitizers, which must have nothing to say. Many programs are compiled as one. A table
says what was compared, what differed and what is missing on this machine; the exit status is 1 if
anything differed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import hlo
import interp
from backend_c.pipeline import lowered
from fuzz.compilers.combined_programs import merged
from fuzz.compilers.configurations import Configuration, Missing, configurations
from fuzz.compilers.source_digests import digest, elsewhere
from fuzz.compilers.trial import Outcome, Trial, outcome, unequal
from fuzz.draw.seeded_programs import programs
from fuzz.judge.nan_bits import depends_on_them
from hlo.values import arrays_of
from hlo_oracle.arguments import from_seed

_TOGETHER = 40  # programs in one translation unit
_SMALL = 1 << 16  # elements of a program's values: those with more are compiled alone
_SAME_TEXT = "the same C text in other processes"


@dataclass
class Row:
    """What one configuration did so far."""

    name: str
    modules: int = 0
    elements: int = 0  # of results, each number of threads by itself
    differing: int = 0  # programs with another bit
    findings: int = 0  # programs that do not compile, crash, or of which a sanitizer speaks
    open: int = 0  # programs that depend on the bits of a NaN, and differ
    details: list[str] = field(default_factory=list)


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


def judged(trial: Trial, configuration: Configuration) -> tuple[Outcome, str, int]:
    """The outcome, how its bits differ (or nothing), and how many elements were compared."""
    found = outcome(trial, configuration)
    elements = sum(array.size for value in found.values for array in arrays_of(value))
    return found, unequal(trial, configuration, found), elements


def tried(batch: Batch, trial: Trial, configuration: Configuration, row: Row) -> None:
    """Add a batch to a row; what goes wrong in it is looked for in each of its programs."""
    found, difference, elements = judged(trial, configuration)
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
            row.details.append(f"{batch.parts[0][0]}: {found.finding or difference}")
        return
    bad = len(row.details) + row.open
    for single in batch.singles():
        tried(single, single.trial(), configuration, row)
    if len(row.details) + row.open == bad:  # only together
        row.differing += bool(difference)
        row.findings += bool(found.finding)
        row.details.append(f"{trial.name}: {found.finding or difference}")


def same_text(batch: Batch, row: Row) -> None:
    """Do other processes generate the same C?"""
    own = [digest(module) for _, module, _ in batch.parts]
    with tempfile.TemporaryDirectory(prefix="everywhere-") as directory:
        for found in elsewhere([module for _, module, _ in batch.parts], Path(directory)):
            for (name, _, _), one, other in zip(batch.parts, own, found, strict=True):
                if one != other:
                    row.differing += 1
                    row.details.append(f"{name}: other C in another process")
    row.modules += len(batch.parts)


# ---- programs ----


def batches(paths: Sequence[Path], count: int, seed: int) -> Iterator[Batch]:
    """The programs of files, then drawn ones, in batches."""
    small: list[tuple[str, hlo.Module, tuple[Any, ...]]] = []
    for name, module, arguments in _usable(_of_files(paths)):
        if _elements(module) > _SMALL:
            yield Batch(((name, module, arguments),))
        else:
            small.append((name, module, arguments))
    yield from _grouped(small)
    drawn = islice(programs(seed), count)
    for number in range(-(-count // _TOGETHER)):
        some = islice(drawn, _TOGETHER)
        named = ((f"drawn {number}.{n}", *program) for n, program in enumerate(some))
        yield from _grouped(list(_usable(named)))


def _grouped(parts: list[tuple[str, hlo.Module, tuple[Any, ...]]]) -> Iterator[Batch]:
    for start in range(0, len(parts), _TOGETHER):
        yield Batch(tuple(parts[start : start + _TOGETHER]))


def _of_files(paths: Sequence[Path]) -> Iterator[tuple[str, hlo.Module, tuple[Any, ...]]]:
    for path in paths:
        names = ("*.hlo", "*.before_optimizations.txt")
        found = [f for name in names for f in path.rglob(name)] if path.is_dir() else [path]
        for file in sorted(found):
            module = hlo.parse(file.read_text("utf-8"))
            yield file.name, module, from_seed(module, 0)


def _usable(
    parts: Iterator[tuple[str, hlo.Module, tuple[Any, ...]]],
) -> Iterator[tuple[str, hlo.Module, tuple[Any, ...]]]:
    """Those that both columns take: the holes are in docs/ops.md."""
    for name, module, arguments in parts:
        try:
            lowered(module)
            interp.evaluate(module, *arguments)
        except hlo.Error as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
            continue
        yield name, module, arguments


def _elements(module: hlo.Module) -> int:
    arrays = (leaf for i in module.entry.instructions for leaf in hlo.types.leaves(i.shape))
    return sum(array.elements for array in arrays)


# ---- the table ----


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
    """The table of docs/same_bits.md."""
    lines = [
        "| configuration | modules | elements | differing | findings |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.name} | {r.modules:,} | {r.elements:,} | {r.differing} | {r.findings} |"
        for r in rows
    ]
    return "\n".join([*lines, *(f"| {absent.name} | {absent.why} | | | |" for absent in missing)])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.compiler_matrix",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="*", type=Path, help="HLO files, directories of them")
    parser.add_argument("--modules", type=int, default=120, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, help="begin no batch after so long")
    parser.add_argument("--only", default="", metavar="WORDS", help="configurations named so")
    parser.add_argument("--keep", type=Path, help="a directory for programs that differ")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--markdown", action="store_true")
    return parser


def chosen(only: str) -> tuple[list[Configuration], list[Missing]]:
    """Those whose names have all the words, and what is missing of them."""
    found = [c for c in configurations(os.environ) if _is_named(c.name, only)]
    return (
        [c for c in found if isinstance(c, Configuration)],
        [c for c in found if isinstance(c, Missing)],
    )


def _is_named(name: str, only: str) -> bool:
    return all(word in name.lower() for word in only.lower().split())


def main(words: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(words)
    present, missing = chosen(given.only)
    rows = [Row(configuration.name) for configuration in present]
    texts = [Row(_SAME_TEXT)] if _is_named(_SAME_TEXT, given.only) else []
    try:  # of a run that is ended, too, there is a table
        _run(given, list(zip(present, rows, strict=True)), texts)
    finally:
        _print([*rows, *texts], missing, given)
    return int(any(row.details for row in (*rows, *texts)))


def _run(
    given: argparse.Namespace, pairs: Sequence[tuple[Configuration, Row]], texts: Sequence[Row]
) -> None:
    started, done = time.monotonic(), 0
    for batch in batches(given.paths, given.modules, given.seed):
        if given.minutes is not None and time.monotonic() - started > 60 * given.minutes:
            break
        trial = batch.trial()
        for configuration, row in pairs:
            before = len(row.details)
            tried(batch, trial, configuration, row)
            for detail in row.details[before:]:
                print(f"\r{row.name}: {detail.splitlines()[0]}", file=sys.stderr, flush=True)
                _keep(given.keep, batch, detail)
        for row in texts:
            same_text(batch, row)
        done += len(batch.parts)
        seconds = time.monotonic() - started
        print(f"\r{done} modules in {seconds:.0f} s", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def _keep(directory: Path | None, batch: Batch, detail: str) -> None:
    """The program that a detail names, as a file with the detail before it."""
    for name, module, _ in batch.parts:
        if directory is not None and detail.startswith(f"{name}:"):
            directory.mkdir(parents=True, exist_ok=True)
            comment = "".join(f"// {line}\n" for line in detail.splitlines())
            (directory / f"{name.replace(' ', '_')}.hlo").write_text(comment + hlo.format(module))


def _print(rows: Sequence[Row], missing: Sequence[Missing], given: argparse.Namespace) -> None:
    if given.json:
        data = {"rows": list(map(asdict, rows)), "missing": list(map(asdict, missing))}
        print(json.dumps(data, indent=1))
    elif given.markdown:
        print(markdown(rows, missing))
    else:
        Console().print(table(rows, missing))


if __name__ == "__main__":
    sys.exit(main())
