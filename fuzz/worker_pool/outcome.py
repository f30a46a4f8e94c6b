"""What becomes of a task: the result of a worker, or how the worker ended instead."""

from __future__ import annotations

from dataclasses import dataclass
from signal import Signals
from typing import Generic, TypeVar

from fuzz.worker_pool.stack import Frame

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Result(Generic[T]):
    """The task was done."""

    value: T


@dataclass(frozen=True, slots=True)
class Death:
    """The worker ended before it had done the task: by a ``signal``, by leaving with a ``status``,
    or because it took more than ``limit`` seconds. ``lines`` are the last that it had written;
    ``frames`` is its stack, innermost first, of a signal that it did not survive, if stacks were
    asked for."""

    signal: Signals | None = None
    status: int | None = None
    limit: float | None = None
    lines: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()

    @property
    def cause(self) -> str:
        """``SIGSEGV``, ``exit 1`` or ``no answer in 30 s``."""
        if self.limit is not None:
            return f"no answer in {self.limit:g} s"
        return f"exit {self.status}" if self.signal is None else self.signal.name

    def __str__(self) -> str:
        return ": ".join((self.cause, *self.lines[-1:]))


Outcome = Result[T] | Death
