"""Measure what a function takes, for tests of the order of growth."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType


def python_calls(function: Callable[[], object]) -> int:
    """Count the Python functions that are called: the same number on every machine."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def least_seconds(function: Callable[[], object], enough: float) -> float:
    """Return the least processor time of up to five calls, fewer once one takes ``enough`` at most.

    It is for what regular expressions take, which no count shows. A single call may meet a
    collection of garbage, or a busy machine.
    """
    least = float("inf")
    for _ in range(5):
        start = time.process_time()
        function()
        least = min(least, time.process_time() - start)
        if least <= enough:
            break
    return least
