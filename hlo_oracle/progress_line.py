"""Show on standard error what is being done, for how long, and about how long it will still
take."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hlo_oracle.terminal import one_line

_EVERY = {"auto": 0.5, "plain": 10.0}  # seconds between two texts of a phase


class ProgressLine:
    """A status line. On a terminal it is rewritten in place; in mode ``plain`` there is a line for
    each phase and one every ten seconds.

    ``mode`` is ``auto`` (nothing unless on a terminal), ``plain`` or ``none``. On a terminal
    nothing is shown in the first ``after`` seconds.
    """

    def __init__(self, mode: str = "auto", after: float = 0.0) -> None:
        # Where what is run in a phase redirects the stream, this goes where it went before.
        self._stream = sys.stderr
        self._rewrites = mode == "auto" and self._stream.isatty()
        self.is_shown = self._rewrites or mode == "plain"
        self._first = time.monotonic() + (after if self._rewrites else 0.0)
        self._every = _EVERY.get(mode, 0.0)
        self._lock = threading.Lock()
        self._begin = self._last = 0.0
        self._text, self._share = "", 0.0

    @contextmanager
    def phase(self, text: str) -> Iterator[None]:
        """Show a phase, and the time it has taken, until the block ends."""
        if not self.is_shown:
            yield
            return
        self._begin, self._last, ended = time.monotonic(), 0.0, threading.Event()
        self.show(text)

        def go_on() -> None:
            while not ended.wait(self._every):
                self._write()

        ticking = threading.Thread(target=go_on, daemon=True)
        ticking.start()
        try:
            yield
        finally:
            ended.set()
            ticking.join()
            self.clear()

    def show(self, text: str, share: float = 0.0) -> None:
        """Show the state of the phase as text, and the time left, if the share that is done is
        known."""
        if not self.is_shown:
            return
        self._text, self._share = text, share
        if time.monotonic() - self._last >= self._every or not self._last:
            self._write()

    def _write(self) -> None:
        if time.monotonic() < self._first:
            return
        with self._lock:
            self._last = time.monotonic()
            text = one_line(f"{self._text}{times(self._last - self._begin, self._share)}")
            self._stream.write(f"\r\x1b[K{text}" if self._rewrites else f"hlo: {text}\n")
            self._stream.flush()

    def clear(self) -> None:
        """Erase the line from a terminal before something else is printed."""
        if self._rewrites and self._last:
            with self._lock:
                self._stream.write("\r\x1b[K")
                self._stream.flush()


def times(gone: float, share: float) -> str:
    """Format the time elapsed, and the time left if a share is done."""
    said = f", {length(gone)}" if gone >= 1 else ""
    return f"{said}, about {length(gone / share - gone)} left" if 0 < share <= 1 else said


def length(seconds: float) -> str:
    """Format a duration."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def progress_line(options: argparse.Namespace) -> ProgressLine:
    """Make the line that --progress and --quiet ask for; none with --json, unless it is asked
    for."""
    if options.quiet or (options.json and options.progress == "auto"):
        return ProgressLine("none")
    return ProgressLine(options.progress)
