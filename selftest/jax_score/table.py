"""Write the score: a table by module, and each case that did not pass with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from selftest.jax_score.outcomes import FAILED, PASSED, REFUSED, SKIPPED, Outcome

_NOT_LEGAL = ("outside", "undetermined", "not judged")
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


def is_legal(outcome: Outcome) -> bool:
    """Test whether no value of the plugin is proven wrong, and some are proven legal."""
    ours = outcome.legal.partition("; cpu:")[0]
    return bool(ours) and not any(word in ours for word in _NOT_LEGAL)


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
        legal=sum(one.status == FAILED and is_legal(one) for one in outcomes),
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
        share = f"{row.passed / row.run:.1%}" if row.run else ""
        numbers = f"{row.failed} | {row.legal} | {row.refused} | {row.skipped} | {row.interpreted}"
        yield f"| {row.module} | {row.run:,} | {row.passed:,} | {share} | {numbers} |"
    yield ""
    yield (
        "Run: what XLA:CPU runs. Passed: structure, shape, type and weak type are equal and values"
        " within the tolerance of JAX's own tests. Legal: values differ by more, but each one of"
        " ours is one that a legal compiler may give ([verdict](../verdict.md)). Skipped: what"
        " JAX or XLA:CPU does not have. Interpreted: no C ran."
    )
    for title, status in (("Failed", FAILED), ("Refused", REFUSED)):
        yield from _section(title, [one for one in outcomes if one.status == status])
    yield from _counted("Skipped", (o.why for o in outcomes if o.status == SKIPPED))
    yield from _counted("Interpreted", (o.interpreted for o in outcomes if o.interpreted))


def _section(title: str, outcomes: Collection[Outcome]) -> Iterator[str]:
    """List cases with their reasons."""
    if not outcomes:
        return
    yield from ("", f"## {title}", "")
    for one in outcomes:
        width = 64 if one.x64 else 32
        legal = f" ({one.legal})" if one.legal else ""
        yield f"* `{one.group}: {one.name}` (x{width}): {_escaped(one.why + legal)}"


def _counted(title: str, reasons: Iterable[str]) -> Iterator[str]:
    """Count reasons of the same kind."""
    counts = Counter(_kind(reason) for reason in reasons)
    if counts:
        yield from ("", f"## {title}: reasons", "")
    for kind, times in counts.most_common():
        yield f"* {times:,}: {_escaped(kind)}"


def _kind(reason: str) -> str:
    """Reduce a reason to its kind: of a program that is not C, the missing feature."""
    _, found, what = reason.partition(": no C for ")
    return f"no C for {what.partition(';')[0]}" if found else reason[:120]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")
