"""Tell which known bugs of XLA:CPU the findings of a campaign are, and which may be new.

``python -m selftest.known_findings DIR [--json]`` reads the findings of ``hlo fuzz --against xla
--corpus DIR`` and matches each to the bugs of docs/found (:mod:`selftest.bug_signatures`). It
prints how many findings are known, for each bug how many there are and the second of the first
(the time of its reduced program, less that of campaign.json), how many different bugs had been
found after 10, 20, … minutes, how many of the bugs found first there are, and the findings that
match no bug or several. A finding of several is counted for the one whose signature asks for most.
Flaky findings are counted apart: what damages memory has others fail. Exit status: 1 if a finding
that is not flaky matches no bug.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import hlo
from fuzz.campaign.findings import FILE
from hlo.errors import ArgumentError, Error
from selftest.bug_signatures import Failure, Signatures, expressions, read, shown_values

_STEP = 10  # minutes, or a multiple, between the columns of the table of different bugs
_COLUMNS = 12


@dataclass(frozen=True, slots=True)
class Known:
    """Describe a finding and the bugs it may be: those whose signature it matches, the most
    specific first, and those that are somewhere in its program."""

    path: Path
    seconds: float  # since the campaign began
    times: int
    is_flaky: bool
    failure: Failure
    bugs: tuple[str, ...]
    parts: tuple[str, ...]


def matched(directory: Path, signatures: Signatures) -> tuple[Known, ...]:
    """Match the findings of a campaign to bugs, in the order in which they were found."""
    plan = directory / "campaign.json"
    if not plan.exists():
        raise ArgumentError(f"{directory} has no {plan.name}: it is no campaign's")
    began = plan.stat().st_mtime
    found = (_known(path, began, signatures) for path in directory.glob(f"findings/*/{FILE}"))
    return tuple(sorted(found, key=lambda one: (one.seconds, one.path.name)))


def _known(path: Path, began: float, signatures: Signatures) -> Known:
    kept, reduced = json.loads(path.read_text()), path.with_name("reduced.hlo")
    facts = path.parent / "report" / "facts.json"
    failure = Failure(
        oracle=kept["oracle"],
        kind=kept["kind"],
        detail=kept["detail"],
        blamed=kept["blamed"],
        opcodes=frozenset(kept["opcodes"]),
        program=_program(reduced) if reduced.exists() else "",
        values=shown_values(json.loads(facts.read_text())) if facts.exists() else "",
    )
    # finding.json is written again whenever the finding is met again.
    written = (reduced if reduced.exists() else path).stat().st_mtime
    matching, parts = signatures.matching(failure), signatures.parts(failure)
    return Known(
        path.parent, written - began, kept["times"], kept["flaky"], failure, matching, parts
    )


def _program(path: Path) -> str:
    """Format a reduced program as nested expressions, or as it is if it cannot be read."""
    text = path.read_text()
    try:
        return expressions(hlo.parse(text))
    except Error:
        return text


@dataclass(frozen=True, slots=True)
class Bug:
    """Count the findings of a bug that are not flaky, and how often these were met."""

    name: str
    findings: int
    times: int
    seconds: float  # of the first


@dataclass(frozen=True, slots=True)
class Summary:
    """Sum up what the findings of a campaign are; ``bugs`` in the order in which they were found.

    ``by_minutes`` has, after 10, 20, … minutes, the numbers of findings and of different bugs."""

    found: tuple[Known, ...]
    bugs: tuple[Bug, ...]
    first: tuple[str, ...]
    by_minutes: tuple[tuple[int, int, int], ...]

    @property
    def lasting(self) -> tuple[Known, ...]:
        """Return the findings that are not flaky."""
        return tuple(one for one in self.found if not one.is_flaky)


def summary(found: Sequence[Known], first: Sequence[str]) -> Summary:
    """Sum up findings; ``first`` are the bugs that campaigns are measured by."""
    by_bug: dict[str, list[Known]] = {}
    for one in found:
        if one.bugs and not one.is_flaky:
            by_bug.setdefault(one.bugs[0], []).append(one)
    bugs = tuple(
        Bug(name, len(some), sum(one.times for one in some), some[0].seconds)
        for name, some in by_bug.items()
    )
    last = max((one.seconds for one in found), default=0.0) / 60  # minutes
    step = _STEP * max(1, ceil(last / _STEP / _COLUMNS))
    ends = range(step, step * max(1, ceil(last / step)) + 1, step)
    rows = tuple((end, _before(end, found), _before(end, bugs)) for end in ends)
    return Summary(tuple(found), bugs, tuple(n for n in first if n in by_bug), rows)


def _before(minutes: int, some: Sequence[Known | Bug]) -> int:
    return sum(one.seconds <= 60 * minutes for one in some)


def lines(of: Summary, signatures: Signatures) -> Iterator[str]:
    """Format a summary as text."""
    flaky, lasting = [one for one in of.found if one.is_flaky], of.lasting
    yield (
        f"{len(of.found)} findings in {of.found[-1].seconds / 60 if of.found else 0:.1f} minutes:"
        f" {sum(bool(one.bugs) for one in lasting)} are known bugs,"
        f" {sum(not one.bugs for one in lasting)} match none;"
        f" {len(flaky)} flaky, of which {sum(bool(one.bugs) for one in flaky)} match"
    )
    yield f"\n{'bug':<42}{'findings':>9}{'times met':>11}{'first, s':>10}"
    for bug in of.bugs:
        yield f"{bug.name:<42}{bug.findings:>9}{bug.times:>11}{bug.seconds:>10.0f}"
    for what, column in (("minutes", 0), ("findings", 1), ("different bugs", 2)):
        gap = "\n" if column == 0 else ""
        yield f"{gap}{what:<15}" + "".join(f"{row[column]:>7}" for row in of.by_minutes)
    yield f"\n{len(of.bugs)} different bugs of {len(signatures.bugs)}"
    missed = [name for name in signatures.first if name not in of.first]
    yield f"{len(of.first)} of the {len(signatures.first)} found first; not {', '.join(missed)}"
    for title, some in (
        ("match no bug", [one for one in lasting if not one.bugs]),
        ("match several bugs, and are counted for the first", [*filter(_is_several, lasting)]),
        ("are flaky", flaky),
    ):
        if some:
            yield f"\n{len(some)} findings {title}:"
            yield from (line for one in some for line in _told(one))


def _is_several(one: Known) -> bool:
    return len(one.bugs) > 1


def _told(one: Known) -> Iterator[str]:
    yield f"- {one.path}, {one.seconds:.0f} s"
    yield f"    {one.failure.oracle}: {one.failure.kind}; {one.failure.blamed}"
    yield f"    opcodes {', '.join(sorted(one.failure.opcodes)) or 'none'}"
    if one.bugs:
        yield f"    matches {', '.join(one.bugs)}"
    elif one.parts:
        yield f"    also meets {', '.join(one.parts)}"


def as_json(of: Summary) -> dict[str, Any]:
    """Format a summary as data for JSON."""
    return {
        "findings": [
            {
                "path": str(one.path),
                "seconds": round(one.seconds, 1),
                "times": one.times,
                "flaky": one.is_flaky,
                "oracle": one.failure.oracle,
                "kind": one.failure.kind,
                "blamed": one.failure.blamed,
                "opcodes": sorted(one.failure.opcodes),
                "bugs": list(one.bugs),
                "parts": list(one.parts),
            }
            for one in of.found
        ],
        "bugs": {
            bug.name: {
                "findings": bug.findings,
                "times": bug.times,
                "seconds": round(bug.seconds, 1),
            }
            for bug in of.bugs
        },
        "first": list(of.first),
        "minutes": [
            {"minutes": minutes, "findings": findings, "bugs": bugs}
            for minutes, findings, bugs in of.by_minutes
        ],
    }


def main(words: Sequence[str]) -> int:
    """Print what the findings of a campaign are."""
    parser = argparse.ArgumentParser(prog="python -m selftest.known_findings", description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--json", action="store_true", help="print data instead of text")
    given = parser.parse_args(words)
    signatures = read()
    try:
        found = summary(matched(given.directory, signatures), signatures.first)
    except ArgumentError as error:
        parser.error(str(error))
    if given.json:
        print(json.dumps(as_json(found), indent=1))
    else:
        print("\n".join(lines(found, signatures)))
    return int(any(not one.bugs for one in found.lasting))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
