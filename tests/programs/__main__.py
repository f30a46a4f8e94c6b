"""Judge XLA's results of functions as users of JAX write them, by family.

    cd tests && python -m programs [--only WORDS] [--workers N] [--state DIR] [--json]

traces each function of this folder (``family.name``) with JAX, draws its arguments from
``--seed``, and judges what XLA:CPU gives as ``hlo check --against xla`` does. Prints a table by
family: functions, elements of each verdict, and functions that have some. It is a campaign
(fuzz/campaign): with a directory a run goes on where the last one ended, and a function that is
outside is there, reduced, unless programs/known.py has it as a defect of XLA. Exit status 1 if any
other is.

``--compilers`` runs each function by the compilers of :mod:`selftest.soundness_of_compilers`
instead, which follow no budget. Exit status 1 if two families of them agree on what is outside.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fuzz.campaign.directory import Directory
from fuzz.campaign.subject import Chunk
from hlo_oracle import campaign_progress
from hlo_oracle.terminal import printable
from interp.envelope.verdict import EQUAL, KINDS, OUTSIDE, UNDETERMINED, WITHIN
from programs.by_compilers import FunctionsByCompilers
from programs.campaign import CRASHED, REFUSED, TOO_LONG, Functions
from programs.table import FAMILIES, all_functions
from selftest.soundness_of_compilers import status

_ORDER = (EQUAL, WITHIN, UNDETERMINED, OUTSIDE)
_NO_VERDICT = (CRASHED, REFUSED, TOO_LONG)
assert set(_ORDER) == set(KINDS)


def chosen(words: str) -> tuple[str, ...]:
    """The names that have all the words."""
    return tuple(n for n in all_functions() if all(word in n for word in words.lower().split()))


def table(found: Mapping[str, Counter[str]]) -> Iterator[str]:
    """A row for each family, and one for all."""
    heads = (*_ORDER, "undetermined of all", *(f"functions {kind}" for kind in _ORDER[1:]))
    yield f"| | functions | {' | '.join(heads)} | no verdict |"
    yield "|:--|" + "--:|" * (len(heads) + 2)
    for family in FAMILIES:
        names = [name for name in found if name.startswith(f"{family}.")]
        if names:
            yield _row(family.replace("_", " "), [found[name] for name in names])
    yield _row("all", list(found.values()))


def _row(title: str, counts: list[Counter[str]]) -> str:
    total: Counter[str] = sum(counts, Counter())
    elements = [total[kind] for kind in _ORDER]
    share = f"{total[UNDETERMINED] / max(sum(elements), 1):.2%}"
    having = [sum(one[kind] > 0 for one in counts) for kind in _ORDER[1:]]
    none = sum(total[kind] for kind in _NO_VERDICT)
    cells = (len(counts), *elements, share, *having, none)
    return f"| {title} | {' | '.join(f'{x:,}' if isinstance(x, int) else x for x in cells)} |"


def by_name(names: Sequence[str], total: Chunk) -> dict[str, Counter[str]]:
    """The counts of the functions that are done."""
    return {name: total.tally(name) for name in names if total.tally(name)}


def notes(names: Sequence[str], total: Chunk) -> Iterator[str]:
    """The evidence of each function that is not all equal or within."""
    for name in names:
        counts = total.tally(name)
        if any(counts[kind] for kind in (UNDETERMINED, OUTSIDE, *_NO_VERDICT)):
            yield f"{name}: " + ", ".join(f"{n} {kind}" for kind, n in counts.items() if n)
            yield from (f"    {line}" for line in printable(total.notes.get(name, "")).splitlines())


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m programs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="WORDS", help="functions named so")
    parser.add_argument("--seconds", type=float, default=120.0, help="for a function, at most")
    parser.add_argument("--floats", default="f32", metavar="TYPE", help="for arguments of f32")
    parser.add_argument("--scale", type=float, default=1.0, help="a factor of float arguments")
    parser.add_argument("--compilers", action="store_true", help="by many compilers, not by XLA")
    campaign_progress.add_options(parser)
    given = parser.parse_args(words)
    if given.compilers:
        names = chosen(given.only)
        many = FunctionsByCompilers(names, given.seed, given.seconds, given.floats, given.scale)
        return status(many, len(names), given, "functions")
    subject = Functions(chosen(given.only), given.seed, given.seconds, given.floats, given.scale)

    def rows(directory: Directory, total: Chunk) -> Iterator[str]:
        yield from notes(subject.names, total)
        yield from table(by_name(subject.names, total))

    def facts(total: Chunk) -> Mapping[str, Any]:
        return {"functions": by_name(subject.names, total), "notes": total.notes}

    count = len(subject.names)
    return campaign_progress.run(subject, count, given, "functions", _line, table=rows, facts=facts)


def _line(total: Chunk) -> str:
    return ", ".join(f"{n:,} {name}" for name, n in total.counts.items() if name != "chunks")


if __name__ == "__main__":
    sys.exit(main())
