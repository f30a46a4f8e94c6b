"""Measure one program: each compiler in processes of its own, interleaved round by round."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backend_c.native.cache import place
from bench.speed import catalogue
from bench.speed.process import Process
from bench.speed.rows import Measured
from bench.speed.statistics import timing
from hlo import archive
from hlo.module import Module

_PREPARE = 900.0  # seconds for compiling and a first call
_CALL = 600.0  # for one question about time, beyond what is asked for
CLOCKS: dict[str, int | None] = {"wall": None, "cpu": 1}  # threads of the processes for a clock


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to measure: ``rounds`` of ``seconds`` for each process; fewer, but at least one, if
    that would exceed ``most`` seconds."""

    rounds: int = 5
    seconds: float = 0.15
    most: float = 30.0


QUICK = Plan(2, 0.05, 5.0)


@dataclass(frozen=True, slots=True)
class Place:
    """The files of a program while it is measured. ``warm`` is a cache of this project's compiler
    with what is compiled once per machine, and with no program."""

    directory: Path
    warm: Path

    @property
    def arguments(self) -> Path:
        return self.directory / "arguments.npz"

    def results(self, peer: str) -> Path:
        """Return the path of a compiler's results."""
        return self.directory / f"results_{peer}.npz"

    def cache(self, peer: str) -> Path:
        """Return the cache directory of a compiler, made at first use: links to the warm one's
        files, which caches replace and never change."""
        path = self.directory / f"cache_{peer}"
        if not path.exists():
            shutil.copytree(self.warm, path, copy_function=place)
            path.chmod(0o700)
        return path


def measured(
    program: catalogue.Program,
    module: Module,
    peers: Sequence[str],
    plan: Plan,
    place: Place,
    note: Callable[[str], None] = lambda text: None,
) -> dict[str, Measured]:
    """Measure a program under compilers; their results are left in ``place``. ``note`` is called
    with what is being done."""
    archive.write(place.arguments, archive.numbered(catalogue.values(program, module)))
    found = {peer: Measured() for peer in peers}
    with ExitStack() as stack:
        note(f"{program.name}: start")
        running = {
            (peer, clock): stack.enter_context(_worker(threads, place.cache(peer)))
            for peer in peers
            for clock, threads in CLOCKS.items()
        }
        _started(running)
        for (peer, clock), process in running.items():
            if found[peer].error is None:
                note(f"{program.name}: compile with {peer}")
                answer = process.ask(_question(program, peer, clock, place), _PREPARE)
                found[peer] = _prepared(found[peer], clock, answer)
        # A compiler that failed in one of its processes is not measured in the other.
        running = {key: process for key, process in running.items() if not found[key[0]].error}
        note(f"{program.name}: measure")
        return _rounds(running, found, plan)


def _started(running: Mapping[tuple[str, str], Process]) -> None:
    """Let all processes do their imports in parallel, before anything is timed. One that died
    reports that when it is asked again."""
    for (peer, _), process in running.items():
        process.send({"do": "start", "peer": peer})
    for (_, clock), process in running.items():
        answer = process.receive(_PREPARE)
        if CLOCKS[clock] == 1 and "error" not in answer:
            process.bind()


def _worker(threads: int | None, cache: Path) -> Process:
    environment = {
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    return Process("bench.speed.worker", threads, environment)


def _question(program: catalogue.Program, peer: str, clock: str, place: Place) -> dict[str, object]:
    return {
        "do": "prepare",
        "peer": peer,
        "name": program.name,
        "program": program.path,
        "arguments": str(place.arguments),
        "results": str(place.results(peer)) if clock == "wall" else None,
        "cache": str(place.cache(peer)),
        "threads": CLOCKS[clock],
    }


def _prepared(before: Measured, clock: str, answer: dict[str, Any]) -> Measured:
    if "error" in answer:
        return replace(before, error=answer["error"])
    # The second process finds in the cache what the first one compiled.
    return replace(before, **answer) if clock == "wall" else before


def _rounds(
    running: dict[tuple[str, str], Process], found: dict[str, Measured], plan: Plan
) -> dict[str, Measured]:
    samples: dict[tuple[str, str], list[float]] = {key: [] for key in running}
    for _ in _while_time(plan):
        for (peer, clock), process in running.items():
            if found[peer].error is not None:
                continue
            answer = process.ask({"do": "measure", "seconds": plan.seconds}, _CALL)
            if "error" in answer:
                found[peer] = replace(found[peer], error=answer["error"])
            else:
                samples[peer, clock] += answer[clock]
    for (peer, clock), process in running.items():
        if found[peer].error is None:
            fields: dict[str, Any] = {clock: timing(samples[peer, clock])}
            if clock == "wall":
                fields |= process.ask({"do": "finish"}, _CALL)
            found[peer] = replace(found[peer], **fields)
    return found


def _while_time(plan: Plan) -> Iterator[int]:
    begin = time.perf_counter()
    for number in range(plan.rounds):
        passed = time.perf_counter() - begin
        if number and passed * (number + 1) / number > plan.most:
            return
        yield number
