"""A campaign on this machine: independent processes, and what they have done so far."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from fuzz.campaign.chunk import Examined
from fuzz.campaign.directory import Corpus
from fuzz.campaign.finding import all_kept
from fuzz.campaign.plan import Plan
from fuzz.campaign.worker import work
from hlo.errors import Error

_LOOK = 1.0  # seconds between two looks at the directory
_MOST_DEATHS = 10  # of workers, which nothing should end, before the campaign ends


@dataclass(frozen=True, slots=True)
class Limits:
    """``chunks`` in all, ``seconds`` from now, ``reducing`` seconds for each finding."""

    chunks: int
    seconds: float
    reducing: float = 120.0


def campaign(directory: Path, plan: Plan, limits: Limits, workers: int) -> Iterator[Examined]:
    """What all chunks of the directory came to, again and again until the campaign ends. A worker
    that dies is replaced; its chunk is done by another. Error if they die again and again."""
    corpus, end = Corpus(directory, plan), time.time() + limits.seconds
    context = multiprocessing.get_context("spawn")

    def begun() -> BaseProcess:
        given = (directory, plan, range(limits.chunks), end, limits.reducing)
        process = context.Process(target=work, args=given)
        process.start()
        return process

    processes, deaths = [begun() for _ in range(workers)], 0
    try:
        while processes:
            time.sleep(_LOOK)
            dead = [process for process in processes if process.exitcode]
            deaths += len(dead)
            processes = [process for process in processes if process.exitcode is None]
            yield corpus.totals()
            if deaths >= _MOST_DEATHS:
                raise Error(f"{deaths} workers died; what is done is kept in {directory}")
            processes += [begun() for _ in dead]
    finally:
        for process in processes:
            process.terminate()
            process.join()


def findings(directory: Path, plan: Plan) -> list[dict[str, object]]:
    """Those of the directory."""
    return list(all_kept(Corpus(directory, plan).findings))
