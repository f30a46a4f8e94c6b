"""Call a library function that may take long, such that Ctrl-C and --timeout can interrupt it."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def called(work: Callable[[], T]) -> T:
    """Call ``work`` in another thread; return its result, or raise its exception.

    Python handles signals between its own instructions in the main thread, which compiled C never
    comes back to while it runs. So the main thread only waits: an exception raised by a signal
    handler takes effect at once, and the other thread is abandoned until the process ends.
    """
    context = contextvars.copy_context()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(context.run(work))
        except BaseException as error:  # raised again in the thread that waits
            errors.append(error)

    # A daemon, so that an abandoned call does not keep the process from ending.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
