"""Write the score: a table by module, and each case that did not pass with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from selftest.scoring.outcomes import FAILED, PASSED, REFUSED, Outcome
from selftest.scoring.pages import counted, is_legal, section, share

SKIPPED = "skipped"
_PRIMITIVES = "jax.lax: primitives"


@dataclass(frozen=True, slots=True)
class Row:
    """Counts of a module's cases. ``run``: those that XLA:CPU runs; ``legal``: failures in which
    every value is legal, so that the tolerance is narrower than roundings may require;
    ``interpreted``: those that did not run as C."""

    module: str
    run: int
    passed: int
    failed: int
    legal: int
    refused: int
    skipped: int
    interpreted: int


def module_of(group: str) -> str:
    """Return the module of a group; all of JAX's groups of primitives are one module."""
    return _PRIMITIVES if group.startswith("lax.") else group


def rows(outcomes: Collection[Outcome]) -> list[Row]:
    """Count by module, sorted by name, and in all."""
    modules = sorted({module_of(one.group) for one in outcomes})
    found = [_row(name, [o for o in outcomes if module_of(o.group) == name]) for name in modules]
    return [*found, _row("all", outcomes)]


def _row(module: str, outcomes: Collection[Outcome]) -> Row:
    counts = Counter(one.status for one in outcomes)
    return Row(
        module,
        run=len(outcomes) - counts[SKIPPED],
        passed=counts[PASSED],
        failed=counts[FAILED],
        legal=sum(map(is_legal, outcomes)),
        refused=counts[REFUSED],
        skipped=counts[SKIPPED],
        interpreted=sum(bool(one.interpreted) for one in outcomes),
    )


def markdown(outcomes: Collection[Outcome], how: str) -> str:
    """Format the page of evidence; ``how`` describes the run."""
    ordered = sorted(outcomes, key=lambda one: one.key)
    return "\n".join(_lines(ordered, how)) + "\n"


def _lines(outcomes: Collection[Outcome], how: str) -> Iterator[str]:
    yield "# JAX's functions on this backend"
    yield ""
    yield how
    yield ""
    yield "| module | run | passed | | failed | of these legal | refused | skipped | interpreted |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for row in rows(outcomes):
        numbers = f"{row.failed} | {row.legal} | {row.refused} | {row.skipped} | {row.interpreted}"
        passed = f"{row.passed:,} | {share(row.passed, row.run)}"
        yield f"| {row.module} | {row.run:,} | {passed} | {numbers} |"
    yield ""
    yield (
        "Run: what XLA:CPU runs. Passed: structure, shape, type and weak type are equal and values"
        " within the tolerance of JAX's own tests. Legal: values differ by more, but each one of"
        " ours is one that a legal compiler may give ([verdict](../verdict.md)). Skipped: what"
        " JAX or XLA:CPU does not have. Interpreted: no C ran."
    )
    for title, status in (("Failed", FAILED), ("Refused", REFUSED)):
        yield from section(title, [one for one in outcomes if one.status == status])
    yield from counted("Skipped", (o.why for o in outcomes if o.status == SKIPPED), _kind)
    yield from counted("Interpreted", (o.interpreted for o in outcomes if o.interpreted), _kind)


def _kind(reason: str) -> str:
    """Reduce a reason to its kind: of a program that is not C, the missing feature, wherever in
    whose program."""
    _, found, what = reason.partition(": no C for ")
    if not found:
        return reason[:120]
    return f"no C for {what.partition(';')[0].partition(' (')[0]}"
