"""How many of many plausible bugs the verdict proves: put in one at a time, in small models and in
drawn programs, each judged as ``hlo check --against`` does with XLA's budget.

``python -m selftest.injection --most M --drawn N --seed S --minutes T`` prints a table by family,
and with ``--all`` each bug that some program hid. Exit status 1 if a legal result was called wrong.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from interp.envelope.budget import XLA_CPU
from interp.envelope.verdict import OUTSIDE, UNDETERMINED
from selftest.injection.bug import LEGAL
from selftest.injection.campaign import (
    ALLOWED,
    CONTRADICTION,
    ENDLESS,
    MISSED,
    OUTCOMES,
    UNSEEN,
    Injection,
    campaign,
    stream,
)
from selftest.injection.cases import Case, programs
from selftest.injection.catalogue import BUGS

_COLUMNS = (OUTSIDE, UNDETERMINED, MISSED, ALLOWED, ENDLESS, UNSEEN, CONTRADICTION)
_HIDDEN = (UNDETERMINED, MISSED, CONTRADICTION)
assert set(_COLUMNS) == set(OUTCOMES)


def table(found: dict[str, Counter[str]]) -> Iterator[str]:
    """A row for each family, and one for all but what is legal. ``proven`` is the share of what is
    outside among what is outside, undetermined or missed."""
    yield "| | bugs | " + " | ".join(_COLUMNS) + " | proven |"
    yield "|:--|" + "--:|" * (len(_COLUMNS) + 2)
    families = dict.fromkeys(bug.family for bug in BUGS)
    total: Counter[str] = Counter()
    for family in families:
        names = [bug.name for bug in BUGS if bug.family == family and found[bug.name].total()]
        counts: Counter[str] = sum((found[name] for name in names), Counter())
        if family != LEGAL:
            total += counts
        yield _row(family, len(names), counts)
    number = sum(found[bug.name].total() > 0 and not bug.is_legal for bug in BUGS)
    yield _row("all bugs", number, total)


def _row(name: str, bugs: int, counts: Counter[str]) -> str:
    judged = counts[OUTSIDE] + counts[UNDETERMINED] + counts[MISSED]
    share = f"{counts[OUTSIDE] / judged:.1%}" if judged else ""
    cells = [str(counts[column]) for column in _COLUMNS]
    return f"| {name} | {bugs} | {' | '.join(cells)} | {share} |"


def _described(injection: Injection) -> str:
    site = injection.site.instruction
    openings = ", ".join(dict.fromkeys(o.opcode for o in injection.case.judge.enclosed.openings))
    opened = f"; opened by {openings}" if openings else ""
    place = f"{injection.case.name}: %{site.name} = {site.shape} {site.opcode}"
    return f"{injection.outcome}: {injection.bug.name}; {place}{opened}"


def _until(deadline: float, cases: Iterable[Case]) -> Iterator[Case]:
    return itertools.takewhile(lambda _: time.monotonic() < deadline, cases)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m selftest.injection", description=__doc__)
    parser.add_argument("--most", type=int, default=5, help="effective injections of each bug")
    parser.add_argument("--drawn", type=int, default=0, help="programs drawn for each opcode")
    parser.add_argument("--rounds", type=int, default=1, help="times that these are drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--all", action="store_true", help="show each bug that is not proven")
    given = parser.parse_args(words)
    deadline = time.monotonic() + 60 * given.minutes
    cases = (
        stream(BUGS, given.rounds, given.drawn, given.seed) if given.drawn else models(given.seed)
    )
    wrong = 0

    def note(injection: Injection) -> None:
        nonlocal wrong
        wrong += injection.outcome == CONTRADICTION
        if given.all and injection.outcome in _HIDDEN:
            print(_described(injection), flush=True)

    tally = campaign(BUGS, _until(deadline, cases), given.most, given.seed, note)
    print(*table(tally.counts), sep="\n")
    return 1 if wrong else 0


def models(seed: int, times: int = 3) -> Iterator[Case]:
    """The models with different arguments."""
    return itertools.chain.from_iterable(programs(XLA_CPU, seed + n) for n in range(times))


if __name__ == "__main__":
    sys.exit(main())
