"""Run tasks in this process, with the interface of a worker, for debugging."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Generic, TypeVar

from fuzz.worker_pool.outcome import Result
from fuzz.worker_pool.process import Opener

T = TypeVar("T")


class InProcess(Generic[T]):
    """Run a task when it is assigned, without limits; exceptions propagate."""

    connections = ()
    is_ready = True

    def __init__(self, opener: Opener[T]) -> None:
        self._open = ExitStack()
        self._work: Callable[..., T] = self._open.enter_context(opener())
        self._done: Result[T] | None = None

    @property
    def is_idle(self) -> bool:
        """Return whether it has no task."""
        return self._done is None

    @property
    def deadline(self) -> float:
        """Return a time in the past if an outcome is ready, so that nobody waits."""
        return math.inf if self._done is None else -math.inf

    def give(self, task: tuple[Any, ...]) -> None:
        """Run a task."""
        self._done = Result(self._work(*task))

    def look(self) -> Result[T] | None:
        """Return the outcome of its task."""
        found, self._done = self._done, None
        return found

    def give_up(self) -> None:
        """Drop the outcome of its task."""
        self._done = None

    def dismiss(self) -> None:
        """Do nothing: there is no process to ask."""

    def end(self, until: float) -> None:
        """Close the open function."""
        self._open.close()
