"""The smallest program so far, and attempts at smaller ones."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import hlo
from hlo.errors import Error
from hlo.module import Module

Value = Any  # an array, or a tuple of values

IsInteresting = Callable[[Module, tuple[Value, ...]], bool]
Progress = Callable[[str, Module, int], None]

_KNOWN_UP_TO = 2000  # instructions: longer texts are not written to see whether they were tried


@dataclass(frozen=True, slots=True)
class Case:
    """A program and its arguments."""

    module: Module
    arrays: tuple[Value, ...]


class OutOfTime(Exception):
    """The search ends with the best case so far."""


class Search:
    """``best`` is valid and interesting; it becomes smaller by :meth:`attempt`."""

    def __init__(
        self, case: Case, is_interesting: IsInteresting, seconds: float, progress: Progress | None
    ) -> None:
        self.best = case
        self.tried = 0
        self._is_interesting, self._progress = is_interesting, progress
        self._end = time.monotonic() + seconds
        self._known: set[bytes] = set()

    def attempt(self, case: Case, what: str = "") -> bool:
        """Take a case that is valid and still interesting."""
        if time.monotonic() > self._end:
            raise OutOfTime
        if not self._is_new(case):
            return False
        self.tried += 1
        try:
            hlo.verify(case.module)
            if not self._is_interesting(case.module, case.arrays):
                return False
        except Error:
            return False
        self.best = case
        if self._progress is not None:
            self._progress(what, case.module, self.tried)
        return True

    def exhaust(self, step: Callable[[Case], Iterator[Case]], what: str) -> bool:
        """Take what a step proposes until it proposes nothing that is still interesting."""
        changed = again = False
        while True:
            again = any(self.attempt(case, what) for case in step(self.best))
            if not again:
                return changed
            changed = True

    def _is_new(self, case: Case) -> bool:
        if case.module.instruction_count > _KNOWN_UP_TO:
            return case.arrays is not self.best.arrays or case.module != self.best.module
        digest = hashlib.sha256(hlo.format(case.module).encode())
        for array in flat(case.arrays):
            digest.update(str((array.dtype, array.shape)).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        known = digest.digest() in self._known
        self._known.add(digest.digest())
        return not known


def flat(value: Value) -> Iterator[Any]:
    """The arrays of a value, in order."""
    if isinstance(value, tuple):
        for part in value:
            yield from flat(part)
    elif value is not None:
        yield value
