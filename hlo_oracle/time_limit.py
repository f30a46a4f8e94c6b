"""Limit the time of a command."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hlo.errors import ArgumentError, Error

_GRACE = 2.0  # seconds until the process ends even while it is in a library


class TimedOut(Error):
    """Raised when a command exceeds its time limit."""


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Raise TimedOut in the main thread after ``seconds``; if that stays in a library for two more
    seconds, end the process with status 2. Needs Unix timers."""
    if seconds is None or seconds + _GRACE > threading.TIMEOUT_MAX:  # 292 years
        yield
        return
    if not hasattr(signal, "setitimer"):
        raise ArgumentError("--timeout needs the timers of Unix, which this system does not have")
    message = f"not finished after {seconds:g} s (--timeout)"

    def end(*of_signal: object) -> None:
        raise TimedOut(message)

    ended = threading.Event()

    def kill() -> None:
        # The signal handler runs only when the main thread is back in Python: from a library that
        # does not return, only ending the process helps.
        if ended.wait(seconds + _GRACE):
            return
        sys.stderr.write(f"hlo: {message}\n")
        sys.stderr.flush()
        os._exit(2)

    before = signal.signal(signal.SIGALRM, end)
    # The signal may come as soon as the timer is set, and must not leave the thread waiting: it
    # would end the process of a caller that is long done with this.
    try:
        threading.Thread(target=kill, daemon=True).start()
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        ended.set()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
