"""hlo check: the interpreter and the C backend on programs, compared bit by bit.

Each argument is a file of HLO text or a directory of them (*.hlo, *.txt). A directory's
arguments.json, if it has one, is the recipe for the programs in it: their arguments, and the sums
that their outputs have on XLA:CPU. Otherwise arguments are drawn from the seed. C is one rank: of
programs for which several make a difference, the interpreter alone is run.

A directory that XLA wrote (--xla_dump_to) holds the stages of compilations instead: each is
evaluated, and must mean what the one before meant (hlo bisect finds the instruction). --args are
those of one module: of the others a line says that they do not fit (hlo bisect DIR/module_0008*
takes one module). Its snapshots of runs are programs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape

import bisect_dump
from bisect_dump import Dumped
from hlo.errors import Error
from hlo.operating_system import most_threads
from hlo_oracle import (
    arguments,
    dump_check,
    option_types,
    own_process,
    peer_verdicts,
    rank_runs,
    terminal,
)
from hlo_oracle.loading import programs
from hlo_oracle.measurement import Job, Row, measured
from hlo_oracle.plurals import counted
from hlo_oracle.program_paths import (
    RECORDED_ARGUMENTS,
    RECORDED_FACTS,
    RECORDED_PROGRAM,
    RECORDED_RESULTS,
    add_paths,
    program_files,
    program_name,
)
from hlo_oracle.progress_line import ProgressLine, length, progress_line
from hlo_oracle.same_program import Comparison, compared, names, summary
from hlo_oracle.terminal import one_line, printable
from interp.envelope.budget import BUDGETS, named
from interp.envelope.verdict import EQUAL, KINDS, OUTSIDE, UNDETERMINED, WITHIN

_HEADS = ("parse", "interp", "compile", "C", "memory")
# Options that have no meaning for the stages of a dump.
_OF_PROGRAMS = (
    *("same", "against", "results", "budget", "threads", "fuel"),
    *("replicas", "partitions", "elided"),
)
_threads = option_types.up_to(most_threads())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    programs.add_options(parser)
    arguments.add_options(parser)
    rank_runs.add_options(parser)
    parser.add_argument(
        "--fuel",
        type=option_types.count,
        metavar="N",
        help="evaluate at most so many instructions, each time that a loop runs one",
    )
    parser.add_argument("--no-c", action="store_true", help="the interpreter only")
    parser.add_argument(
        "--threads", type=_threads, metavar="N", help="of the C program (default: all)"
    )
    parser.add_argument(
        "--same",
        action="store_true",
        help="also judge whether two files, or those of one name up to the first dot, are one"
        " program, but for roundings: equal, within what is legal, outside (proven different) or"
        " undetermined",
    )
    parser.add_argument(
        "--against",
        metavar=peer_verdicts.METAVAR,
        help="judge another compiler's results, too: equal, within what its roundings may do,"
        f" outside (proven wrong) or undetermined; {peer_verdicts.HELP}",
    )
    parser.add_argument(
        "--results",
        type=option_types.path,
        metavar="FILE.npz",
        help="judge these, that a compiler gave: one array, or arr_0, arr_1, … in order",
    )
    parser.add_argument(
        "--budget",
        type=_budget,
        choices=tuple(BUDGETS),
        help="what the compiler of --results or --against may do to an instruction (default: what"
        " was measured of xla, unknown for others)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per line")


def _budget(text: str) -> str:
    try:
        return named(text).name
    except Error as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def begin() -> None:
    """Fork the server of the processes that check programs, before there are threads."""
    own_process.fork_server()


def main(options: argparse.Namespace) -> int:
    arguments.require_use(options)
    if options.no_c and options.threads:
        raise Error("--threads are those of the C program: leave out --no-c")
    if options.against:
        peer_verdicts.require(options.against)
    if options.results and (options.against or len(options.paths) != 1):
        raise Error("--results are those of one program, and of no compiler that --against runs")
    stages: list[Dumped] = []
    others: list[Path] = []
    for path in options.paths:
        if path.is_dir() and bisect_dump.is_dump(path):
            modules, snapshots = bisect_dump.contents(path)
            if modules:
                _require_none_of_programs(path, options)
            stages += modules
            others += snapshots
        else:
            others.append(path)
    status = dump_check.report(stages, options) if stages else 0
    return _worst(status, _files(program_files(others), options) if others else 0)


def _worst(*statuses: int) -> int:
    return 1 if 1 in statuses else max(statuses)


def _require_none_of_programs(directory: Path, options: argparse.Namespace) -> None:
    """Raise Error for an option that has no meaning for a dump."""
    for option in _OF_PROGRAMS:
        if getattr(options, option):
            raise Error(f"--{option} is for programs; {directory} is a dump of stages")


def _files(files: list[Path], options: argparse.Namespace) -> int:
    with (
        programs.with_standard_input(files) as files,
        tempfile.TemporaryDirectory() as directory,
    ):
        jobs = [_job(file, options, Path(directory) / f"{n}.npz") for n, file in enumerate(files)]
        return _report(_once_with_sums(jobs) if options.same else jobs, options)


def _once_with_sums(jobs: list[Job]) -> list[Job]:
    """Clear ``with_sums`` of all but the first file of each program, as the others are compared
    with it."""
    seen: set[str] = set()
    once = []
    for name, job in zip(names([job.file for job in jobs]), jobs, strict=True):
        once.append(replace(job, with_sums=name not in seen))
        seen.add(name)
    return once


def _job(file: Path, options: argparse.Namespace, save: Path) -> Job:
    recipe = options.recipe
    beside = file.parent / "arguments.json"
    drawn = options.seed is not None or options.args is not None
    if recipe is None and not drawn and beside.is_file():
        recipe = str(beside) if _has_recipe(beside, file) else None
    args = str(options.args) if options.args else None
    results, budget = str(options.results) if options.results else None, options.budget
    if file.with_name(RECORDED_FACTS).is_file() and not drawn and results is None:
        args, results = (str(file.with_name(x)) for x in (RECORDED_ARGUMENTS, RECORDED_RESULTS))
        if options.against:
            results = None
        else:
            budget = budget or _recorded_budget(file.with_name(RECORDED_FACTS))
    where = str(save) if options.same else None
    return Job(
        *(str(file), recipe, options.seed, args, not options.no_c, options.threads, where),
        *(options.replicas, options.partitions, options.against),
        elided=options.elided,
        results=results,
        budget=budget,
        cast=options.cast,
        fuel=options.fuel,
    )


def _recorded_budget(facts: Path) -> str:
    """Read the name of the recorded compiler's budget from ``facts.json``."""
    try:
        found = json.loads(facts.read_text("utf-8"))
        name = str(found["budget"])
    except (ValueError, KeyError, TypeError) as error:
        raise Error(f"{facts}: not the facts of a recorded call ({error})") from error
    return name


