"""Represent outcomes of tasks: a result, or the death of the worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from fuzz.worker_pool.stack import Frame
from hlo.operating_system import signal_name

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Result(Generic[T]):
    """Hold the value that a task returned."""

    value: T


@dataclass(frozen=True, slots=True)
class Death:
    """Describe how a worker ended before its task was done: by a ``signal``, by an exit with a
    ``status``, or killed after ``limit`` seconds. ``lines`` are the last of its output; ``frames``
    is its stack at a fatal signal, innermost frame first, if the pool records stacks."""

    signal: int | None = None
    status: int | None = None
    limit: float | None = None
    lines: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()

    @property
    def cause(self) -> str:
        """Name the cause: ``SIGSEGV``, ``exit 1`` or ``no answer in 30 s``."""
        if self.limit is not None:
            return f"no answer in {self.limit:g} s"
        return f"exit {self.status}" if self.signal is None else signal_name(self.signal)

    def __str__(self) -> str:
        return ": ".join((self.cause, *self.lines[-1:]))


Outcome = Result[T] | Death
