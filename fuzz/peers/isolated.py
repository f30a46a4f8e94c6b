"""Run tasks in a worker process that earlier tasks may have damaged."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from fuzz.peers.crash import described, place
from fuzz.worker_pool import Outcome, Result, WorkerPool

T = TypeVar("T")


class Isolated(Generic[T]):
    """Run tasks in a process of a pool.

    A death may be caused by damage from the program before: so the task is repeated in a new
    process, whose outcome counts, unless it died at a place in the compiler's source where a new
    process has died before.
    """

    def __init__(self, pool: WorkerPool[T]) -> None:
        self._pool = pool
        self._deadly: set[str] = set()  # places at which new processes died, too

    def __call__(self, *task: Any) -> Outcome[T]:
        """Run a task; return its result, or the death that counts."""
        outcome = self._pool(*task)
        if isinstance(outcome, Result) or outcome.limit is not None:
            return outcome
        if place(described(outcome)) in self._deadly:
            return outcome
        outcome = self._pool(*task)
        where = None if isinstance(outcome, Result) else place(described(outcome))
        self._deadly.update(() if where is None else (where,))
        return outcome

    def close(self) -> None:
        """End the process."""
        self._pool.close()
