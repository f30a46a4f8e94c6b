"""Run oracles in processes of their own: generated C may crash or never end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from fuzz.oracles.oracle import Difference, LeftOut, Opener, Outcome, Property
from fuzz.oracles.table import named
from fuzz.reducer.search import Case
from fuzz.worker_pool import Result, WorkerPool

SECONDS = 60.0  # for one call, and then for each of its programs


def by_name(name: str) -> AbstractContextManager[Property]:
    """Open an oracle by name, isolated if it runs C."""
    oracle = named(name)
    if not oracle.runs_c:
        return oracle.open()
    return guarded(partial(_unguarded, name))


def narrower(found: Difference, of: Property) -> AbstractContextManager[Property]:
    """Open the faster oracle that a difference names for its reduction, else the given one."""
    return by_name(found.oracle) if found.oracle else nullcontext(of)


@contextmanager
def guarded(opener: Opener) -> Iterator[Property]:
    """Open a property in another process. If that dies or does not answer, each program is tested
    alone; one that kills the process violates the property."""
    with WorkerPool(opener, preload=(__name__,), seconds=SECONDS) as pool:

        def of(cases: Sequence[Case]) -> list[Outcome]:
            answer = pool(tuple(cases))
            if isinstance(answer, Result):
                return answer.value
            if len(cases) > 1:
                return [outcome for case in cases for outcome in of([case])]
            if answer.limit is not None:
                return [LeftOut("takes too long")]
            return [Difference(f"crash: {answer.cause}", str(answer))]

        yield of


def _unguarded(name: str) -> AbstractContextManager[Property]:
    return named(name).open()
