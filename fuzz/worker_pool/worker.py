"""Manage one worker from the parent: its process, restarted after a death, and its task."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fuzz.worker_pool import main_module, messages, stack
from fuzz.worker_pool.outcome import Death, Outcome, Result
from fuzz.worker_pool.process import Limits, Opener, Output, serve
from fuzz.worker_pool.processor_time import Allowance
from hlo.errors import Error

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext  # which Windows lacks

T = TypeVar("T")
Task = tuple[Any, ...]

ENDS_WITHIN = 1.0  # seconds, when nobody needs it any more
_BEGINS_WITHIN = 120.0  # seconds, on a busy machine
_MOST_BEGINNINGS = 3  # that fail, one after the other
_MOST_LINES = 100


class Worker(Generic[T]):
    """Run tasks one by one in a process. A task is only sent to a process that has announced that
    it is ready, so that a death at start is not attributed to it; raises Error after several deaths
    at start in a row."""

    def __init__(self, context: ForkServerContext, opener: Opener[T], limits: Limits) -> None:
        self._context, self._limits = context, limits
        self._opener = messages.pickled(opener)
        self._output = Output()
        self._task: bytes | None = None  # pickled
        self._failed = 0  # beginnings
        self._begin()

    def _begin(self) -> None:
        # First: if the start fails, there is only the process before, which has ended.
        self.is_ready, self._is_at_work = False, False
        ours, theirs = multiprocessing.Pipe()
        given = (theirs, self._opener, self._limits, self._output)
        process = self._context.Process(target=serve, args=given)
        with theirs, main_module.left_out():
            process.start()
        self._process: BaseProcess = process
        self._connection: Connection = ours
        self._allowance = Allowance(_BEGINS_WITHIN)

    @property
    def deadline(self) -> float:
        """Return when to check its time limit, by the monotonic clock."""
        return self._allowance.deadline

    @property
    def connections(self) -> tuple[Connection, ...]:
        """Return the connections to wait for: the pipe to the process."""
        return (self._connection,)

    @property
    def is_idle(self) -> bool:
        """Return whether it has no task."""
        return self._task is None

    def give(self, task: Task) -> None:
        """Assign a task, which is sent as soon as the process is ready."""
        self._task = messages.pickled(task)
        if self.is_ready:
            self._send(self._task)

    def _send(self, task: bytes) -> None:
        """Send the task; the process may have died after it answered the one before."""
        try:
            messages.send(self._connection, task)
        except (BrokenPipeError, ConnectionResetError):
            self._begin_anew()
            return
        self._is_at_work = True
        self._allowance = Allowance(self._limits.seconds, self._process.pid)

    def look(self) -> Outcome[T] | None:
        """Return the outcome of its task, None while unknown; restart the process after a death."""
        while self._connection.poll():
            try:
                found = messages.receive(self._connection)
            except (EOFError, ConnectionResetError):
                return self._died(None)
            if self.is_ready:
                self._task, self._is_at_work = None, False
                self._allowance = Allowance(math.inf)
                return Result(found)
            self.is_ready, self._failed = True, 0
            self._allowance = Allowance(math.inf)
            if self._task is not None:
                self._send(self._task)
        return self._died(self._allowance.seconds) if self._allowance.is_spent() else None

    def _died(self, limit: float | None) -> Death | None:
        was_ready, was_at_work = self.is_ready, self._is_at_work
        # What hangs does not see the end of its pipe.
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
        """Cancel its task; the process that works on it is killed."""
        if self._is_at_work:
            self._kill()
            self._begin_anew()
        self._task = None

    def _begin_anew(self) -> None:
        self._end(time.monotonic() + ENDS_WITHIN)
        self._begin()

    def _kill(self) -> None:
        """Kill the process and its children."""
        leader = self._process.pid
        assert leader  # the group 0 is this process's own
        try:
            os.killpg(leader, signal.SIGKILL)
        except ProcessLookupError:  # it has no session of its own yet
            self._process.kill()

    def dismiss(self) -> None:
        """Ask the process to end: an idle one sees the end of its pipe, a busy one gets SIGTERM."""
        self._connection.close()
        if self._is_at_work or not self.is_ready:
            self._process.terminate()

    def end(self, until: float) -> None:
        """Wait for the process to end; kill it if it has not by that time."""
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
    if code < 0:
        return Death(-code, lines=told, frames=frames)
    return Death(status=code, lines=told, frames=frames)
