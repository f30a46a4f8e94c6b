"""Manage a pool of worker processes, each of which may crash, hang, exhaust memory or be killed."""

from __future__ import annotations

import math
import multiprocessing
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import wait
from multiprocessing.util import Finalize
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from fuzz.worker_pool import held_interrupts, stack
from fuzz.worker_pool.in_process import InProcess
from fuzz.worker_pool.outcome import Outcome
from fuzz.worker_pool.process import Limits, Opener, address_space, is_supported
from fuzz.worker_pool.worker import ENDS_WITHIN, Task, Worker
from hlo.errors import Unsupported

T = TypeVar("T")


class WorkerPool(Generic[T]):
    """Run tasks, which are calls of the function that ``opener()`` yields, in worker processes.

    ``opener`` is entered in each worker and exited when it ends; it, tasks and results are pickled.
    Workers are forked from a server that has only imported ``preload`` (of the first pool that this
    process opens), never from this process, which may have threads. Limits: ``seconds`` per task,
    of wall-clock and of processor time (:mod:`fuzz.worker_pool.processor_time`); ``memory`` in
    bytes of address space beyond what a worker begins with. A worker that ends before it has
    answered is replaced, and its outcome is a :class:`Death`, with its stack if ``stacks`` is true
    and there is a C compiler. Raises Error if workers die in a row before they are ready. With 0
    workers tasks run in this process, without limits, and their exceptions propagate.
    """

    def __init__(
        self,
        opener: Opener[T],
        *,
        workers: int = 1,
        seconds: float = 30.0,
        memory: int | None = 16 << 30,
        preload: tuple[str, ...] = (),
        stacks: bool = False,
    ) -> None:
        self._workers: list[Worker[T] | InProcess[T]] = []
        self._numbers: dict[Worker[T] | InProcess[T], int] = {}  # of the tasks that are not done
        self._submitted = 0
        # Also at the end of this process: multiprocessing waits for processes that nobody ended.
        # It refers to the list and not to the pool, which would never be collected then.
        self._end = Finalize(self, _end, (self._workers,), exitpriority=1)
        if workers:
            _require(memory)
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload([*preload, held_interrupts.ACCEPTING])
            held_interrupts.start_fork_server()
            limits = Limits(seconds, memory, stack.library() if stacks else None)
            self._workers += (Worker(context, opener, limits) for _ in range(workers))
        else:
            self._workers.append(InProcess(opener))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all workers, idle or busy."""
        self._end()

    @property
    def is_idle(self) -> bool:
        """Return whether a worker has no task."""
        return len(self._numbers) < len(self._workers)

    @property
    def is_busy(self) -> bool:
        """Return whether a task is unfinished."""
        return bool(self._numbers)

    def submit(self, *task: Any) -> int:
        """Assign a task to an idle worker; return the number of the task."""
        idle = [worker for worker in self._workers if worker.is_idle]
        # A task of one that is not ready waits for its start, which takes seconds where JAX is
        # imported.
        worker = next((one for one in idle if one.is_ready), idle[0])
        worker.give(task)
        self._numbers[worker] = number = self._submitted
        self._submitted += 1
        return number

    def finished(self, seconds: float = math.inf) -> list[tuple[int, Outcome[T]]]:
        """Wait for tasks to finish, at most ``seconds``; return their numbers and outcomes."""
        end = time.monotonic() + seconds
        found = self._looked()
        while not found and self.is_busy and time.monotonic() < end:
            self._wait(end)
            found = self._looked()
        return found

    def _looked(self) -> list[tuple[int, Outcome[T]]]:
        outcomes = [(worker, worker.look()) for worker in self._workers]
        return [(self._numbers.pop(one), found) for one, found in outcomes if found is not None]

    def _wait(self, end: float) -> None:
        """Block until a pipe is readable, a worker exceeds its limit, or the time is up."""
        end = min(end, *(worker.deadline for worker in self._workers))
        left = None if end == math.inf else max(0.0, end - time.monotonic())
        wait([one for worker in self._workers for one in worker.connections], left)

    def __call__(self, *task: Any) -> Outcome[T]:
        """Run one task."""
        ((_, outcome),) = self.unordered([task])
        return outcome

    def map(self, tasks: Iterable[Task]) -> Iterator[Outcome[T]]:
        """Yield the outcome of each task, in the order of the tasks."""
        early: dict[int, Outcome[T]] = {}
        following = 0
        for number, outcome in self.unordered(tasks):
            early[number] = outcome
            while following in early:
                yield early.pop(following)
                following += 1

    def unordered(self, tasks: Iterable[Task]) -> Iterator[tuple[int, Outcome[T]]]:
        """Yield the number and the outcome of each task in the order of completion."""
        first, waiting = self._submitted, iter(tasks)
        try:
            while True:
                while self.is_idle and (task := next(waiting, None)) is not None:
                    self.submit(*task)
                if not self.is_busy:
                    return
                for number, outcome in self.finished():
                    yield number - first, outcome
        finally:
            self._give_up()

    def _give_up(self) -> None:
        """Cancel unfinished tasks, so that the next caller does not get their outcomes."""
        for worker in self._numbers:
            worker.give_up()
        self._numbers.clear()


def _require(memory: int | None) -> None:
    """Raise Unsupported where processes cannot be limited; warn where their memory cannot."""
    if not is_supported:
        raise Unsupported(
            "processes that may crash are run on Linux and macOS: this system has no fcntl and no"
            " resource (without them: hlo run, hlo check --no-c, --against COMMAND)"
        )
    if memory is not None and address_space() is None:
        warnings.warn("the memory of processes is not limited on this system", stacklevel=3)


def _end(workers: Sequence[Worker[T] | InProcess[T]]) -> None:
    for worker in workers:
        worker.dismiss()
    until = time.monotonic() + ENDS_WITHIN
    for worker in workers:
        worker.end(until)
