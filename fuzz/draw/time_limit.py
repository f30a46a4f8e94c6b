"""A limit of time for what may take too long: a drawn program, or one with a bug."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooLongError(BaseException):
    """Not an Exception: nothing on the way may swallow it."""


def _alarm(number: int, frame: FrameType | None) -> None:
    raise TooLongError


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """TooLongError after so many seconds; only in the main thread, and not nested."""
    signal.signal(signal.SIGALRM, _alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
