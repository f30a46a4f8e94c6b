"""Evaluate a reduction's predicate in worker processes: several programs at once, and safe from
crashes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from fuzz.reducer.search import IsInteresting
from fuzz.worker_pool import Result, WorkerPool
from hlo.errors import Error
from hlo.module import Module
from interp.values import Value

_SECONDS = 60.0  # for one program


@contextmanager
def in_processes(
    start: Callable[[], IsInteresting], count: int, seconds: float = _SECONDS
) -> Iterator[list[IsInteresting]]:
    """Open ``count`` worker processes with the predicate that ``start()``, which must be
    importable, makes, for ``at_once`` of :func:`fuzz.reduce`. A program that kills its process, or
    takes too long, is not interesting."""
    with ExitStack() as stack:
        pools = (WorkerPool(partial(_started, start), seconds=seconds) for _ in range(count))
        yield [partial(_asked, stack.enter_context(pool)) for pool in pools]


def _asked(pool: WorkerPool[object], module: Module, arrays: tuple[Value, ...]) -> object:
    outcome = pool(module, arrays)
    return outcome.value if isinstance(outcome, Result) else False


@contextmanager
def _started(start: Callable[[], IsInteresting]) -> Iterator[IsInteresting]:
    is_interesting = start()

    def answer(module: Module, arrays: tuple[Value, ...]) -> object:
        try:
            return is_interesting(module, arrays)
        except Error:
            return False

    yield answer
