"""Oracles in a process of their own: generated C may crash or never end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from fuzz.oracles.oracle import Difference, LeftOut, Outcome, Property
from fuzz.oracles.table import named
from fuzz.peers.isolated import Isolated
from fuzz.reducer.search import Case

SECONDS = 60.0  # for one call, and then for each of its programs
_NO_END = "no answer"


def by_name(name: str) -> AbstractContextManager[Property]:
    """That of an oracle, where a crash does no harm."""
    oracle = named(name)
    if not oracle.runs_c:
        return oracle.opened()
    return guarded(partial(_start, name))


def narrower(found: Difference, of: Property) -> AbstractContextManager[Property]:
    """What smaller programs are asked instead of ``of``."""
    return by_name(found.oracle) if found.oracle else nullcontext(of)


@contextmanager
def guarded(start: Callable[[], Property]) -> Iterator[Property]:
    """A property that ``start()`` makes in another process. Where that ends or does not answer,
    each program is asked alone: one that ends it violates the property."""
    with Isolated(start, preload=(__name__,), timeout=SECONDS) as pool:

        def of(cases: Sequence[Case]) -> list[Outcome]:
            answer = pool(tuple(cases))
            if answer.crash is None:
                found: list[Outcome] = answer.result
                return found
            if len(cases) > 1:
                return [outcome for case in cases for outcome in of([case])]
            if answer.crash.startswith(_NO_END):
                return [LeftOut("takes too long")]
            return [Difference(f"crash: {answer.crash.split(':')[0]}", answer.crash)]

        yield of


def _start(name: str) -> Property:
    return named(name).opened().__enter__()  # until the process ends
