"""Ask worker processes that may be damaged by what they did before."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from fuzz.peers.crash import described, failed_check
from fuzz.worker_pool import Outcome, Result, WorkerPool

T = TypeVar("T")


class Isolated(Generic[T]):
    """Do tasks in a process of a pool.

    A process that dies may have been damaged by the program before: what counts is what a new one
    does, unless a check failed that fails in new ones, too.
    """

    def __init__(self, pool: WorkerPool[T]) -> None:
        self._pool = pool
        self._failing: set[str] = set()  # checks that fail in new processes, too

    def __call__(self, *task: Any) -> Outcome[T]:
        """Do a task; return its result, or the death that counts."""
        outcome = self._pool(*task)
        if isinstance(outcome, Result) or outcome.limit is not None:
            return outcome
        if failed_check(described(outcome)) in self._failing:
            return outcome
        outcome = self._pool(*task)
        check = None if isinstance(outcome, Result) else failed_check(described(outcome))
        self._failing.update(() if check is None else (check,))
        return outcome

    def close(self) -> None:
        """End the process."""
        self._pool.close()
