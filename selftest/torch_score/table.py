"""Write the score: a table by element type, and each case that did not pass with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import groupby

from selftest.scoring.outcomes import FAILED, PASSED, REFUSED, Outcome
from selftest.scoring.pages import counted, escaped, is_legal, section, share

RANDOM, SPARSE, EAGER = "random", "sparse", "eager refuses"
DATA, UNSPECIFIED = "data-dependent sizes", "unspecified"
_RUN = (PASSED, FAILED, REFUSED)
_OTHERS = (RANDOM, DATA, SPARSE, UNSPECIFIED, EAGER)
GRADIENT = "gradient of "  # begins the name of a group


@dataclass(frozen=True, slots=True)
class Row:
    """Counts of the cases of an element type, of operations or of gradients. ``run``: those that
    passed, failed or were refused; ``legal``: failures in which every value is legal, so that the
    tolerance is narrower than roundings may require; ``others`` by status."""

    type: str
    what: str
    run: int
    passed: int
    failed: int
    legal: int
    refused: int
    others: tuple[int, ...]


def rows(outcomes: Collection[Outcome]) -> list[Row]:
    """Count by element type, operations before gradients, and in all."""
    found = []
    for setting in dict.fromkeys(one.setting for one in outcomes):
        of = [one for one in outcomes if one.setting == setting]
        for what, is_gradient in (("operations", False), ("gradients", True)):
            part = [one for one in of if one.group.startswith(GRADIENT) == is_gradient]
            if part:
                found.append(_row(setting, what, part))
    return [*found, _row("all", "", outcomes)]


def _row(name: str, what: str, outcomes: Collection[Outcome]) -> Row:
    counts = Counter(one.status for one in outcomes)
    return Row(
        name,
        what,
        run=sum(counts[status] for status in _RUN),
        passed=counts[PASSED],
        failed=counts[FAILED],
        legal=sum(map(is_legal, outcomes)),
        refused=counts[REFUSED],
        others=tuple(counts[status] for status in _OTHERS),
    )


def markdown(outcomes: Collection[Outcome], how: str) -> str:
    """Format the page of evidence; ``how`` describes the run."""
    return "\n".join(_lines(outcomes, how)) + "\n"


def _lines(outcomes: Collection[Outcome], how: str) -> Iterator[str]:
    yield from ("# PyTorch's operations on this backend", "", how, "")
    yield f"| type | | run | passed | | failed | of these legal | refused | {' | '.join(_OTHERS)} |"
    yield "|---" * (8 + len(_OTHERS)) + "|"
    for row in rows(outcomes):
        numbers = [row.failed, row.legal, row.refused, *row.others]
        passed = f"{row.run:,} | {row.passed:,} | {share(row.passed, row.run)}"
        counts = " | ".join(f"{number:,}" for number in numbers)
        yield f"| {row.type} | {row.what} | {passed} | {counts} |"
    yield ""
    yield (
        "Run: what passed, failed or was refused. Passed: every operation is C, types and shapes"
        " are equal and values within the tolerance of PyTorch's own tests (the default of the"
        " type, or the widest that the record of the operation sets for a test on CPUs). Legal:"
        " values differ by more, but each one of ours is one that a legal compiler may give"
        " ([verdict](../verdict.md)). Refused: PyTorch runs an operation of it, for the reason"
        " that is given; the results were compared, too. Random: so were these, from one seed."
        " Unspecified: PyTorch leaves results open, which were not compared."
    )
    ordered = sorted(outcomes, key=lambda one: one.key)
    yield from section("Failed", [one for one in ordered if one.status == FAILED])
    yield from _refused([one for one in ordered if one.status == REFUSED])
    for status in (DATA, UNSPECIFIED, EAGER):
        reasons = (one.why for one in outcomes if one.status == status)
        yield from counted(status.capitalize(), reasons, _kind)


def _refused(outcomes: Collection[Outcome]) -> Iterator[str]:
    """List refused cases by reason: how many there are, of which operations, in which types."""
    if outcomes:
        yield from ("", "## Refused", "")
    ordered = sorted(outcomes, key=lambda one: _kind(one.why))
    found = [(kind, list(of)) for kind, of in groupby(ordered, lambda one: _kind(one.why))]
    for kind, of in sorted(found, key=lambda pair: (-len(pair[1]), pair[0])):
        groups = ", ".join(f"`{name}`" for name in dict.fromkeys(one.group for one in of))
        types = ", ".join(dict.fromkeys(one.setting for one in of))
        yield f"* {len(of):,}: {escaped(kind)}: {groups} ({types})"


def _kind(reason: str) -> str:
    """Reduce a reason to its kind: of a program that is not C, the missing feature."""
    head, found, what = reason.partition(": no C for ")
    if found:
        return f"{head.partition(':')[0]}: no C for {what.partition(';')[0]}"
    return reason[:120]
