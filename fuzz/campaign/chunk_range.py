"""Work on a range of a campaign's chunks, as a task of a cluster.

A cluster's worker must not have children, so it starts ``python -m fuzz.campaign.chunk_range
PIPE``, which reads from stdin, pickled, a directory, a subject, the numbers of its chunks, the
seconds for the reduction of each finding, and when to begin nothing more, by the clock of the wall;
and ends with the holder of the pipe's other end.
"""

from __future__ import annotations

import math
import pickle
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from fuzz.campaign import local
from fuzz.campaign.subject import Subject
from fuzz.worker_pool.process import end_with


def work(
    path: Path,
    subject: Subject,
    numbers: Iterable[int],
    reducing: float,
    until: float = math.inf,
    workers: int = 0,
) -> None:
    """Finish those of the chunks that no other process has claimed, or begin nothing more after a
    time."""
    limits = local.Limits(0, until - time.time(), reducing)
    for _ in local.run(path, subject, limits, workers, numbers):
        pass


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    path, subject, numbers, reducing, until = pickle.load(sys.stdin.buffer)
    # In a worker of a pool: an example that ends its process is a finding here, too.
    work(path, subject, numbers, reducing, until, workers=1)
