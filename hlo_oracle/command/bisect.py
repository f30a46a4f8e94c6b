"""hlo bisect: the pass of a compilation that changed what the program means.

DUMP is a directory that XLA wrote with --xla_dump_to=DIR --xla_dump_hlo_as_text
--xla_dump_hlo_pass_re=.* (and --xla_dump_large_constants), or --xla_dump_hlo_as_proto; or files of
it; or any files, in any form, and - for standard input, which are then the stages of one program in
the order given. Of a dump of several modules a glob of files chooses one: DUMP/module_0008*, which
--args, the arguments of one, ask for. Each stage is evaluated exactly, on the same arguments, and
must mean what the one before meant, but for roundings. Then the two stages are run side by side,
and the first instruction is named whose value is another one. Exit status: 0 nothing changed, 1 a
culprit, 2 bad input.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape

import bisect_dump
import pages
from bisect_dump import Change, Culprit, Dumped, History, Stage
from bisect_dump.stages import Reader
from hlo.errors import Error
from hlo_oracle import arguments, option_types, terminal
from hlo_oracle.dump_check import drawn, progress, reader
from hlo_oracle.program_paths import add_paths
from hlo_oracle.terminal import one_line, printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_paths(parser, "DUMP", "a directory, or files")
    arguments.add_options(parser)
    parser.add_argument(
        "--html",
        type=option_types.path,
        metavar="DIR",
        help="write a page for each module there: its stages, the guilty pass in red",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object for each module")


def main(options: argparse.Namespace) -> int:
    arguments.require_use(options)
    console, read = terminal.console(), reader()
    found = [_bisected(dumped, options, console, read) for dumped in _dumped(options.paths)]
    return 1 if 1 in found else max(found)


def _dumped(paths: list[Path]) -> list[Dumped]:
    """List the modules to bisect; Error if there is nothing to compare, OSError for a file that is
    missing."""
    files = [path for path in paths if not path.is_dir()]
    for path in files:
        if path != Path("-"):
            path.stat()
    directories = [path for path in paths if path.is_dir()]
    if files:  # DUMP/module_0008* names directories of a dump, too, which hold no stages
        directories = [path for path in directories if bisect_dump.is_dump(path)]
    found = [module for path in directories for module in bisect_dump.modules(path)]
    # A name says nothing of standard input, which is a stage where it stands.
    stages = [] if Path("-") in files else bisect_dump.grouped(files)
    found += stages or ([bisect_dump.in_order(files)] if files else [])
    if all(len(module.stages) < 2 for module in found):
        path = found[0].stages[0].path
        if path == Path("-"):
            raise Error("standard input is a single stage: give another before or after the -")
        raise Error(f"{path}: a single stage; dump them all with --xla_dump_hlo_pass_re=.*")
    return found


def _bisected(dumped: Dumped, options: argparse.Namespace, console: Console, read: Reader) -> int:
    history = History(dumped, drawn(options), options.seed or 0, read)
    with progress(options, dumped) as watch:
        change = history.first_change(watch)
        shown = change or history.suspect
        culprit = bisect_dump.culprit(shown) if shown else None
    status = 1 if change else 2 if history.faults else 0
    if options.html is not None:
        _write_page(dumped, read, shown, culprit, options.html)
    if options.json:
        found = _as_json(dumped, history, shown, culprit)
        print(json.dumps(found | {"changed": change is not None, "status": status}))
        return status
    name = f"{one_line(dumped.name)}: {len(dumped.stages)} stages"
    alike = _by_reason(history.faults)
    if len(history.faults) == len(dumped.stages) and len(alike) == 1:
        (reason,) = alike
        console.print(escape(f"{name}, not checked: {one_line(reason)}"), style="yellow")
        return status
    says = "CHANGED" if change else "nothing is proven, suspect" if shown else "nothing changed"
    open_ = f" ({history.undetermined} undetermined)" if history.undetermined else ""
    console.print(escape(f"{name}, {says}{open_}"))
    if shown is not None:
        _print_change(shown, console)
        _print_culprit(shown, culprit, console)
    if change is not None and history.suspect is not None:
        earlier = one_line(history.suspect.after.stage.label)
        console.print(escape(f"  before that, suspect but not proven: {earlier}"))
    for stage, lines in history.breaks.items():
        console.print(
            f"  not compared: {escape(one_line(stage.label))} takes or gives other arrays"
        )
        console.print(escape("\n".join(f"    {one_line(line)}" for line in lines)))
    for reason, stages in alike.items():
        short = one_line(stages[0].path.name)
        more = f" and {len(stages) - 1} more" if len(stages) > 1 else ""
        text = f"  not checked: {short}{more}\n    {reason}"
        console.print(escape(printable(text)), style="yellow")
    return status


def _by_reason(faults: Mapping[Stage, str]) -> dict[str, list[Stage]]:
    """Group stages that could not be checked by the reason, which is often one for all of them."""
    found: dict[str, list[Stage]] = {}
    for stage, reason in faults.items():
        found.setdefault(reason, []).append(stage)
    return found


def _write_page(
    dumped: Dumped, read: Reader, change: Change | None, culprit: Culprit | None, directory: Path
) -> None:
    """Write the page of a module's stages; stages that cannot be read are left out."""
    stages: list[pages.Stage] = []
    blame = None
    for stage in dumped.stages:
        try:
            module = read(stage)
        except Error:  # a fault, which the command tells
            continue
        if change is not None and stage == change.after.stage:
            name = culprit.name if culprit else ""
            lines = [culprit.evidence] if culprit else change.judgement.lines
            blame = pages.Blame(len(stages), name, f"by {stage.maker}: {' '.join(lines)}")
        stages.append(pages.Stage(stage.label, module))
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', dumped.name)[:100]}.html"
    pages.stages(dumped.name, stages, blame).write(file)
    print(file, file=sys.stderr)


