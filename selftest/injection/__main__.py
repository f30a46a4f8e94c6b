"""Count how many plausible compiler bugs the verdict proves (mutation testing).

``python -m selftest.injection --most M --drawn N --seed S --minutes T`` plants bugs one at a time
in small models and in drawn programs, judges each as ``hlo check --against`` does with XLA's
budget, and prints a table by family, with ``--all`` each bug that some program hid. Exit status 1
if a legal result was called wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from fuzz.campaign.directory import Directory
from fuzz.campaign.subject import Chunk
from hlo_oracle import campaign_progress
from interp.envelope.verdict import OUTSIDE, UNDETERMINED
from selftest.injection.bug import LEGAL
from selftest.injection.campaign import (
    ALLOWED,
    CONTRADICTION,
    ENDLESS,
    MISSED,
    OUTCOMES,
    UNSEEN,
    Injections,
    tallied,
)
from selftest.injection.catalogue import BUGS

_MODEL_ARGUMENTS = 3  # of each model
_COLUMNS = (OUTSIDE, UNDETERMINED, MISSED, ALLOWED, ENDLESS, UNSEEN, CONTRADICTION)
assert set(_COLUMNS) == set(OUTCOMES)


def table(found: defaultdict[str, Counter[str]]) -> Iterator[str]:
    """Yield a row for each family, and one for all but what is legal. ``proven`` is the share of
    what is outside among what is outside, undetermined or missed."""
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


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m selftest.injection", description=__doc__)
    parser.add_argument("--most", type=int, default=5, help="effective injections of each bug")
    parser.add_argument("--drawn", type=int, default=0, help="programs drawn for each opcode")
    parser.add_argument("--rounds", type=int, default=1, help="times that these are drawn")
    parser.add_argument("--all", action="store_true", help="show each bug that is not proven")
    campaign_progress.add_options(parser)
    given = parser.parse_args(words)
    subject = Injections(given.seed, given.most, given.drawn)

    def rows(directory: Directory, total: Chunk) -> Iterator[str]:
        found = tallied(directory, directory.numbers(), given.most)
        yield from found.hidden if given.all else ()
        yield from table(found.counts)

    examples = subject.programs(given.rounds if given.drawn else _MODEL_ARGUMENTS)
    return campaign_progress.run(subject, examples, given, "programs", _line, table=rows)


def _line(total: Chunk) -> str:
    return ", ".join(f"{n:,} {name}" for name, n in total.counts.items() if name != "chunks")


if __name__ == "__main__":
    sys.exit(main())
