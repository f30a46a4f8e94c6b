"""Run cases in a pool of workers, in an order drawn from their names, with limits of time."""

from __future__ import annotations

import argparse
import json
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from fuzz.worker_pool import Death, WorkerPool
from fuzz.worker_pool.process import Opener
from hlo.errors import Error
from hlo_oracle import option_types
from hlo_oracle.progress_line import ProgressLine
from selftest.scoring.outcomes import FAILED, PASSED, Journal, Outcome

Name = tuple[str, str]  # of a case: its group and its own
#: Describes the outcomes so far on one page, or as data.
Page = Callable[[Sequence[Outcome]], str]


def score_parser(name: str, description: str, mode: str) -> argparse.ArgumentParser:
    """Make the parser of a score with the options that all have; ``mode`` says of what --mode
    is."""
    parser = argparse.ArgumentParser(
        prog=f"python -m selftest.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--mode", choices=("fast", "exact", "interp"), default="fast", help=mode)
    whole = partial(option_types.whole, 1)
    parser.add_argument("--only", default="", metavar="TEXT", help="groups whose names have it")
    parser.add_argument("--sample", type=whole(1 << 20, "a number"), default=1, metavar="N")
    parser.add_argument("--seed", type=option_types.seed, default=0, help="which one of N")
    parser.add_argument("--minutes", type=option_types.minutes, default=float("inf"))
    parser.add_argument("--seconds", type=option_types.duration, default=120.0, help="for a case")
    parser.add_argument("--workers", type=whole(1024, "a number of processes"), default=1)
    parser.add_argument("--state", type=Path, metavar="FILE", help="outcomes, to go on with")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page of evidence")
    return parser


def run(
    given: argparse.Namespace, journal: Journal, openers: Mapping[str, Opener[Any]]
) -> list[Outcome]:
    """Run the cases that the journal lacks in each setting; return all that it has then.

    ``openers`` are those of the settings' workers. A worker without arguments lists the names of
    the cases, as these may be a matter of the setting; with a name it runs that case. A case that
    ends its worker has failed. All settings have equal shares of ``--minutes``.
    """
    begun, shown = time.monotonic(), ProgressLine()
    with shown.phase("beginning"):
        for setting, minutes in shares(list(openers), given.minutes):
            end = begun + 60 * minutes
            for outcome in _ran(given, journal, setting, openers[setting], end):
                journal.add(outcome)
                shown.show(_line(journal), 0.0)
    return list(journal.outcomes.values())


def shares(settings: Sequence[str], minutes: float) -> list[tuple[str, float]]:
    """Return the parts of a run: settings, and the latest end of each. All have equal shares of
    the time, so that a run which ends early is a sample of each."""
    count = len(settings)
    return [(one, minutes * part / count) for part, one in enumerate(settings, 1)]


def _ran(
    given: argparse.Namespace, journal: Journal, setting: str, opener: Opener[Any], end: float
) -> Iterator[Outcome]:
    with WorkerPool(opener, workers=given.workers, seconds=given.seconds, memory=None) as pool:
        listed = pool()
        if isinstance(listed, Death):
            raise Error(f"the cases cannot be listed: {listed}")
        names: list[Name] = listed.value
        journal.known[setting] = len(names)
        found = chosen(names, given.only, given.sample, given.seed)
        left = [name for name in found if (*name, setting) not in journal.outcomes]
        asked = (name for name in left if time.monotonic() < end)
        for number, outcome in pool.unordered(asked):
            if isinstance(outcome, Death):
                yield Outcome(*left[number], setting, FAILED, str(outcome))
            else:
                yield outcome.value


def chosen(names: Sequence[Name], only: str, sample: int, seed: int) -> list[Name]:
    """Choose one in ``sample`` cases of each group, at least one; return them in the order to run
    them in."""
    groups: defaultdict[str, list[Name]] = defaultdict(list)
    for name in sorted(names, key=lambda name: zlib.crc32(repr(name).encode())):
        if only in name[0]:
            groups[name[0]].append(name)
    found = [one for of in groups.values() for one in of[seed % min(sample, len(of)) :: sample]]
    return sorted(found, key=lambda name: zlib.crc32(name[1].encode()))


def _line(journal: Journal) -> str:
    counts = Counter(one.status for one in journal.outcomes.values())
    return f"{counts.total():,} run, {counts[PASSED]:,} passed, {counts[FAILED]} failed"


def described(given: argparse.Namespace, journal: Journal, score: str, what: str) -> str:
    """Describe a run: its options, what it was of, and how many of all cases were run."""
    part = f" --sample {given.sample} --seed {given.seed}" if given.sample > 1 else ""
    cases = f"{len(journal.outcomes):,} of {sum(journal.known.values()):,} cases"
    command = f"`python -m selftest.{score} --mode {journal.mode}{part}`"
    return f"{command}: {what}; {cases}."


def report(
    given: argparse.Namespace, outcomes: Sequence[Outcome], page: str, rows: Sequence[Any]
) -> int:
    """Print and write the page, or print the rows and outcomes as JSON, as the options say. Return
    the exit status: 1 if anything failed."""
    if given.write is not None:
        given.write.write_text(page)
    if given.json:
        told = {"rows": [*map(asdict, rows)], "cases": [*map(asdict, outcomes)]}
        print(json.dumps(told))
    else:
        print(page, end="")
    return int(any(one.status == FAILED for one in outcomes))
