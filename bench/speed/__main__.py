"""Measure compiled programs beside other compilers, interleaved in one run.

    python -m bench.speed [FILE.hlo|DIR …] [--peers NAMES] [--quick] [--json] [--write FILE.md]

Without files: the programs of tests/corpus and of bench/programs. Each compiler has processes of
its own for each program, one with all threads, one with one; they are warm, and asked in turn.
Ratios are seconds of ours over those of a peer: below 1 where ours is faster. *one thread* is
processor time, which other work on the machine disturbs least. *% limit* is of what this machine
can do at most, measured in the same run. Results are judged by the error envelope around the
interpreter's. Exit status: 0 all is well, 1 a result is wrong, 2 bad input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from bench.speed import catalogue, document, history, run, session
from bench.speed.peers.table import PEERS
from bench.speed.rows import Row
from bench.speed.table import table
from bench.speed.verdicts import Memory
from hlo.errors import Error
from hlo_oracle.progress_line import ProgressLine

_WIDTH = 240  # of the table: a narrower terminal wraps its lines, and cuts no number
_HISTORY = catalogue.ROOT / "docs" / "evidence" / "performance_history.jsonl"


def main() -> int:
    given = _options().parse_args()
    console = Console(highlight=False, width=_WIDTH, stderr=given.json)
    try:
        peers = installed(given.peers.split(","), console)
        options = run.Options(
            peers, session.QUICK if given.quick else session.Plan(), given.judge, Memory()
        )
        progress = ProgressLine(given.progress)
        rows = measured(catalogue.found(given.files), options, given.json, progress)
    except Error as error:
        console.print(f"error: {error}", markup=False, style="red")
        return 2
    if not given.json:
        console.print(table(rows, peers))
    if given.write is not None:
        document.write(given.write, rows, peers)
    record = history.record(rows)
    if given.against_history:
        for line in history.regressions(history.last(given.history, record), record):
            console.print(line, markup=False)
    if given.keep:
        history.append(given.history, record)
    if any(one.is_wrong for row in rows for one in row.peers.values()):
        return 1
    return 2 if any(row.error for row in rows) else 0


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="python -m bench.speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("files", nargs="*", type=Path, metavar="FILE|DIR")
    options.add_argument("--peers", default=",".join(PEERS), help="default: %(default)s")
    options.add_argument(
        "--quick", action="store_true", help="two short rounds, limits measured briefly"
    )
    options.add_argument("--json", action="store_true", help="one JSON object a program")
    options.add_argument(
        "--progress",
        choices=("auto", "plain", "none"),
        default="auto",
        help="plain: lines, also where standard error is no terminal (default: %(default)s)",
    )
    options.add_argument("--write", type=Path, metavar="FILE.md", help="and FILE.svg")
    options.add_argument(
        "--judge",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="that a question about a result may take; 0: judge none (default: %(default)s)",
    )
    options.add_argument("--history", type=Path, default=_HISTORY, help="default: %(default)s")
    options.add_argument("--keep", action="store_true", help="append this run to the history")
    options.add_argument(
        "--against-history",
        action="store_true",
        help="print what has become slower by more than a tenth since the last run kept there",
    )
    return options


def installed(names: Sequence[str], console: Console) -> list[str]:
    """Return the compilers whose packages are there; of others, what to install."""
    found = []
    for name in names:
        if name not in PEERS:
            raise Error(f"--peers {name}: one of {', '.join(PEERS)}")
        missing = [package for package in PEERS[name].needs if not _is_installed(package)]
        if missing:
            extra = f"pip install 'hlo-oracle[{PEERS[name].extra}]'"
            console.print(f"{name}: {missing[0]} is not installed: {extra}", markup=False)
        else:
            found.append(name)
    return found


def _is_installed(package: str) -> bool:
    outer = package.partition(".")[0]
    return find_spec(outer) is not None and find_spec(package) is not None


def measured(
    programs: Sequence[catalogue.Program],
    options: run.Options,
    as_json: bool,
    progress: ProgressLine,
) -> list[Row]:
    """Measure programs, and say how far that is; print rows as JSON as soon as they are there. An
    interrupt (Ctrl-C) ends the run, not what is made of its rows."""
    machine = run.Machine(options.plan is session.QUICK)
    found: list[Row] = []

    def note(text: str) -> None:
        count, total = len(found), len(programs)
        progress.show(f"{count} of {total} programs, {text}", count / total)

    with progress.phase("measuring the machine"), suppress(KeyboardInterrupt):
        for row in run.rows(programs, options, machine, note):
            found.append(row)
            if as_json:
                progress.clear()
                sys.stdout.write(run.as_json(row) + "\n")
                sys.stdout.flush()
    return [machine.finished(row) for row in found] if found else []


if __name__ == "__main__":
    sys.exit(main())
