"""This process in place of a worker: to debug what workers do."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Generic, TypeVar

from fuzz.worker_pool.outcome import Result
from fuzz.worker_pool.process import Opened

T = TypeVar("T")


class InProcess(Generic[T]):
    """Does a task when it is given one: without limits, and whatever that raises is raised."""

    connections = ()
    is_ready = True

    def __init__(self, opened: Opened[T]) -> None:
        self._open = ExitStack()
        self._work: Callable[..., T] = self._open.enter_context(opened())
        self._done: Result[T] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether it has no task."""
        return self._done is None

    @property
    def deadline(self) -> float:
        """Nobody has to wait for a task that was given."""
        return math.inf if self._done is None else -math.inf

    def give(self, task: tuple[Any, ...]) -> None:
        """Do a task."""
        self._done = Result(self._work(*task))

    def look(self) -> Result[T] | None:
        """The outcome of its task."""
        found, self._done = self._done, None
        return found

    def give_up(self) -> None:
        """Nobody waits for its task any more."""
        self._done = None

    def dismiss(self) -> None:
        """Nobody needs it any more."""

    def end(self, until: float) -> None:
        """Close what is open."""
        self._open.close()
