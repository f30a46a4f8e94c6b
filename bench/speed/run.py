"""Measure and judge programs one by one, and between them the machine's limits."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from backend_c.profiles.limits import Limits, best
from bench.speed import catalogue, session
from bench.speed.kinds import SMALL, kind
from bench.speed.peers.ours import warm_cache
from bench.speed.peers.table import PEERS
from bench.speed.rows import Measured, Row
from bench.speed.verdicts import Memory, verdicts
from bench.speed.work import work
from hlo.errors import Error
from hlo.program_file import read

_BETWEEN = 8  # programs between two measurements of the machine
Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a run. ``judge``: seconds that judging a program's results may take, 0 for none.
    ``memory`` caches verdicts."""

    peers: Sequence[str]
    plan: session.Plan
    judge: float
    memory: Memory


@dataclass(slots=True)
class Machine:
    """The best limits measured so far, with one thread and with all: other load on the machine
    makes any single measurement too low."""

    is_quick: bool = False  # without the largest arrays, and each for less long
    one: Limits | None = None
    every: Limits | None = None

    def measure(self) -> None:
        """Measure the limits once more, in a process of its own."""
        command = [sys.executable, "-m", "backend_c.native.machine_limits"]
        options = ["--quick"] if self.is_quick else []
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
        one, every = map(Limits.of, json.loads(done.stdout).values())
        self.one = one if self.one is None else best(self.one, one)
        self.every = best(one, every if self.every is None else best(self.every, every))

    def finished(self, row: Row) -> Row:
        """Add the machine's limits to a row."""
        assert self.one is not None and self.every is not None
        return row.within(self.one, self.every)


def rows(
    programs: Sequence[catalogue.Program], options: Options, machine: Machine, note: Note
) -> Iterator[Row]:
    """Yield a row for each program; ``note`` is called with what is being done."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        note("the machine")
        warm = Path(name) / "warm"
        warm_cache(warm)
        for number, program in enumerate(programs):
            if number % _BETWEEN == 0:
                machine.measure()
            with tempfile.TemporaryDirectory(prefix=f"{number}-", dir=name) as directory:
                place = session.Place(Path(directory), warm)
                yield machine.finished(_row(program, options, place, note))
        machine.measure()


def _row(program: catalogue.Program, options: Options, place: session.Place, note: Note) -> Row:
    try:
        module = read(Path(program.path))
        needed = work(module)
        peers = [name for name in options.peers if _has(name, program.name)]
        found = session.measured(program, module, peers, options.plan, place, note)
        if options.judge:
            note(f"{program.name}: judge")
            found = _judged(program, found, options, place)
        return Row(program.name, kind(needed), needed, peers=found)
    except Error as error:
        return Row(program.name, SMALL, error=str(error))


def _has(peer: str, program: str) -> bool:
    programs = PEERS[peer].programs
    return programs is None or program in programs()


def _judged(
    program: catalogue.Program,
    found: dict[str, Measured],
    options: Options,
    place: session.Place,
) -> dict[str, Measured]:
    having = [peer for peer in found if place.results(peer).exists()]
    said = verdicts(program, having, place, options.memory, options.judge)
    return {
        peer: replace(measured, verdict=said[peer].text, is_wrong=said[peer].is_wrong)
        if peer in said
        else measured
        for peer, measured in found.items()
    }


def as_json(row: Row) -> str:
    """Encode a row as a JSON object."""
    return json.dumps(asdict(row))
