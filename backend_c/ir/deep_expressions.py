"""Raise Python's recursion limit to the depth of a kernel's expressions.

A chain of operations that are fused is an expression as deep as it is long, up to
:data:`hlo.passes.fusion_decisions.MOST_OPERATIONS`; in computations that are called per element,
longer ones are cut (:class:`backend_c.lower.loops_in_elements.Chains`). Each operation takes a few
calls of Python to be written, and Python allows 1,000 in all, of which the caller has some.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# 16 calls for each of 512 operations: about 2 MB of stack, of 8.
_CALLS = 8192
_changing = threading.Lock()
_inside = 0  # how many threads are in `deep_expressions`, or the same one several times


@contextmanager
def deep_expressions() -> Iterator[None]:
    """Raise the recursion limit by ``_CALLS`` inside; also a decorator.

    The limit is one for all threads: the first of them raises it, the last lowers it.
    """
    global _inside
    with _changing:
        if not _inside:
            sys.setrecursionlimit(sys.getrecursionlimit() + _CALLS)
        _inside += 1
    try:
        yield
    finally:
        with _changing:
            _inside -= 1
            if not _inside:
                sys.setrecursionlimit(sys.getrecursionlimit() - _CALLS)
