"""One worker as its pool sees it: a process, begun anew when it died, and the task it is at."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, Generic, TypeVar

from fuzz.worker_pool import stack
from fuzz.worker_pool.outcome import Death, Outcome, Result
from fuzz.worker_pool.process import Limits, Opened, Output, serve
from hlo.errors import Error

T = TypeVar("T")
Task = tuple[Any, ...]

ENDS_WITHIN = 1.0  # seconds, when nobody needs it any more
_BEGINS_WITHIN = 120.0  # seconds, on a busy machine
_MOST_BEGINNINGS = 3  # that fail, one after the other
_MOST_LINES = 100


class Worker(Generic[T]):
    """A process that does tasks one by one. It is sent a task when it is ready for one, so that
    what it dies of before that is nobody's task; Error if it dies of that again and again."""

    def __init__(self, context: ForkServerContext, opened: Opened[T], limits: Limits) -> None:
        self._context, self._limits = context, limits
        self._opened = bytes(ForkingPickler.dumps(opened))
        self._output = Output()
        self._task: bytes | None = None  # pickled
        self._failed = 0  # beginnings
        self._begin()

    def _begin(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        given = (theirs, self._opened, self._limits, self._output)
        self._process: BaseProcess = self._context.Process(target=serve, args=given)
        self._process.start()
        theirs.close()
        self._connection: Connection = ours
        self.is_ready, self._is_at_work = False, False
        self._expect(_BEGINS_WITHIN)

    def _expect(self, seconds: float) -> None:
        self._allowed, self.deadline = seconds, time.monotonic() + seconds

    @property
    def connections(self) -> tuple[Connection, ...]:
        """Where it is to be looked at when something comes."""
        return (self._connection,)

    @property
    def is_idle(self) -> bool:
        """Whether it has no task."""
        return self._task is None

    def give(self, task: Task) -> None:
        """Let it do a task, as soon as it is ready."""
        self._task = bytes(ForkingPickler.dumps(task))
        if self.is_ready:
            self._send(self._task)

    def _send(self, task: bytes) -> None:
        """The process may have died of the task before, after it had done that."""
        try:
            self._connection.send_bytes(task)
        except (BrokenPipeError, ConnectionResetError):
            self._begin_anew()
            return
        self._is_at_work = True
        self._expect(self._limits.seconds)

    def look(self) -> Outcome[T] | None:
        """The outcome of its task, if that is there now. After a death it begins anew."""
        while self._connection.poll():
            try:
                found = self._connection.recv()
            except (EOFError, ConnectionResetError):
                return self._died(None)
            if self.is_ready:
                self._task, self._is_at_work = None, False
                self._expect(math.inf)
                return Result(found)
            self.is_ready, self._failed = True, 0
            self._expect(math.inf)
            if self._task is not None:
                self._send(self._task)
        return self._died(self._allowed) if time.monotonic() > self.deadline else None

    def _died(self, limit: float | None) -> Death | None:
        was_ready, was_at_work = self.is_ready, self._is_at_work
        if limit is not None:
            self._kill()
        self._end(time.monotonic() + ENDS_WITHIN)
        death = _death(self._process.exitcode or 0, limit, self._output.lines())
        self._failed += not was_ready
        if self._failed >= _MOST_BEGINNINGS:
            raise Error(f"worker processes end before they do anything: {death}")
        self._begin()
        if not was_at_work:
            return None
        self._task = None
        return death

    def give_up(self) -> None:
        """Nobody waits for its task any more."""
        if self._is_at_work:
            self._kill()
            self._begin_anew()
        self._task = None

    def _begin_anew(self) -> None:
        self._end(time.monotonic() + ENDS_WITHIN)
        self._begin()

    def _kill(self) -> None:
        """End the process and what it started."""
        try:
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        except ProcessLookupError:  # it has no session of its own yet
            self._process.kill()

    def dismiss(self) -> None:
        """Tell the process that nobody needs it: one that waits for a task leaves by itself."""
        self._connection.close()
        if self._is_at_work or not self.is_ready:
            self._process.terminate()

    def end(self, until: float) -> None:
        """Wait until the process has ended, but not for longer than until that time."""
        self._end(until)
        self._output.close()

    def _end(self, until: float) -> None:
        self._connection.close()
        self._process.join(max(0.0, until - time.monotonic()))
        if self._process.is_alive():
            self._kill()
            self._process.join()


def _death(code: int, limit: float | None, output: list[str]) -> Death:
    lines, frames = stack.split(output)
    told = tuple(line.strip() for line in lines if line.strip())[-_MOST_LINES:]
    if limit is not None:
        return Death(limit=limit, lines=told, frames=frames)
    if -code in signal.valid_signals():
        return Death(signal.Signals(-code), lines=told, frames=frames)
    return Death(status=code, lines=told, frames=frames)
