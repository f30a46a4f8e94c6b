"""Limit the time of a block, for drawn programs that run long and for planted bugs that never
end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooLongError(BaseException):
    """Raised when the limit is reached. No Exception, so that no handler on the way swallows it."""


def _alarm(number: int, frame: FrameType | None) -> None:
    raise TooLongError


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooLongError after so many seconds. Main thread only (SIGALRM); not nestable. Without
    the timers of Unix there is no limit."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.signal(signal.SIGALRM, _alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
