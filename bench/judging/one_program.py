"""Measure what judging one program takes, in a process of its own: so the peak of memory is that of
one program."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import interp
from bench.speed.catalogue import Program, values
from fuzz.peers.xla import Answer
from hlo.operating_system import keep_freed_memory, peak_memory
from hlo.values import Array
from hlo_oracle import own_process, peer_verdicts
from hlo_oracle.loading import programs
from interp.envelope.budget import XLA_CPU
from interp.envelope.evaluation import enclose

_ELIDED = "random:0"  # fills in constants that a text leaves out
_TIMEOUT = 600.0  # seconds for one program of XLA


@dataclass(frozen=True, slots=True)
class Row:
    """Processor seconds: of the interpreter, of the whole program's error envelope, of judging
    without XLA, and of XLA's processes, their start included. ``programs``: how many XLA compiled
    and ran. ``memory``: the peak of the judging process, in bytes."""

    name: str
    interp: float = 0.0
    envelope: float = 0.0
    judging: float = 0.0
    xla: float = 0.0
    programs: int = 0
    counts: dict[str, int] | None = None  # elements of each verdict
    memory: int = 0
    failure: str | None = None  # why there is no verdict

    @property
    def total(self) -> float:
        """The processor seconds of judging, XLA's processes included."""
        return self.judging + self.xla

    @property
    def goal(self) -> float:
        """The seconds that judging may take: a minute, or 20 times the interpreter's."""
        return max(60.0, 20 * self.interp)


def measured(program: Program) -> Row:
    """Judge a program in a process of its own."""
    found = own_process.asked(__name__, asdict(program))
    if isinstance(found, own_process.Died):
        return Row(program.name, failure=found.how)
    return Row(**found)


def _measured(program: Program) -> Row:
    found = programs.read_program(Path(program.path), _ELIDED)
    arguments = values(program, found.module)
    begin = time.process_time()
    exact = interp.evaluate(found.module, *arguments)
    interpreted = time.process_time()
    enclose(found.module, *arguments, peer=XLA_CPU)
    enclosed = time.process_time()
    count = 0
    with peer_verdicts.peer("xla").start(_TIMEOUT) as xla:

        def run(text: str, arrays: Sequence[Array]) -> Answer:
            nonlocal count
            count += 1
            return xla(text, arrays)

        judgement = peer_verdicts.peer_judgement(
            run, XLA_CPU, found.module, found.text, arguments, exact=exact, seed=0
        )
        ended = time.process_time()
        others = _descendants_seconds(os.getpid())
    times = interpreted - begin, enclosed - interpreted, ended - enclosed, others
    failure = judgement.refused or judgement.crash
    memory = peak_memory() or 0
    return Row(program.name, *times, count, judgement.counts, memory, failure)


def _descendants_seconds(ancestor: int) -> float:
    """Sum the processor time of all descendants of a process, also of those that have ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        process = int(folder.name)
        parents[process] = int(fields[1])
        ticks[process] = sum(map(int, fields[11:15]))  # of itself and of children that ended
    below = {ancestor}
    while more := {x for x, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(ticks[x] for x in below - {ancestor}) / os.sysconf("SC_CLK_TCK")


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Measure the program that a question names."""
    keep_freed_memory()
    return asdict(_measured(Program(**question)))