def _has_recipe(recipes: Path, file: Path) -> bool:
    try:
        return program_name(file) in json.loads(recipes.read_text("utf-8"))
    except ValueError:
        return True  # reading it again, for this file, reports what is wrong


def _report(jobs: list[Job], options: argparse.Namespace) -> int:
    rows: list[Row] = []
    console = terminal.console()
    width = max(len(_short(job.file)) for job in jobs)
    if not options.json:
        heads = "".join(f"{head:>9}" for head in _heads(options))
        console.print(f"{'':{width}} instructions{heads}  verdict")
    for row in _rows(jobs, progress_line(options)):
        rows.append(row)
        _print_row(row, width, console, options)
    statuses = [row.status for row in rows]
    if options.same:
        comparisons = []
        for comparison in compared(jobs, rows):
            comparisons.append(comparison)
            _print_comparison(comparison, console, options.json)
        if comparisons and not options.json:
            console.print(summary(comparisons))
        statuses += [comparison.status for comparison in comparisons]
    refused = [row for row in rows if row.refused is not None]
    if refused and not any(row.verdicts or row.peer_crash for row in rows):
        print(f"hlo: nothing was judged: {refused[0].refused}", file=sys.stderr)
        statuses.append(2)
    return _worst(*statuses)


def _print_comparison(comparison: Comparison, console: Console, as_json: bool) -> None:
    if as_json:
        fields = {**asdict(comparison), "status": comparison.status}
        sys.stdout.write(json.dumps(fields) + "\n")
        sys.stdout.flush()
        return
    style = {OUTSIDE: "red", UNDETERMINED: "yellow"}.get(comparison.kind)
    for line in str(comparison).splitlines():
        console.print(escape(printable(line)), style="red" if comparison.crash else style)


