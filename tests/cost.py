"""Measure what a function takes, for tests of the order of growth."""

from __future__ import annotations

import re
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


def cost(function: Callable[[], object], enough: float) -> float:
    """Return what a function takes, in units of :func:`_unit` on the same processor.

    It is for what regular expressions and NumPy take, which no count shows. Both are timed in turns
    on the processor's clock, and the least quotient of up to five counts (fewer once one is
    ``enough``): a slow or busy machine slows both, and a collection of garbage passes.
    """
    least = float("inf")
    for _ in range(5):
        unit, taken = _processor_time(_unit), _processor_time(function)
        least = min(least, taken / max(unit, _processor_time(_unit)))
        if least <= enough:
            break
    return least


_SCANNED = "a, b(c) {d} " * 1000


def _unit() -> int:
    """Scan a text of 12,000 characters, token by token: about two milliseconds."""
    return sum(token[0] in "([{" for token in re.finditer(r"\w+|[()\[\]{},]", _SCANNED))


def _processor_time(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start
