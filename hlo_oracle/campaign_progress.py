"""Run campaigns from the command line: common options, a progress line, tables and JSON."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from hlo_oracle import option_types, terminal
from hlo_oracle.command import process
from hlo_oracle.plurals import counted
from hlo_oracle.progress_line import ProgressLine
from hlo_oracle.terminal import one_line

if TYPE_CHECKING:
    from fuzz.campaign.directory import Directory
    from fuzz.campaign.subject import Chunk, Subject

Line = Callable[["Chunk"], str]


def add_options(
    parser: argparse.ArgumentParser,
    *,
    directory: str = "--state",
    minutes: float = float("inf"),
    workers: int = 0,
) -> None:
    """Add the options of every campaign; ``directory`` names the option of its directory."""
    parser.add_argument(
        "--seed",
        type=option_types.seed,
        default=0,
        metavar="N",
        help="which programs are drawn (default: 0)",
    )
    parser.add_argument(
        "--minutes",
        type=option_types.minutes,
        default=minutes,
        metavar="N",
        help="begin no program and no reduction after so long: what has begun is finished, a"
        f" reduction within --reduce (default: {minutes:g})",
    )
    parser.add_argument(
        "--workers",
        type=option_types.whole(0, 1024, "a number of processes"),
        default=workers,
        metavar="N",
        help=f"processes (default: {workers})",
    )
    parser.add_argument(
        "--reduce",
        type=option_types.duration,
        default=120.0,
        metavar="SECONDS",
        help="for a finding, at most (default: 120)",
    )
    parser.add_argument(
        directory,
        type=option_types.path,
        metavar="DIR",
        help="what is done, to go on with, and what is found",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object at the end")


@contextmanager
def directory_of(given: Path | None) -> Iterator[Path]:
    """Yield the given directory, or a temporary one, which is kept if something is found."""
    if given is not None:
        yield given
        return
    made = Path(tempfile.mkdtemp(prefix="campaign-"))
    try:
        yield made
    finally:
        if not any((made / "findings").glob("*")):
            shutil.rmtree(made)


def run_here(
    path: Path,
    subject: Subject,
    chunks: int,
    given: argparse.Namespace,
    examples: float = float("inf"),
) -> Iterator[Chunk]:
    """Run a campaign of ``chunks``, or of ``examples`` if these are fewer, on this machine with the
    common options, yielding its totals."""
    from fuzz.campaign import local

    limits = local.Limits(chunks, 60 * given.minutes, given.reduce, examples)
    return local.run(path, subject, limits, given.workers)


def run(
    subject: Subject,
    examples: int,
    given: argparse.Namespace,
    what: str,
    line: Line,
    *,
    table: Callable[[Directory, Chunk], Iterable[str]] = lambda directory, total: (),
    facts: Callable[[Chunk], Mapping[str, Any]] = lambda total: {},
    finish: Callable[[Directory], None] = lambda directory: None,
) -> int:
    """Run a campaign of ``examples`` on this machine with the common options, and print its
    outcome; return the exit status, 1 for findings. Ctrl-C ends the process, with 130. ``what``
    names the examples; ``line`` formats the results so far, ``table`` yields the lines printed at
    the end, ``facts`` are fields of the JSON object; ``finish`` is called with the directory in
    either case."""
    from fuzz.campaign.directory import Directory

    with directory_of(given.state) as path:
        chunks = -(-examples // subject.size)
        totals = run_here(path, subject, chunks, given)
        try:
            total = watched(totals, path, what, line, is_kept=True)
        except KeyboardInterrupt:
            if given.state is not None:
                print(f"the same command goes on from {path}", file=sys.stderr)
            sys.exit(process.interrupted())
        directory = Directory(path, subject.facts)
        found = directory.found()
        finish(directory)
        if given.json:
            print_json(total, found, **facts(total))
        else:
            for row in table(directory, total):
                print(row)
            print_findings(found, path)
    return 1 if found else 0


def watched(
    totals: Iterable[Chunk],
    path: Path,
    what: str,
    line: Line,
    *,
    is_kept: bool = False,
    shown: ProgressLine | None = None,
    share: Callable[[Chunk, float], float] = lambda total, seconds: 0.0,
) -> Chunk:
    """Show a campaign's running totals with the number of findings and the rate of ``what``; return
    the last total. ``share`` computes the part that is done, from the total and the seconds so far;
    when all of it is, what is still at work is shown. With ``is_kept`` the last line is printed
    even without a terminal."""
    from fuzz.campaign import findings

    begin, first, said = time.monotonic(), None, ""
    shown = ProgressLine() if shown is None else shown
    with shown.phase("beginning"):
        for whole in totals:
            # A resumed campaign begins with earlier counts, which are not part of the rate.
            first = whole.counts[what] if first is None else first
            seconds = time.monotonic() - begin
            rate = (whole.counts[what] - first) / seconds
            found = len(findings.files(path / "findings"))
            said = one_line(f"{line(whole)}; {counted(found, 'finding')}; {rate:,.1f} {what}/s")
            done = share(whole, seconds)
            if done < 1:
                shown.show(said, done)
            else:
                shown.show(f"{said}; {_finishing(path)}")
    if is_kept:
        print(said, file=sys.stderr)
    return whole


def _finishing(path: Path) -> str:
    """Say what is still at work when the time is up: as many programs, or reductions of what they
    showed, as chunks are claimed."""
    from fuzz.campaign.directory import Results

    count = Results(path).at_work()
    return f"finishing {counted(count, 'program')}" if count else "finishing"


def print_json(total: Chunk, found: Sequence[Mapping[str, Any]], **more: object) -> None:
    """Print the counters and findings of a campaign as one JSON object."""
    json.dump({"counts": total.counts, **more, "findings": found}, sys.stdout)
    print()


def words_before(one: Mapping[str, Any]) -> str:
    """Return what a finding's kind is preceded by: whether it is flaky, or not reduced."""
    return f"{'flaky: ' * one['flaky']}{'not reduced: ' * one.get('unreduced', False)}"


def print_findings(found: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Print a table of findings, and the directory of their folders."""
    console = terminal.console(highlight=True)
    if not found:
        console.print("nothing found")
        return
    table = Table("oracle", "kind", "to blame", "instructions", "times")
    for one in found:
        table.add_row(
            one["oracle"],
            one_line(f"{words_before(one)}{one['kind']}"),
            one["blamed"] or ", ".join(one["opcodes"]),
            str(one.get("instructions", "")),
            str(one["times"]),
        )
    console.print(table)
    console.print(f"folders: {path / 'findings'}", markup=False)
