"""Search for the smallest failing program: several attempts in parallel, a deterministic result."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NamedTuple, Self

import numpy as np

import hlo
from hlo.errors import Error
from hlo.module import Module
from hlo.values import arrays_of
from interp.values import Value

IsInteresting = Callable[[Module, tuple[Value, ...]], object]  # true of those that are
Progress = Callable[[str, Module, int], None]

_KNOWN_UP_TO = 2000  # instructions: longer texts are not written to see whether they were tried
_AHEAD = 2  # programs for each thread: while the first of them takes long, the others go on


@dataclass(frozen=True, slots=True)
class Case:
    """A program and its arguments."""

    module: Module
    arrays: tuple[Value, ...]


class OutOfTime(Exception):
    """Raised when time is up: the search ends with the best case so far."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limit and observe a search: ``seconds`` in all; ``progress`` is called for each smaller
    module with the step, the module, and how many were tried; ``taken`` with what
    ``is_interesting`` returned."""

    seconds: float
    progress: Progress | None = None
    taken: Callable[[Any], object] | None = None


class _Trial(NamedTuple):
    """Hold a case that is being tested; ``key`` identifies it (None for large ones)."""

    number: int
    case: Case
    key: bytes | None
    answer: Future[object] | None  # None: asked when it is its turn


class Search:
    """Shrink ``best``, a valid and interesting case, by :meth:`first`. Use it in ``with``.

    Each function of ``asked`` is an equivalent predicate, run in a thread of its own. The case
    taken is always the first interesting one in order; later ones are tested speculatively, and
    their answers may be discarded. So ``best`` does not depend on the number of predicates.
    """

    def __init__(self, case: Case, asked: Sequence[IsInteresting], limits: Limits) -> None:
        self.best = case
        self.tried = 0
        self._limits = limits
        self._end = time.monotonic() + limits.seconds
        self._known: set[bytes | None] = {_key(case)}
        self._only = asked[0]
        self._idle: SimpleQueue[IsInteresting] = SimpleQueue()
        for one in asked:
            self._idle.put(one)
        self._threads = ThreadPoolExecutor(len(asked)) if len(asked) > 1 else None
        self._ahead = _AHEAD * len(asked) if self._threads else 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *of_exception: object) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def attempt(self, case: Case, what: str = "") -> bool:
        """Take a case if it is valid and still interesting; return whether it is."""
        return self.first((case,), what) is not None

    def exhaust(self, step: Callable[[Case], Iterator[Case]], what: str) -> bool:
        """Repeat a step until none of its proposals is still interesting."""
        changed = False
        while self.first(step(self.best), what) is not None:
            changed = True
        return changed

    def first(self, cases: Iterable[Case | None], what: str = "") -> int | None:
        """Take the first case that is valid and still interesting; return its number, None if there
        is none. Cases that were tried before, and None, are skipped."""
        trials = self._trials(cases)
        waiting: deque[_Trial] = deque()
        try:
            while True:
                while len(waiting) < self._ahead and (trial := next(trials, None)) is not None:
                    waiting.append(trial)
                if not waiting:
                    return None
                if self._is_taken(waiting[0], what):
                    return waiting[0].number
                waiting.popleft()
        finally:
            for trial in waiting:
                if trial.answer is not None:
                    trial.answer.cancel()

    def _trials(self, cases: Iterable[Case | None]) -> Iterator[_Trial]:
        keys: set[bytes] = set()
        for number, case in enumerate(cases):
            if time.monotonic() > self._end:
                raise OutOfTime
            if case is None:
                continue
            key = _key(case)
            if key is None:
                if case.arrays is self.best.arrays and case.module == self.best.module:
                    continue
            elif key in self._known or key in keys:
                continue
            else:
                keys.add(key)
            answer = self._threads.submit(self._asked, case) if self._threads else None
            yield _Trial(number, case, key, answer)

    def _asked(self, case: Case) -> object:
        is_interesting = self._idle.get()
        try:
            return _answer(is_interesting, case)
        finally:
            self._idle.put(is_interesting)

    def _is_taken(self, trial: _Trial, what: str) -> bool:
        if trial.key is not None:
            self._known.add(trial.key)
        self.tried += 1
        found = trial.answer.result() if trial.answer else _answer(self._only, trial.case)
        if not found:
            return False
        self.best = trial.case
        if self._limits.taken is not None:
            self._limits.taken(found)
        if self._limits.progress is not None:
            self._limits.progress(what, trial.case.module, self.tried)
        return True


def _answer(is_interesting: IsInteresting, case: Case) -> object:
    try:
        hlo.verify(case.module)
        return is_interesting(case.module, case.arrays)
    except Error:
        return False


def _key(case: Case) -> bytes | None:
    if case.module.instruction_count > _KNOWN_UP_TO:
        return None
    digest = hashlib.sha256(hlo.format(case.module).encode())
    for array in arrays_of(case.arrays):
        digest.update(str((array.dtype, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()
