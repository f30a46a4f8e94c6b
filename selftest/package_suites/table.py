"""Write the table of the suites: a row for each package, and each test that fails here alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from selftest.package_suites.files import Suite
from selftest.package_suites.platforms import (
    BESIDE,
    ENDED,
    NOT_COLLECTED,
    OURS,
    SKIPPED,
    STOPPED,
    THEIRS,
)
from selftest.scoring.outcomes import FAILED, PASSED, REFUSED, Outcome
from selftest.scoring.pages import counted, section, share


@dataclass(frozen=True, slots=True)
class Row:
    """Counts of a package's tests. ``files``: those that ran on XLA:CPU to their end, of
    ``all_files``; ``run``: tests that passed or failed on XLA:CPU; ``passed`` of these;
    ``on_both``, ``beside`` of these with a device of XLA:CPU that they name; ``failed``,
    ``refused`` and ``skipped`` on the plugin alone; ``left``: passed on XLA:CPU, and did not run on
    the plugin; ``interpreted``: those with a program that did not run as C."""

    package: str
    version: str
    files: int
    all_files: int
    run: int
    passed: int
    on_both: int
    beside: int
    failed: int
    refused: int
    skipped: int
    left: int
    interpreted: int


def rows(suites: Sequence[Suite], outcomes: Collection[Outcome]) -> list[Row]:
    """Count the tests of each package."""
    return [_row(one, [o for o in outcomes if o.group in one.files]) for one in suites]


def _row(suite: Suite, outcomes: Sequence[Outcome]) -> Row:
    theirs, ours = _tests(outcomes, THEIRS), _ours(outcomes)
    passed = sum(one.status == PASSED for one in theirs)
    counts = Counter(one.status for one in ours)
    return Row(
        suite.package,
        suite.version,
        files=sum((one.status, one.setting) == (ENDED, THEIRS) for one in outcomes),
        all_files=len(suite.files),
        run=sum(one.status != SKIPPED for one in theirs),
        passed=passed,
        on_both=counts[PASSED],
        beside=sum((one.status, one.setting) == (PASSED, BESIDE) for one in ours),
        failed=counts[FAILED],
        refused=counts[REFUSED],
        skipped=counts[SKIPPED],
        left=passed - len(ours),
        interpreted=sum(bool(one.interpreted) for one in ours),
    )


def _tests(outcomes: Collection[Outcome], platform: str) -> list[Outcome]:
    """Return the outcomes of tests, not of files, on a platform."""
    return [one for one in outcomes if one.setting == platform and one.name]


def _ours(outcomes: Collection[Outcome]) -> list[Outcome]:
    """Return the outcomes on the plugin of the tests that pass on XLA:CPU; where one ran again with
    XLA:CPU beside, that one."""
    passed = {one.key[:2] for one in _tests(outcomes, THEIRS) if one.status == PASSED}
    both = [*_tests(outcomes, OURS), *_tests(outcomes, BESIDE)]
    return [*{one.key[:2]: one for one in both if one.key[:2] in passed}.values()]


def only_here(outcomes: Collection[Outcome]) -> list[Outcome]:
    """Return the outcomes of tests that pass on XLA:CPU and not on the plugin, and those of files
    that cannot be imported or die there, as failures; sorted."""
    lost = (FAILED, NOT_COLLECTED)
    files = [
        replace(one, status=FAILED)
        for one in outcomes
        if not one.name and one.setting != THEIRS and one.status in lost
    ]
    tests = [one for one in _ours(outcomes) if one.status != PASSED]
    return sorted([*files, *tests], key=lambda one: one.key)


def markdown(suites: Sequence[Suite], outcomes: Collection[Outcome], mode: str) -> str:
    """Format the page of evidence."""
    return "\n".join(_lines(suites, outcomes, mode)) + "\n"


def _lines(suites: Sequence[Suite], outcomes: Collection[Outcome], mode: str) -> Iterator[str]:
    yield from ("# Test suites of packages on this backend", "")
    yield (
        f"`python -m selftest.package_suites --mode {mode}`: tests that packages carry in their"
        " wheels, on XLA:CPU and, where they pass there, on the plugin."
    )
    yield ""
    yield (
        "| package | version | files | tests on XLA:CPU | passed there | passed on both |"
        " | these with XLA:CPU beside | failed only here | refused | skipped | not run |"
        " interpreted |"
    )
    yield "|---" * 13 + "|"
    for row in rows(suites, outcomes):
        ran = row.passed - row.left
        both = f"{row.on_both:,} | {share(row.on_both, ran)} | {row.beside}"
        others = f"{row.failed} | {row.refused} | {row.skipped} | {row.left} | {row.interpreted}"
        yield (
            f"| {row.package} | {row.version} | {row.files} of {row.all_files} | {row.run:,}"
            f" | {row.passed:,} | {both} | {others} |"
        )
    found = only_here(outcomes)
    yield from section("Failed only here", [one for one in found if one.status == FAILED])
    yield from section("Refused only here", [one for one in found if one.status == REFUSED])
    yield from section("Skipped only here", [one for one in found if one.status == SKIPPED])
    stopped = [one for one in outcomes if one.status == STOPPED]
    yield from section("Files that did not end", sorted(stopped, key=lambda one: one.key))
    theirs = [one for one in outcomes if not one.name and one.setting == THEIRS]
    not_collected = (f"{o.group}: {o.why}" for o in theirs if o.status == NOT_COLLECTED)
    yield from counted("Files that cannot be imported", not_collected, str)
    interpreted = (one.interpreted for one in _ours(outcomes) if one.interpreted)
    yield from counted("Interpreted", interpreted, _kind)


def _kind(reason: str) -> str:
    """Reduce a reason to its kind: of a program that is not C, the missing feature."""
    _, found, what = reason.partition(": no C for ")
    kind = f"no C for {what.partition(';')[0]}" if found else reason[:120]
    return kind.partition(" (from ")[0]
