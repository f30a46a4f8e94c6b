"""Call a library that may take long, so that Ctrl-C and --timeout end a command in the middle."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def called(work: Callable[[], T]) -> T:
    """Return what ``work`` returns, or raise what it raises.

    Python handles signals between its own instructions in the main thread, which compiled C never
    comes back to while it runs. So another thread calls it, and the main thread waits: what a
    handler raises there is raised at once, and the call is left to the end of the process.
    """
    context = contextvars.copy_context()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(context.run(work))
        except BaseException as error:  # raised again in the thread that waits
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
