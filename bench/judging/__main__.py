"""Measure what judging XLA's results takes, by program, in seconds of the processor.

    python -m bench.judging [FILE|DIR …] [--state FILE.jsonl] [--before FILE.jsonl] [--write FILE]

Without files: the programs of tests/corpus, before optimisation, and of examples, with their
recorded arguments, else drawn ones; constants that a text leaves out are drawn, too. Each is judged
as ``hlo check --against xla`` does, in a process of its own, one after the other: a run can be
ended at any time. With ``--state`` rows are kept, and programs that have one are not judged again.
Exit status: 0 all is well, 1 a program takes more than a minute and more than 20 times what the
interpreter takes, 2 bad input.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.judging import page
from bench.judging.one_program import Row, measured
from bench.speed import catalogue
from hlo.errors import Error

_CORPUS = catalogue.ROOT / "tests" / "corpus"
DEFAULT = (_CORPUS / "jax", _CORPUS / "tensorflow", catalogue.ROOT / "examples")


def main() -> int:
    given = _options().parse_args()
    try:
        programs = catalogue.found(given.files or DEFAULT)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    rows = []
    for row in rows_of(programs, given.state):
        print(page.line(row), flush=True)
        rows.append(row)
    if given.write is not None:
        given.write.write_text(page.written(rows, kept(given.before)))
    return 1 if any(map(page.is_missed, rows)) else 0


def rows_of(programs: Sequence[catalogue.Program], state: Path | None) -> Iterator[Row]:
    """Yield the row of each program: the recorded one, else a new one, which is recorded."""
    known = {row.name: row for row in kept(state)}
    for program in programs:
        row = known.get(program.name)
        if row is None:
            row = measured(program)
            if state is not None:
                with state.open("a") as file:
                    file.write(json.dumps(asdict(row)) + "\n")
        yield row


def kept(state: Path | None) -> list[Row]:
    """Read the rows of a file; empty without a file."""
    lines: Iterable[str] = ()
    if state is not None and state.exists():
        lines = state.read_text().splitlines()
    return [Row(**json.loads(line)) for line in lines]


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="python -m bench.judging",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("files", nargs="*", type=Path, metavar="FILE|DIR")
    options.add_argument("--state", type=Path, metavar="FILE.jsonl", help="keep rows here")
    options.add_argument(
        "--before", type=Path, metavar="FILE.jsonl", help="rows of an earlier version, to compare"
    )
    options.add_argument("--write", type=Path, metavar="FILE.md", help="write the table here")
    return options


if __name__ == "__main__":
    sys.exit(main())
