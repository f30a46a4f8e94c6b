"""Time programs queued on a GPU: batches between two synchronisations, by the wall clock.

Every compiler is timed in this way. A run takes what the GPU takes for it, or what the host takes
to start it if that is longer. Processes that measure at the same time wait for each other.
"""

from __future__ import annotations

import fcntl
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_BATCH = 0.01  # least seconds of a batch
_BATCHES = 12
_LONG = 0.3  # seconds of a batch, of which two suffice


def milliseconds(enqueue: Callable[[], object], wait: Callable[[], object]) -> float:
    """Measure the least time of a run; ``enqueue`` starts one, ``wait`` synchronises."""
    for _ in range(3):  # what is compiled, captured or cached by the first ones
        begin = time.perf_counter()
        enqueue()
        wait()
        if time.perf_counter() - begin > _LONG:
            break
    with _alone():
        return 1e3 * _seconds(enqueue, wait)


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other process of this user measures."""
    with (Path(tempfile.gettempdir()) / "hlo_oracle_gpu_clock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _seconds(enqueue: Callable[[], object], wait: Callable[[], object]) -> float:
    runs, least, left = 1, float("inf"), _BATCHES
    while left:
        begin = time.perf_counter()
        for _ in range(runs):
            enqueue()
        wait()
        taken = time.perf_counter() - begin
        if taken > _LONG:
            left = min(left, 2)
        if taken < _BATCH:
            runs = max(2 * runs, min(int(runs * _BATCH / taken), 64 * runs))
            continue
        least, left = min(least, taken / runs), left - 1
    return least
