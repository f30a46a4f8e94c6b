"""Measure compiled programs beside other compilers, interleaved in one run.

python -m bench.speed [FILE.hlo|DIR …] [--peers NAMES] [--quick] [--json] [--write FILE.md]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.speed import catalogue, session
from bench.speed.kinds import kind
from bench.speed.limits import Limits, best
from bench.speed.peers.ours import warmed
from bench.speed.peers.table import PEERS
from bench.speed.rows import Row
from bench.speed.table import table
from bench.speed.work import work
from hlo.errors import Error
from hlo.program_file import read


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("files", nargs="*", type=Path, metavar="FILE|DIR")
    options.add_argument("--peers", default=",".join(PEERS), help="default: %(default)s")
    options.add_argument("--quick", action="store_true", help="two short rounds")
    options.add_argument("--json", action="store_true", help="one JSON object a program")
    given = options.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    peers = installed(given.peers.split(","), console)
    programs = catalogue.found(given.files)
    plan = session.QUICK if given.quick else session.Plan()
    rows = []
    for row in progress(programs, peers, plan, console):
        rows.append(row)
        if given.json:
            sys.stdout.write(json.dumps(asdict(row)) + "\n")
            sys.stdout.flush()
    if not given.json:
        console.print(table(rows, peers))


def installed(names: Sequence[str], console: Console) -> list[str]:
    """The compilers whose packages are there; of others, what to install."""
    found = []
    for name in names:
        if name not in PEERS:
            raise SystemExit(f"--peers {name}: one of {', '.join(PEERS)}")
        missing = [package for package in PEERS[name].needs if find_spec(package) is None]
        if missing:
            extra = f"pip install 'hlo-oracle[{PEERS[name].extra}]'"
            console.print(f"{name}: {missing[0]} is not installed: {extra}", markup=False)
        else:
            found.append(name)
    return found


def progress(
    programs: Sequence[catalogue.Program],
    peers: Sequence[str],
    plan: session.Plan,
    console: Console,
) -> Iterator[Row]:
    """Measure programs one after the other, and what the machine can do before and after."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as name,
        Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as shown,
    ):
        task = shown.add_task("the machine", total=len(programs))
        warm = Path(name) / "warm"
        warmed(warm)
        limits = machine_limits()
        for number, program in enumerate(programs):
            directory = Path(name) / str(number)
            directory.mkdir()

            def note(text: str) -> None:
                shown.update(task, description=text)

            yield _row(program, peers, plan, session.Place(directory, warm), limits, note)
            shown.advance(task)


def machine_limits() -> tuple[Limits, Limits]:
    """What the machine can do with one thread and with all, in a process of its own."""
    command = [sys.executable, "-m", "bench.speed.limits"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    one, every = (
        Limits(
            {int(size): value for size, value in found["read"].items()},
            {int(size): value for size, value in found["copy"].items()},
            found["operations"],
        )
        for found in json.loads(done.stdout).values()
    )
    return one, best(one, every)


def _row(
    program: catalogue.Program,
    peers: Sequence[str],
    plan: session.Plan,
    place: session.Place,
    limits: tuple[Limits, Limits],
    note: Callable[[str], None],
) -> Row:
    try:
        module = read(Path(program.path))
        needed = work(module)
        one, every = (x.seconds(needed.read, needed.written, needed.operations) for x in limits)
        row = Row(program.name, kind(needed, limits[1]), every, one)
        having = [name for name in peers if _has(name, program.name)]
        return replace(row, peers=session.measured(program, module, having, plan, place, note))
    except Error as error:
        return Row(program.name, "small", error=str(error))


def _has(peer: str, program: str) -> bool:
    programs = PEERS[peer].programs
    return programs is None or program in programs()


if __name__ == "__main__":
    main()
