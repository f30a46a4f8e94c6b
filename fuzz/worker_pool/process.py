"""The life of a worker: a process that does one task after the other, within limits.

It has a session of its own, so that what it starts can be ended with it and a terminal's Ctrl-C
does not reach it; and it ends when the process that started it does, whatever it is at then.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import pickle
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import DupFd
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from fuzz.worker_pool import stack

T = TypeVar("T")

# Makes, in a worker, the function that does its tasks. Importable: a worker imports it.
Opened = Callable[[], AbstractContextManager[Callable[..., T]]]

_MOST_OUTPUT = 1 << 20  # bytes, the last of a task, that are read


@dataclass(frozen=True, slots=True)
class Limits:
    """``seconds`` for a task; ``memory``: bytes of address space beyond those that a worker has
    when it begins, None: any; ``watch``: the library that writes its stack down when it dies."""

    seconds: float
    memory: int | None
    watch: Path | None


class Output:
    """What a worker writes on stdout and stderr during a task: a file without a name."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (for as long as the worker)
        fcntl.fcntl(self._file, fcntl.F_SETFL, os.O_APPEND)

    def __reduce__(self) -> tuple[Callable[[Any], int], tuple[Any]]:
        """The worker gets a descriptor."""
        return _inherited, (DupFd(self._file.fileno()),)

    def close(self) -> None:
        """Forget it."""
        self._file.close()

    def lines(self) -> list[str]:
        """The last lines of the last task."""
        descriptor = self._file.fileno()
        begin = max(0, os.fstat(descriptor).st_size - _MOST_OUTPUT)
        return os.pread(descriptor, _MOST_OUTPUT, begin).decode(errors="replace").splitlines()


def _inherited(descriptor: Any) -> int:
    found: int = descriptor.detach()
    return found


def serve(connection: Connection, pickled: bytes, limits: Limits, output: int) -> None:
    """Do the tasks that come, until none can come any more. What does them is unpickled here, so
    that what is wrong with that is among what a worker writes."""
    os.setsid()
    _end_with_parent()
    signal.signal(signal.SIGTERM, _leave)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for stream in (1, 2):
        os.dup2(output, stream)
    if limits.watch is not None:
        stack.watch(limits.watch)
    opened: Opened[object] = pickle.loads(pickled)
    with opened() as work:
        if limits.memory is not None:
            _limit_memory(limits.memory)
        connection.send(None)  # ready
        while True:
            try:
                task = connection.recv()
            except EOFError:
                return
            os.ftruncate(output, 0)
            connection.send(work(*task))


def _end_with_parent() -> None:
    """Let the kernel end this process with that which started it: a pipe from there tells of its
    end by SIGIO, which nothing handles. A thread that waits would not run beside all code."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(parent.sentinel, fcntl.F_GETFL)
    fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, flags | os.O_ASYNC)
    if not parent.is_alive():  # it ended before
        os.kill(os.getpid(), signal.SIGIO)


def _leave(number: int, frame: FrameType | None) -> None:
    """What is open is closed on the way."""
    sys.exit(128 + number)


def _limit_memory(most: int) -> None:
    limit = address_space() + most
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def address_space() -> int:
    """Bytes of address space that this process has; 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[0]) * resource.getpagesize() if statm.exists() else 0
