"""Defer Ctrl-C during a client's call until the user's program continues.

Python raises KeyboardInterrupt between any two of its instructions, which may belong to a function
that C++ calls and that must not fail. So the first Ctrl-C is held back until the call ends; a
second one makes it fail with an error, in place of the first one.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable
from types import FrameType


class Interrupts:
    """A handler of SIGINT with two counters of shim.c, by address: how many calls are running, and
    whether an interrupt came meanwhile, which the library then raises in Python again."""

    def __init__(self, inside: int, interrupted: int) -> None:
        self._inside = ctypes.c_int.from_address(inside)
        self._interrupted = (ctypes.c_int * 1).from_address(interrupted)
        self._is_long = False

    def install(self) -> None:
        """Replace Python's default handler; any other handler, or another thread's, is left."""
        is_own = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if is_own and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self.handle)

    def during(self, long: Callable[[], None]) -> None:
        """Run a function that a second Ctrl-C interrupts; its program's callbacks may run nested
        calls.

        Ctrl-C reaches the main thread only, so calls in other threads are not covered.
        """
        if threading.current_thread() is not threading.main_thread():
            long()
            return
        before, self._is_long = self._is_long, True
        try:
            long()
        finally:
            self._is_long = before

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Hold the first interrupt back; raise KeyboardInterrupt at the second."""
        if self._inside.value:
            was_interrupted = self._interrupted[0]
            self._interrupted[0] = 1
            if not (self._is_long and was_interrupted):
                return
            # The program that this cancels is what both are for: the one held back would be raised
            # while the error of the program is handled, or while Python ends.
            self._is_long, self._interrupted[0] = False, 0
        signal.default_int_handler(number, frame)
