"""Run a worker process: set limits, then answer tasks from a pipe.

A worker is the leader of its own session: its children can be killed with it, and a terminal's
Ctrl-C reaches the parent alone. It dies with its parent, whatever it is doing then.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from fuzz.worker_pool import messages, stack

try:
    import fcntl
    import resource
    from multiprocessing.reduction import DupFd

    is_supported = True
except ImportError:  # on Windows
    is_supported = False

T = TypeVar("T")

# Opens, in a worker, the function that does its tasks. It must be importable by name.
Opener = Callable[[], AbstractContextManager[Callable[..., T]]]

_MOST_OUTPUT = 1 << 20  # bytes, the last of a task, that are read


@dataclass(frozen=True, slots=True)
class Limits:
    """Limit a worker: ``seconds`` per task; ``memory`` in bytes of address space beyond its initial
    size (None: no limit). ``watch`` is the library that prints its stack at a fatal signal."""

    seconds: float
    memory: int | None
    watch: Path | None


class Output:
    """Capture stdout and stderr of a worker in an unnamed file."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (for as long as the worker)
        # Once a worker has emptied it for the next task, writes begin at 0: at the old offset they
        # would leave zeros before them.
        fcntl.fcntl(self._file, fcntl.F_SETFL, os.O_APPEND)

    def __reduce__(self) -> tuple[Callable[[Any], int], tuple[Any]]:
        """Pickle as a file descriptor, for the worker."""
        return _inherited, (DupFd(self._file.fileno()),)

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def lines(self) -> list[str]:
        """Read the last lines of the current task."""
        descriptor = self._file.fileno()
        begin = max(0, os.fstat(descriptor).st_size - _MOST_OUTPUT)
        return os.pread(descriptor, _MOST_OUTPUT, begin).decode(errors="replace").splitlines()


def _inherited(descriptor: Any) -> int:
    found: int = descriptor.detach()
    return found


def serve(connection: Connection, pickled: bytes, limits: Limits, output: int) -> None:
    """Answer tasks until the other end of the connection is closed. ``pickled`` is an
    :data:`Opener`; it is unpickled here so that its errors are part of the captured output."""
    os.setsid()
    parent = multiprocessing.parent_process()
    assert parent is not None
    end_with(parent.sentinel)
    signal.signal(signal.SIGTERM, _leave)
    # No core files: crashes are what is looked for here.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for stream in (1, 2):
        os.dup2(output, stream)
    if limits.watch is not None:
        stack.watch(limits.watch)
    opener: Opener[object] = pickle.loads(pickled)
    with opener() as work:
        # After the opener: what its libraries map is no task's.
        if limits.memory is not None:
            _limit_memory(limits.memory)
        messages.send(connection, messages.pickled(None))  # ready
        while True:
            try:
                task = messages.receive(connection)
            except EOFError:
                return
            os.ftruncate(output, 0)
            messages.send(connection, messages.pickled(work(*task)))


def end_with(pipe: int) -> None:
    """Have the kernel kill this process when the holder of the other end of a pipe dies: the end of
    a pipe raises SIGIO, whose default action is to terminate. A thread that waits for that would
    not run while C code holds the interpreter's lock."""
    signal_at_end(pipe, os.getpid())
    if wait([pipe], 0):  # it ended before
        os.kill(os.getpid(), signal.SIGIO)


def signal_at_end(pipe: int, owner: int) -> None:
    """Have the kernel send SIGIO to a process, or, if negative, to a group of processes, at the end
    of a pipe, as long as any process has it open."""
    fcntl.fcntl(pipe, fcntl.F_SETOWN, owner)
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)


def _leave(number: int, frame: FrameType | None) -> None:
    """Turn a signal into SystemExit, which closes what is open."""
    sys.exit(128 + number)


def _limit_memory(most: int) -> None:
    """Limit the address space, if the system tells how much of it is used already."""
    taken = address_space()
    if taken is None:
        return
    limit = taken + most
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def address_space() -> int | None:
    """Return the size of this process's address space in bytes, None if unknown."""
    statm = Path("/proc/self/statm")
    return (
        int(statm.read_text("utf-8").split()[0]) * resource.getpagesize()
        if statm.exists()
        else None
    )
