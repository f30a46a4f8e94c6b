"""Run a campaign on many machines by dask.distributed: each task is a range of chunks.

A task is a process of its own beside the cluster's worker, with a directory of its own, whose files
are returned; the ranges of a worker that dies are run again elsewhere. The examples of a chunk are
the same on every machine, so the findings do not depend on which one tested it. Machines agree on
the time, or those whose clock is slow end late.
"""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from distributed import Client, as_completed

from fuzz.campaign import chunk_range
from fuzz.campaign.directory import Directory, Totals
from fuzz.campaign.local import Limits
from fuzz.campaign.subject import Chunk, Subject
from hlo.errors import Error

# Chunks of a task: a process begins in seconds, and should have to do for longer; but what it does
# is lost if its worker dies, and each worker should have several.
_LEAST, _MOST = 4, 40
_AHEAD = 4  # tasks that wait for each thread of the cluster, so that none is idle
_AGAIN = 3  # times a range is run after its worker died

Files = dict[str, bytes]  # by path in the directory of a campaign


def run(path: Path, subject: Subject, limits: Limits, scheduler: str) -> Iterator[Chunk]:
    """Run a campaign on the cluster of a scheduler; yield the sum of all chunks after each
    range."""
    with Client(scheduler) as client:
        yield from _run(path, subject, limits, client)


def _run(path: Path, subject: Subject, limits: Limits, client: Client) -> Iterator[Chunk]:
    directory, until = Directory(path, subject.facts), time.time() + limits.seconds
    totals = Totals(directory)
    threads = max(1, sum(client.nthreads().values()))
    length = max(_LEAST, min(_MOST, limits.chunks // (_AHEAD * threads)))
    ranges = _ranges(directory, limits.chunks, length)

    def begun(numbers: range) -> Any:
        given = (subject, numbers, limits.reducing, until, directory.left(numbers))
        return client.submit(files_of, *given, pure=False, retries=_AGAIN)

    running = as_completed(list(map(begun, islice(ranges, _AHEAD * threads))))
    for future in running:
        directory.take(future.result())
        future.release()
        yield totals.read()
        following = next(ranges, None) if time.time() < until else None
        if following is not None:
            running.add(begun(following))
    yield totals.read()


def _ranges(directory: Directory, chunks: int, length: int) -> Iterator[range]:
    """Yield the ranges that have an unfinished chunk."""
    for first in range(0, chunks, length):
        numbers = range(first, min(first + length, chunks))
        if not all(map(directory.has, numbers)):
            yield numbers


def files_of(
    subject: Subject,
    numbers: range,
    reducing: float,
    until: float = math.inf,
    left: Files | None = None,
) -> Files:
    """Run a campaign of these chunks alone, which goes on with what is ``left`` of them; return its
    files."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for inner, content in (left or {}).items():
            (directory / inner).parent.mkdir(parents=True, exist_ok=True)
            (directory / inner).write_bytes(content)
        _run_apart(pickle.dumps((directory, subject, numbers, reducing, until)))
        found = [
            *(path for part in ("chunks", "parts") for path in (directory / part).glob("*.json")),
            *(directory / "findings").rglob("*"),
        ]
        return {str(p.relative_to(directory)): p.read_bytes() for p in found if p.is_file()}


def _run_apart(task: bytes) -> None:
    """Run a task of :mod:`fuzz.campaign.chunk_range` in a process that ends with this one; raise
    Error, with its last words, if it fails."""
    theirs, ours = os.pipe()
    command = [sys.executable, "-m", chunk_range.__name__, str(theirs)]
    try:
        done = subprocess.run(
            command, input=task, pass_fds=(theirs,), stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(theirs)
        os.close(ours)
    told = done.stderr.decode(errors="replace")
    print(told, end="", file=sys.stderr)
    if done.returncode:
        last = next((line for line in reversed(told.splitlines()) if line.strip()), "")
        raise Error(f"a range of chunks ended by {done.returncode}: {last}")
