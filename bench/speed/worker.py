"""Measure one program under one compiler in a process of its own.

``python -m bench.speed.worker`` answers, a JSON object a line: first ``start`` and ``prepare``
(compile and call once), then ``measure`` as often as it is asked, then ``finish``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.speed.answering import serve
from bench.speed.peers.subject import Question, Subject
from bench.speed.peers.table import PEERS
from hlo import archive

_SHORTEST = 1e-3  # seconds of a batch: a thousand times what reading both clocks takes


class Worker:
    """The prepared program, and the number of calls in a batch; methods answer questions."""

    def __init__(self) -> None:
        self._subject: Subject | None = None
        self._calls = 1

    def start(self, peer: str) -> dict[str, Any]:
        """Import the modules of a compiler."""
        for package in PEERS[peer].needs:
            import_module(package)
        return {}

    def prepare(self, **asked: Any) -> dict[str, Any]:
        """Compile the program, call it once, and store its results."""
        question = Question(**asked)
        self._subject = PEERS[question.peer].ready(question)
        result = self._subject.call()
        if question.results is not None:
            arrays = [(f"r{n}", array) for n, array in enumerate(self._subject.arrays(result))]
            archive.write(Path(question.results), arrays)
        del result
        return asdict(self._subject.compiled)

    def measure(self, seconds: float) -> dict[str, Any]:
        """Time the program for about ``seconds``, in batches of at least a millisecond."""
        assert self._subject is not None
        walls: list[float] = []
        processors: list[float] = []
        end = time.perf_counter() + seconds
        while not walls or time.perf_counter() < end:
            wall, processor = _batch(self._subject.call, self._calls)
            # The number of calls is kept for later rounds, so only the first one spends time
            # finding it.
            if wall < _SHORTEST and time.perf_counter() < end:
                self._calls *= 2
                continue
            walls.append(wall / self._calls)
            processors.append(processor / self._calls)
        return {"wall": walls, "cpu": processors, "calls": self._calls}

    def finish(self) -> dict[str, Any]:
        """Return the peak memory of this process in bytes."""
        return {"peak": peak_memory()}


def _batch(call: Callable[[], object], calls: int) -> tuple[float, float]:
    """Time some calls; return wall-clock seconds, and processor seconds of all threads."""
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(calls):
        call()
    return time.perf_counter() - wall, time.process_time() - processor


def peak_memory() -> int | None:
    """Return the peak resident memory in bytes; None where the system does not report it."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s++(\d++) kB", status.read_text()) if status.exists() else None
    return None if found is None else int(found[1]) * 1024


def main() -> None:
    worker = Worker()
    serve(
        {
            "start": worker.start,
            "prepare": worker.prepare,
            "measure": worker.measure,
            "finish": worker.finish,
        }
    )


if __name__ == "__main__":
    main()
