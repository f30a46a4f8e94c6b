"""Limit the time of a block: drawn programs may run long, and planted bugs may never end."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from fuzz.worker_pool.processor_time import WAITS

_AGAIN = 0.1  # seconds between alarms, until one is answered


class TooLongError(BaseException):
    """Raised at the limit; a BaseException, so that no handler on the way swallows it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooLongError after so many seconds, by the clock and of this process on its processors,
    or ``WAITS`` times as long by the clock. Main thread only (SIGALRM); not nestable. Without the
    timers of Unix there is no limit."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    begin, latest = time.process_time(), time.monotonic() + WAITS * seconds

    def alarm(number: int, frame: FrameType | None) -> None:
        """Raise if the process has had its time, else set the next alarm: a repeating one, as an
        alarm between this function and a system call is not seen before that returns."""
        left = min(begin + seconds - time.process_time(), latest - time.monotonic())
        if left <= 0:
            raise TooLongError
        signal.setitimer(signal.ITIMER_REAL, left, _AGAIN)

    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        # None is a handler that was not set from Python, which cannot be set again from here.
        signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)