def _rows(jobs: list[Job], line: ProgressLine) -> Iterator[Row]:
    """Check the files one by one, showing progress; yield a row for each."""
    begin = time.monotonic()
    for number, job in enumerate(jobs):
        left = (time.monotonic() - begin) / number * (len(jobs) - number) if number else None
        ahead = "" if left is None else f", about {length(left)} left in all"
        with line.phase(f"{_short(job.file)}: {number + 1} of {len(jobs)}{ahead}"):
            row = measured(job)
        yield row


def _heads(options: argparse.Namespace) -> list[str]:
    return [*_HEADS, peer_verdicts.label(options.against)] if options.against else [*_HEADS]


def _print_row(row: Row, width: int, console: Console, options: argparse.Namespace) -> None:
    if options.json:
        sys.stdout.write(json.dumps({**asdict(row), "status": row.status}) + "\n")
        sys.stdout.flush()
        return
    verdict, style, details = _verdict(row)
    numbers = f"{_number(row.instructions):>13}"
    numbers += "".join(f"{_time(t):>9}" for t in (row.parse, row.interp, row.compile, row.run))
    numbers += f"{_memory(row.memory):>9}"
    numbers += f"{_time(row.peer):>9}" if options.against else ""
    console.print(f"{escape(_short(row.file)):{width}}{numbers}  [{style}]{escape(verdict)}[/]")
    for line in details:
        console.print(escape(printable(f"    {line}")))


def _verdict(row: Row) -> tuple[str, str, list[str]]:
    """Return the text of a row's last column, its style, and the detail lines below it."""
    if row.crash is not None:
        return "crashed", "red", [row.crash]
    if row.error is not None:
        return "not checked", "yellow", row.error.splitlines()
    count = counted(len(row.outputs), "output")
    if row.different:
        return "DIFFERENT", "red", [*row.different, *row.sums]
    if row.sums:
        return f"{count} not as recorded", "red", list(row.sums)
    verdict, style = (
        (f"{count}, C not run", "yellow") if row.run is None else (f"{count} equal", "green")
    )
    ours = "C not run" if row.run is None else f"C: {verdict}"
    if row.peer_crash is not None:
        return "the other compiler CRASHED", "red", [row.peer_crash, ours]
    if row.refused is not None:
        return f"no results to judge; {ours}", "yellow", [row.refused]
    if row.verdicts is None:
        return verdict, style, list(row.notes)
    judged = peer_verdicts.described([(kind, row.verdicts.get(kind, 0)) for kind in KINDS])
    return (
        f"{_judged(row)}: elements {judged}; {ours}",
        _style(row),
        [*row.outside, *row.unlikely, *row.undetermined, *row.notes],
    )


def _judged(row: Row) -> str:
    """Name the worst verdict on another compiler's elements."""
    verdicts = row.verdicts or {}
    if row.outside or verdicts.get(OUTSIDE):
        return "OUTSIDE, proven wrong"
    return next((kind for kind in (UNDETERMINED, WITHIN) if verdicts.get(kind)), EQUAL)


def _style(row: Row) -> str:
    verdicts = row.verdicts or {}
    if row.outside:
        return "red"
    return "yellow" if verdicts.get(UNDETERMINED) else "green"


def _short(file: str) -> str:
    """Shorten a file's name for a table; a recorded call has its folder's name."""
    path = Path(file)
    return one_line(path.parent.name if path.name == RECORDED_PROGRAM else path.name)


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _memory(size: int | None) -> str:
    return "" if size is None else f"{size / 2**20:.0f} MiB"
