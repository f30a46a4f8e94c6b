"""Run the units of a piece in parallel, in the order of their numbers, until there are no more."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from selftest.gpu.records import Records

# Runs the unit of a number: its rows, or one that has "done" where there is no such unit.
Unit = Callable[[int], Iterable[dict[str, Any]]]


def run_units(
    piece: str, unit: Unit, records: Records, workers: int, is_over: Callable[[], bool]
) -> bool:
    """Run the remaining units of a piece, ``workers`` at a time; return whether all are done.

    No unit begins once ``is_over`` returns True; running units finish. An exception of a unit is
    raised when the others have finished.
    """
    if records.is_done(piece):
        return True
    numbers = (number for number in itertools.count() if not records.has(piece, number))
    running: set[Future[list[dict[str, Any]]]] = set()
    has_ended = False
    with ThreadPoolExecutor(workers) as pool:
        while True:
            while len(running) < workers and not has_ended and not is_over():
                running.add(pool.submit(lambda number: list(unit(number)), next(numbers)))
            if not running:
                break
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for row in itertools.chain.from_iterable(one.result() for one in finished):
                # The unit behind the last one says that the piece is done; others may still be
                # running.
                if "done" in row:
                    has_ended = True
                else:
                    records.add(row)
    if has_ended:
        records.add({"piece": piece, "done": True})
    return has_ended
