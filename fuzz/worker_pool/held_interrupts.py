"""Hold Ctrl-C back from processes while they start.

It reaches each process of the terminal, and one that imports its modules would print where it was.
Whoever started them gets it, too, and ends them.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker

# A module that accepts them when it is imported: the one thing that a fork server does for others.
ACCEPTING = "fuzz.worker_pool.accepted_interrupts"


@contextmanager
def held() -> Iterator[None]:
    """Block SIGINT in this thread, and in the processes that it starts in a block: these call
    :func:`accept` when they are ready. Here it is delivered at the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def accept() -> None:
    """Drop a SIGINT that came since the process was started, and unblock later ones."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.SIG_DFL if handler is None else handler)


def start_fork_server() -> None:
    """Start the fork server of this process, if it does not run; what it preloads ends with
    :data:`ACCEPTING`."""
    resource_tracker.ensure_running()  # which unblocks SIGINT when it starts
    with held():
        forkserver.ensure_running()
