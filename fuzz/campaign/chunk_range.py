"""Work on a range of a campaign's chunks in this process, as a task of a cluster.

A cluster's worker must not have children, so it starts ``python -m fuzz.campaign.chunk_range``,
which reads from stdin, pickled, a directory, a subject, the numbers of its chunks, and the seconds
for the reduction of each finding.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterable
from pathlib import Path

from fuzz.campaign import worker
from fuzz.campaign.subject import Subject


def work(path: Path, subject: Subject, numbers: Iterable[int], reducing: float) -> None:
    """Finish those of the chunks that no other process has claimed."""
    with worker.chunk_worker(path, subject, reducing) as work:
        for number in numbers:
            work(number)


if __name__ == "__main__":
    work(*pickle.load(sys.stdin.buffer))
