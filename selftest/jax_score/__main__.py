"""``python -m selftest.jax_score``: how many of JAX's functions give what XLA:CPU gives.

JAX's harnesses of its primitives, its records of operations of lax, and tables of calls of its
public functions run on the plugin and on XLA:CPU, and are compared as JAX's tests compare. A case
that crashes or hangs is a row like others. Cases are run in an order drawn from their names, so
that a run that ends early is a sample of all, x64 on and off having half of ``--minutes`` each;
``--sample N`` takes one of N in each group. With ``--state FILE`` a run goes on where the last one
ended. On a machine with other work raise ``--seconds``, which are no processor time. Exit status: 1
if anything failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from fuzz.worker_pool import Death, WorkerPool
from hlo.errors import Error
from hlo_oracle import option_types
from hlo_oracle.progress_line import ProgressLine
from hlo_oracle.required_packages import require_package
from selftest.jax_score.examiner import case_runner
from selftest.jax_score.outcomes import FAILED, Journal, Outcome
from selftest.jax_score.table import markdown, rows

_MODES = ("fast", "exact", "interp")

Name = tuple[str, str]  # of a case: its group and its own


def main(words: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(words)
    require_package("to compare as JAX's tests do", "absl", "score")
    journal, shown = Journal(given.state, given.mode), ProgressLine()
    begun = time.monotonic()
    with shown.phase("beginning"):
        for is_wide, minutes in shares(given.x64, given.minutes):
            for outcome in _ran(given, journal, is_wide, begun + 60 * minutes):
                journal.add(outcome)
                shown.show(_line(journal), 0.0)
    outcomes = list(journal.outcomes.values())
    if given.write is not None:
        given.write.write_text(markdown(outcomes, _how(given, journal)))
    if given.json:
        told = {"rows": [*map(asdict, rows(outcomes))], "cases": [*map(asdict, outcomes)]}
        print(json.dumps(told))
    else:
        print(markdown(outcomes, _how(given, journal)), end="")
    return int(any(one.status == FAILED for one in outcomes))


def shares(x64: str, minutes: float) -> list[tuple[bool, float]]:
    """Return the parts of a run: whether x64 is on, and the latest end. Both have equal shares of
    the time, so that a run which ends early is a sample of each."""
    parts = {"both": (True, False), "on": (True,), "off": (False,)}[x64]
    return [(is_wide, minutes * part / len(parts)) for part, is_wide in enumerate(parts, 1)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.jax_score",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole = partial(option_types.whole, 1)
    parser.add_argument("--mode", choices=_MODES, default="fast", help="of the plugin")
    parser.add_argument("--x64", choices=("on", "off", "both"), default="both")
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


def _ran(given: argparse.Namespace, journal: Journal, x64: bool, end: float) -> Iterator[Outcome]:
    """Run the cases that the journal lacks, and yield their outcomes. The workers list the cases,
    as JAX's types are a setting of the process."""
    begin = partial(case_runner, given.mode, x64)
    with WorkerPool(begin, workers=given.workers, seconds=given.seconds, memory=None) as pool:
        listed = pool()
        if isinstance(listed, Death):
            raise Error(f"the cases cannot be listed: {listed}")
        names: list[Name] = listed.value
        journal.known[x64] = len(names)
        chosen = _chosen(names, given.only, given.sample, given.seed)
        numbers = [n for n in chosen if (*names[n], x64) not in journal.outcomes]
        asked = ((n,) for n in numbers if time.monotonic() < end)
        for number, outcome in pool.unordered(asked):
            group, name = names[numbers[number]]
            if isinstance(outcome, Death):
                yield Outcome(group, name, x64, FAILED, str(outcome))
            else:
                yield outcome.value


def _chosen(names: Sequence[Name], only: str, sample: int, seed: int) -> list[int]:
    """Choose one in ``sample`` cases of each group; return their numbers in the order to run them
    in."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for number in sorted(range(len(names)), key=lambda n: zlib.crc32(repr(names[n]).encode())):
        if only in names[number][0]:
            groups[names[number][0]].append(number)
    found = [n for of in groups.values() for n in of[seed % min(sample, len(of)) :: sample]]
    return sorted(found, key=lambda n: zlib.crc32(names[n][1].encode()))


def _line(journal: Journal) -> str:
    total = rows(journal.outcomes.values())[-1]
    return f"{total.run:,} run, {total.passed:,} passed, {total.failed} failed"


def _how(given: argparse.Namespace, journal: Journal) -> str:
    """Describe the run: its options, and how many of all cases were run."""
    part = f" --sample {given.sample} --seed {given.seed}" if given.sample > 1 else ""
    cases = f"{len(journal.outcomes):,} of {sum(journal.known.values()):,} cases"
    return (
        f"`python -m selftest.jax_score --mode {given.mode}{part}`: what JAX's functions give"
        f" on the plugin, beside XLA:CPU in the same process; {cases}."
    )


if __name__ == "__main__":
    sys.exit(main())
