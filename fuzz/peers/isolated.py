"""A function in processes of its own, which may crash, hang or take all memory without harm."""

from __future__ import annotations

import multiprocessing
import os
import re
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fuzz.peers import stack
from fuzz.peers.stack import Frame

Work = Callable[..., Any]

NO_ANSWER = "no answer"  # of a process that hangs
_FATAL = re.compile(r"F\d{4} ")  # as XLA's log marks what ended the process
_STARTS_WITHIN = 120.0  # seconds, on a busy machine


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one call: a result, or how its process ended instead, and its stack then."""

    result: Any
    crash: str | None = None
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class _Life:
    """``memory`` in bytes; ``watch`` is the library that writes down how the process ends."""

    memory: int
    watch: Path | None


def _serve(connection: Connection, start: Callable[[], Work], life: _Life, log: str) -> None:
    """The life of a worker: one call after the other."""
    resource.setrlimit(resource.RLIMIT_AS, (life.memory, life.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):  # what it prints would disturb the caller's output
        os.dup2(descriptor, stream)
    if life.watch is not None:
        stack.watch(life.watch)
    work = start()
    connection.send(None)  # ready
    while True:
        try:
            arguments = connection.recv()
        except EOFError:
            return
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        connection.send(work(*arguments))


class _Worker:
    """One process, begun anew after it died."""

    def __init__(self, pool: Isolated, log: Path) -> None:
        self._pool, self._log = pool, log
        self._begin()

    def _begin(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        arguments = (theirs, self._pool.start, self._pool.life, str(self._log))
        self._process = self._pool.context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self.connection, self._is_ready = ours, False
        self._expect(_STARTS_WITHIN)

    def _expect(self, seconds: float) -> None:
        self._limit, self._deadline = seconds, time.monotonic() + seconds

    def send(self, arguments: tuple[Any, ...]) -> None:
        """Begin a call. The process may have died of an earlier one after it had answered."""
        try:
            self.connection.send(arguments)
        except (BrokenPipeError, ConnectionResetError):
            self.end()
            self._begin()
            self.connection.send(arguments)
        self._expect(self._pool.timeout if self._is_ready else _STARTS_WITHIN)

    def outcome(self) -> Outcome | None:
        """Of the call under way; None as long as it may still succeed."""
        while self.connection.poll():
            try:
                result = self.connection.recv()
            except (EOFError, ConnectionResetError):
                return self._died()
            if self._is_ready:
                return Outcome(result)
            self._is_ready = True
            self._expect(self._pool.timeout)
        if time.monotonic() > self._deadline:
            self._process.kill()
            return self._died(f"{NO_ANSWER} in {self._limit:g} s")
        return None

    def _died(self, why: str | None = None) -> Outcome:
        self.end()
        code = self._process.exitcode or 0
        how = signal.Signals(-code).name if code < 0 else f"exit {code}"
        log = self._log.read_text(errors="replace") if self._log.exists() else ""
        self._begin()
        lines, frames = stack.split(log.strip().splitlines())
        fatal = [line for line in lines if _FATAL.match(line)] or lines
        return Outcome(None, ": ".join([why or how, *fatal[-1:]]), frames)

    def end(self) -> None:
        """End the process."""
        self.connection.close()
        self._process.join(1)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


class Isolated:
    """``start()`` makes, in each process, the function that is called there. Both must be
    importable. ``preload`` are modules that all processes share; ``timeout`` is in seconds of one
    call, ``memory`` in bytes of address space. ``stacks``: where a process was when it died is
    wanted, too."""

    def __init__(
        self,
        start: Callable[[], Work],
        *,
        preload: tuple[str, ...] = (),
        workers: int = 1,
        timeout: float = 30.0,
        memory: int = 16 << 30,
        stacks: bool = False,
    ) -> None:
        self.start, self.timeout = start, timeout
        self.life = _Life(memory, stack.library() if stacks else None)
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(list(preload))
        self._directory = tempfile.TemporaryDirectory()
        logs = (Path(self._directory.name) / f"{n}.log" for n in range(workers))
        self._workers = [_Worker(self, log) for log in logs]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.end()
        self._directory.cleanup()

    def __call__(self, *arguments: Any) -> Outcome:
        """One call."""
        ((_, outcome),) = self.map([arguments])
        return outcome

    def map(self, calls: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, Outcome]]:
        """The number and the outcome of each call, as they come."""
        waiting = enumerate(calls)
        idle, busy = list(self._workers), dict[_Worker, int]()
        while True:
            while idle and (call := next(waiting, None)) is not None:
                worker = idle.pop()
                busy[worker] = call[0]
                worker.send(call[1])
            if not busy:
                return
            wait([worker.connection for worker in busy], timeout=0.2)
            for worker in list(busy):
                outcome = worker.outcome()
                if outcome is not None:
                    yield busy.pop(worker), outcome
                    idle.append(worker)
