"""Ctrl-C while a client's call is on its way: hold it back until the program of the user goes on.

Python raises KeyboardInterrupt at the first instruction of Python that it comes to, which would be
one of a function that C++ calls and that must not fail. So the first Ctrl-C waits for the call to
end; a second one ends it with an error.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable
from types import FrameType


class Interrupts:
    """Handle SIGINT by the counters of shim.c at two addresses: how many functions run, and whether
    an interrupt came in the meantime, which the library then gives to Python again."""

    def __init__(self, inside: int, interrupted: int) -> None:
        self._inside = ctypes.c_int.from_address(inside)
        self._interrupted = (ctypes.c_int * 1).from_address(interrupted)
        self._is_long = False

    def install(self) -> None:
        """Take the place of Python's own handler; another one, and one of another thread, stays."""
        is_own = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if is_own and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self.handle)

    def during(self, long: Callable[[], None]) -> None:
        """Run a function that a second Ctrl-C ends; a callback of its program may run others.

        Ctrl-C reaches the main thread alone, so what others run is not looked at."""
        if threading.current_thread() is not threading.main_thread():
            long()
            return
        before, self._is_long = self._is_long, True
        try:
            long()
        finally:
            self._is_long = before

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Hold an interrupt back, or raise it."""
        if self._inside.value:
            was_interrupted = self._interrupted[0]
            self._interrupted[0] = 1
            if not (self._is_long and was_interrupted):
                return
            self._is_long = False
        signal.default_int_handler(number, frame)
