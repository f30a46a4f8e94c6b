"""Work on a range of a campaign's chunks, as a task of a cluster.

A cluster's worker must not have children, so it starts ``python -m fuzz.campaign.chunk_range
PIPE``, which reads from stdin, pickled, a directory, a subject, the numbers of its chunks, and the
seconds for the reduction of each finding, and ends with the holder of the pipe's other end.
"""

from __future__ import annotations

import math
import pickle
import sys
from collections.abc import Iterable
from pathlib import Path

from fuzz.campaign import local
from fuzz.campaign.subject import Subject
from fuzz.worker_pool.process import end_with


def work(
    path: Path, subject: Subject, numbers: Iterable[int], reducing: float, workers: int = 0
) -> None:
    """Finish those of the chunks that no other process has claimed."""
    limits = local.Limits(0, math.inf, reducing)
    for _ in local.run(path, subject, limits, workers, numbers):
        pass


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    path, subject, numbers, reducing = pickle.load(sys.stdin.buffer)
    # In a worker of a pool: an example that ends its process is a finding here, too.
    work(path, subject, numbers, reducing, workers=1)
