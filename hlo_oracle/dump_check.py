"""Check the stages of a dump: ``hlo check DUMPDIR`` judges each against the one before."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from bisect_dump.dump import Dumped, Stage
from bisect_dump.history import CHANGED, FAULT, FIRST, OTHER, SAME, History, Row, Watch
from bisect_dump.stage_results import Arguments
from bisect_dump.stages import Reader
from hlo.module import Module
from hlo.values import Value
from hlo_oracle import arguments, terminal
from hlo_oracle.loading import programs
from hlo_oracle.loading.programs import Program
from hlo_oracle.peer_verdicts import described
from hlo_oracle.plurals import counted
from hlo_oracle.progress_line import progress_line
from hlo_oracle.terminal import one_line, printable
from interp.envelope.verdict import EQUAL, KINDS, UNDETERMINED, WITHIN

_STYLES = {
    FIRST: "",
    EQUAL: "green",
    WITHIN: "green",
    UNDETERMINED: "yellow",
    CHANGED: "red",
    OTHER: "yellow",
    FAULT: "yellow",
}
_SAYS = {FIRST: "the first", EQUAL: "equal", OTHER: "takes or gives other arrays: not compared"}


def drawn(options: argparse.Namespace) -> Arguments:
    """Return the source of arguments that the options name: a function of the module."""

    def of(module: Module, path: Path, ranks: int) -> tuple[tuple[Value, ...], ...]:
        return arguments.per_rank(module, path, options, ranks)

    return of


def reader() -> Reader:
    """Return a function that reads stages in every form; standard input, ``-``, is read once."""

    @cache
    def standard_input() -> Program:
        return programs.read_program(Path("-"))

    def read(stage: Stage) -> Module:
        is_input = str(stage.path) == "-"
        return (standard_input() if is_input else programs.read_stage(stage)).module

    return read


@contextmanager
def progress(options: argparse.Namespace, dumped: Dumped) -> Iterator[Watch]:
    """Show a progress line with the stage that is being evaluated."""
    line = progress_line(options)
    numbers = {stage: number for number, stage in enumerate(dumped.stages)}
    with line.phase(f"{dumped.name}: {len(numbers)} stages"):

        def watch(stage: Stage) -> None:
            done = numbers[stage]
            line.show(f"{stage.label}: {done + 1} of {len(numbers)}", done / len(numbers))

        yield watch


def report(modules: list[Dumped], options: argparse.Namespace) -> int:
    """Print a table of the stages of each module; return 1 if a stage changed the meaning, 2 if one
    could not be checked, else 0."""
    console = terminal.console()
    return max((_status(_module(dumped, options, console)) for dumped in modules), key=_weight)


def _weight(status: int) -> int:
    return (0, 2, 1).index(status)  # a proven change is what matters most


def _module(dumped: Dumped, options: argparse.Namespace, console: Console) -> list[Row]:
    width = max(len(one_line(stage.label)) for stage in dumped.stages)
    title = f"{one_line(dumped.name)}: {counted(len(dumped.stages), 'stage')}"
    rows: list[Row] = []
    printed = 0  # faults are held back: they may be one line in the end
    history = History(dumped, drawn(options), options.seed or 0, reader())
    with progress(options, dumped) as watch:
        for row in history.rows(watch):
            rows.append(row)
            if options.json:
                sys.stdout.write(json.dumps(as_json(dumped, row)) + "\n")
                sys.stdout.flush()
            elif row.kind not in (SAME, FAULT):
                printed = _print_rows(rows, printed, title, width, console)
    if not options.json and _is_one_fault(rows):
        reason = one_line(rows[0].lines[0])
        console.print(escape(f"{title}, not checked: {reason}"), style="yellow")
    elif not options.json:
        _print_rows(rows, printed, title, width, console)
        _print_summary(rows, console)
    return rows


def _is_one_fault(rows: list[Row]) -> bool:
    """Test for stages that none could be checked of, for one reason."""
    return {row.kind for row in rows} == {FAULT} and len({row.lines for row in rows}) == 1


def _print_rows(rows: list[Row], printed: int, title: str, width: int, console: Console) -> int:
    """Print the rows from number ``printed`` on, after the title if it is the first, without those
    that say the same as the one before; return the number of rows."""
    if not printed:
        console.print(escape(title))
    for number in range(printed, len(rows)):
        row, before = rows[number], rows[number - 1] if number else None
        repeats = before is not None and (row.kind, row.lines) == (before.kind, before.lines)
        if row.kind != SAME and not (row.kind == FAULT and repeats):
            _print(row, width, console)
    return len(rows)


def as_json(dumped: Dumped, row: Row) -> dict[str, object]:
    """Convert one stage's row to a JSON object."""
    return {
        "module": dumped.name,
        "stage": row.stage.label,
        "file": str(row.stage.path),
        "pass": row.stage.after,
        "verdict": "changed" if row.kind == CHANGED else row.kind,
        "instructions": row.instructions,
        "seconds": row.seconds,
        "elements": row.counts,
        "lines": list(row.lines),
        "status": _status([row]),
    }


def _status(rows: list[Row]) -> int:
    kinds = {row.kind for row in rows}
    return 1 if CHANGED in kinds else 2 if FAULT in kinds else 0


def _print(row: Row, width: int, console: Console) -> None:
    count = "" if row.instructions is None else str(row.instructions)
    time = "" if row.seconds is None else f"{row.seconds * 1000:.0f} ms"
    label, verdict = one_line(row.stage.label), escape(_verdict(row))
    style = _STYLES[row.kind]
    shown = f"[{style}]{verdict}[/]" if style else verdict
    console.print(f"  {escape(label):{width}}{count:>8}{time:>10}  {shown}")
    for line in row.lines:
        console.print(escape("\n".join(f"      {x}" for x in printable(line).splitlines())))


def _verdict(row: Row) -> str:
    if row.kind == CHANGED:
        return f"CHANGED by {one_line(row.stage.maker)}"
    if row.kind in _SAYS or row.counts is None:
        return _SAYS.get(row.kind, row.kind)
    return "elements " + described([(kind, row.counts.get(kind, 0)) for kind in KINDS])


def _print_summary(rows: list[Row], console: Console) -> None:
    compared = [row for row in rows if row.kind in (EQUAL, WITHIN, UNDETERMINED, CHANGED)]
    changed = sum(row.kind == CHANGED for row in rows)
    faults = sum(row.kind == FAULT for row in rows)
    undetermined = sum(row.kind == UNDETERMINED for row in rows)
    same = sum(row.kind == SAME for row in rows)
    parts = [f"{same} the same program as the one before"] if same else []
    parts += [f"{len(compared)} compared"]
    parts += [f"{undetermined} undetermined"] if undetermined else []
    parts += [f"{faults} not checked"] if faults else []
    parts += [f"{changed} CHANGED" if changed else "none changed" if compared else ""]
    style = "red" if changed else "yellow" if faults or undetermined else "green"
    console.print(f"  [{style}]{', '.join(part for part in parts if part)}[/]")
