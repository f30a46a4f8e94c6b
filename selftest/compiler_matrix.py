"""``python -m selftest.compiler_matrix [PATH…]``: the same bits under every compiler and flag.

Drawn programs (``--modules``) and those in the given files and directories run in the interpreter
and, as C, in every configuration that this machine has: compilers, -O0 and -O3, SSE2 to AVX-512,
models of processors, with OpenMP and without it, 1 to 8 threads, the embedded target with its
main, and the sanitizers, which must have nothing to say. Many programs are compiled as one. A table
says what was compared, what differed and what is missing on this machine; the exit status is 1 if
anything differed. It is a campaign (:mod:`fuzz.campaign`): with ``--state DIR`` a run goes on where
the last one ended, and programs that differ are there, reduced.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console

import hlo
import interp
from backend_c.pipeline import lowered
from fuzz.campaign import findings
from fuzz.campaign.directory import Directory
from fuzz.campaign.program_findings import program_finding, reduced_case, write_program
from fuzz.campaign.subject import Chunk, Done, Finding, Part, Suspect
from fuzz.compilers.configurations import Configuration, Missing, configurations
from fuzz.draw.seeded_programs import programs
from fuzz.oracles import is_known
from fuzz.oracles.configurations import part_name, present
from fuzz.oracles.isolation import by_name
from fuzz.reducer.search import Case
from hlo_oracle import campaign_progress
from hlo_oracle.arguments import from_seed
from selftest.compiler_rows import SAME_TEXT, Batch, Row, markdown, same_text, table, tried

_TOGETHER = 40  # programs in one translation unit
_SMALL = 1 << 16  # elements of a program's values: those with more are compiled alone
_COLUMNS = ("modules", "elements", "differing", "findings", "open")

Named = tuple[str, hlo.Module, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class CompilerMatrix:
    """The plan of the campaign: chunks of files, then of drawn programs, and configurations by
    name. ``is_text_compared``: also compare the C text that other processes generate."""

    seed: int
    files: tuple[tuple[Path, ...], ...]  # of a chunk each
    configurations: tuple[str, ...]
    is_text_compared: bool

    @property
    def facts(self) -> Mapping[str, Any]:
        """All fields, which decide the outcome; files by their hash."""
        told = [[(file.name, _digest(file)) for file in chunk] for chunk in self.files]
        return {"campaign": "compiler matrix", "size": self.size, **asdict(self), "files": told}

    @property
    def size(self) -> int:
        """The number of drawn programs in a chunk; chunks of files have at most as many."""
        return _TOGETHER

    @property
    def memory(self) -> int | None:
        """No limit: generated C runs in processes of its own."""
        return None

    def chunks(self, drawn: int) -> int:
        """Count the chunks of all files, and of at least ``drawn`` drawn programs."""
        return len(self.files) + -(-drawn // _TOGETHER)

    def programs(self, number: int) -> list[Named]:
        """Read or draw the programs of a chunk."""
        if number < len(self.files):
            modules = ((f.name, hlo.parse(f.read_text("utf-8"))) for f in self.files[number])
            return [(name, module, from_seed(module, 0)) for name, module in modules]
        first = (number - len(self.files)) * _TOGETHER
        drawn = enumerate(islice(programs(self.seed, first), _TOGETHER), first)
        return [(f"drawn {n}", *program) for n, program in drawn]

    @contextmanager
    def examiner(self, done: Done) -> Iterator[MatrixExaminer]:
        """Find the compilers of the configurations."""
        yield MatrixExaminer(self, [c for c in present() if c.name in self.configurations])


@dataclass(frozen=True, slots=True)
class MatrixExaminer:
    """Runs programs in every configuration."""

    subject: CompilerMatrix
    configurations: Sequence[Configuration]

    def chunk(self, number: int, examples: Sequence[int] | None = None) -> Iterator[Part]:
        """Count modules, elements and faults by configuration; ``notes`` say which programs were
        left out, and why."""
        found, given = Chunk(), self.subject.programs(number)
        wanted = range(len(given)) if examples is None else examples
        chosen = [n for n in wanted if n < len(given)]  # of files there may be fewer
        usable = [given[n] for n in chosen if self._is_usable(given[n], found)]
        rows = self._rows(usable) if usable else []
        numbers = {name: n for n, (name, _, _) in enumerate(given)}
        for oracle, row in rows:
            for column in _COLUMNS:
                found.count(column, {row.name: getattr(row, column)})
            for name, kind, detail in row.wrong:
                _, module, arguments = given[numbers[name]]
                case, told = Case(module, arguments), f"{name}: {detail}"
                suspect = Suspect(oracle, kind, told, numbers[name], True, case)
                found.suspects.append(suspect)
        yield Part(set(wanted), found)

    def _is_usable(self, part: Named, found: Chunk) -> bool:
        """Test whether the interpreter and the backend both support a program; docs/ops.md lists
        the holes."""
        name, module, arguments = part
        try:
            lowered(module)
            interp.evaluate(module, *arguments)
        except hlo.Error as error:
            found.count("counts", ["left out"])
            found.notes[name] = f"left out: {error}"
            return False
        found.count("counts", ["modules"])
        return True

    def _rows(self, usable: Sequence[Named]) -> list[tuple[str, Row]]:
        """Run programs compiled as one; return a row for each oracle."""
        batch = Batch(tuple(usable))
        trial, rows = batch.trial(), []
        for configuration in self.configurations:
            rows.append((part_name(configuration), Row(configuration.name)))
            tried(batch, trial, configuration, rows[-1][1])
        if self.subject.is_text_compared:
            rows.append((SAME_TEXT, Row(SAME_TEXT)))
            same_text(batch, rows[-1][1])
        return rows

    def unreduced(self, suspect: Suspect) -> Finding:
        """Make a finding of the program as it is."""
        return program_finding(suspect.kind, suspect.detail, suspect.evidence, suspect.evidence)

    def reduced(self, suspect: Suspect, number: int, seconds: float) -> Finding:
        """Reduce a program in the configuration where it fails."""
        case = small = suspect.evidence
        if is_known(suspect.oracle):
            with by_name(suspect.oracle) as asked:
                small = reduced_case(asked, case, suspect.kind, seconds) or case
        return program_finding(suspect.kind, suspect.detail, small, case)

    def write(self, number: int, example: int, folder: Path) -> None:
        """Write the program as it is drawn."""
        for _, module, arguments in self.subject.programs(number)[example : example + 1]:
            write_program(folder, "original", Case(module, arguments))


def chunks_of_files(paths: Sequence[Path]) -> tuple[tuple[Path, ...], ...]:
    """Group the files of paths: large programs alone, small ones together."""
    alone: list[tuple[Path, ...]] = []
    small: list[Path] = []
    for path in paths:
        names = ("*.hlo", "*.before_optimizations.txt")
        found = [f for name in names for f in path.rglob(name)] if path.is_dir() else [path]
        for file in sorted(found):
            if _elements(hlo.parse(file.read_text("utf-8"))) <= _SMALL:
                small.append(file)
            else:
                alone.append((file,))
    together = range(0, len(small), _TOGETHER)
    return (*alone, *(tuple(small[start : start + _TOGETHER]) for start in together))


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _elements(module: hlo.Module) -> int:
    arrays = (leaf for i in module.entry.instructions for leaf in hlo.types.leaves(i.shape))
    return sum(array.elements for array in arrays)


def chosen(only: str) -> tuple[list[Configuration], list[Missing]]:
    """List the configurations whose names have all the words, and those of them that are missing
    here."""
    found = [c for c in configurations(os.environ) if is_named(c.name, only)]
    return (
        [c for c in found if isinstance(c, Configuration)],
        [c for c in found if isinstance(c, Missing)],
    )


def is_named(name: str, only: str) -> bool:
    """Test whether a name has all the words, and none of those after ``!``."""
    return all(
        (word.lstrip("!") in name.lower()) != (word[0] == "!") for word in only.lower().split()
    )


def rows_of(total: Chunk) -> list[Row]:
    """Sum the chunks to the rows of the table."""
    rows = [Row(name) for name in total.tally("modules")]
    for row in rows:
        for column in _COLUMNS:
            setattr(row, column, total.tally(column)[row.name])
    return rows


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.compiler_matrix",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="*", type=Path, help="HLO files, directories of them")
    parser.add_argument("--modules", type=int, default=120, help="how many are drawn, at least")
    parser.add_argument(
        "--only", default="", metavar="WORDS", help="configurations named so; !WORD: not"
    )
    parser.add_argument("--keep", type=Path, help="a directory for programs that differ")
    parser.add_argument("--markdown", action="store_true", help="the table of docs/evidence")
    campaign_progress.add_options(parser)
    given = parser.parse_args(words)
    found, missing = chosen(given.only)
    names = tuple(configuration.name for configuration in found)
    files = chunks_of_files(given.paths)
    subject = CompilerMatrix(given.seed, files, names, is_named(SAME_TEXT, given.only))

    def shown(directory: Directory, total: Chunk) -> Iterator[str]:
        yield from (f"{name}: {note}" for name, note in total.notes.items())
        yield markdown(rows_of(total), missing) if given.markdown else _text(total, missing)

    def finish(directory: Directory) -> None:
        if given.keep is not None:
            _keep(given.keep, directory)

    def facts(total: Chunk) -> Mapping[str, Any]:
        return {"rows": [*map(asdict, rows_of(total))], "missing": [*map(asdict, missing)]}

    examples = subject.chunks(given.modules) * subject.size
    return campaign_progress.run(
        subject, examples, given, "modules", _line, table=shown, facts=facts, finish=finish
    )


def _keep(path: Path, directory: Directory) -> None:
    """Write each differing program to a file, with the fault as a comment."""
    path.mkdir(parents=True, exist_ok=True)
    for told in findings.files(directory.findings):
        folder, detail = told.parent, json.loads(told.read_text())["detail"]
        comment = "".join(f"// {line}\n" for line in detail.splitlines())
        (path / f"{folder.name}.hlo").write_text(comment + (folder / "original.hlo").read_text())


def _line(total: Chunk) -> str:
    return f"{total.counts['modules']:,} modules"


def _text(total: Chunk, missing: Sequence[Missing]) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(table(rows_of(total), missing))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().rstrip()


if __name__ == "__main__":
    sys.exit(main())