def _print_change(change: Change, console: Console) -> None:
    stage = change.after.stage
    console.print(f"  [red]by {escape(one_line(stage.maker))}[/]")
    for title, read in (("before", change.before), ("after", change.after)):
        console.print(escape(f"  {title:7} {one_line(str(read.stage.path))}"))
    for line in change.judgement.lines:
        console.print(escape(f"    {one_line(line)}"))


def _print_culprit(change: Change, culprit: Culprit | None, console: Console) -> None:
    if culprit is None:
        console.print("  no single instruction is known to be the first that differs")
        return
    inside = f" in {one_line(culprit.inside)}" if culprit.inside else ""
    console.print(f"  first different value: [red]%{escape(one_line(culprit.name))}[/]{inside}")
    console.print(escape(f"    {one_line(culprit.evidence)}"))
    for title, places in (("before", culprit.before), ("after", culprit.after)):
        for place in places:
            console.print(escape(f"  {title:7} {place.line}: {one_line(place.text)}"))
    source = bisect_dump.source(change, culprit)
    if source:
        console.print(escape(f"  from    {one_line(source)}"))


def _as_json(
    dumped: Dumped, history: History, change: Change | None, culprit: Culprit | None
) -> dict[str, object]:
    found: dict[str, object] = {
        "module": dumped.name,
        "stages": len(dumped.stages),
        "undetermined": history.undetermined,
        "not_checked": {str(stage.path): why for stage, why in history.faults.items()},
        "not_compared": {str(stage.path): list(why) for stage, why in history.breaks.items()},
    }
    if change is not None:
        stage = change.after.stage
        found |= {
            "pass": stage.after,
            "pipeline": stage.pipeline,
            "stage": stage.label,
            "before": str(change.before.stage.path),
            "after": str(stage.path),
            "results": list(change.judgement.lines),
            "instruction": asdict(culprit) if culprit else None,
            "source": bisect_dump.source(change, culprit) if culprit else "",
        }
    return found
