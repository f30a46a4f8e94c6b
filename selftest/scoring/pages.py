"""Write what the pages of all scores have: shares, lists of cases, counts of reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from hlo_oracle.verdicts import Verdict
from selftest.scoring.outcomes import FAILED, Outcome

_NOT_LEGAL = ("outside", "undetermined", "not judged")


def is_legal(outcome: Outcome) -> bool:
    """Test for a failure in which no value of the side that is named first, this backend unless it
    is exact, is proven wrong, and some are proven legal: the tolerance is narrower than roundings
    may require."""
    first = outcome.legal.partition(";")[0]
    is_told = outcome.status == FAILED and bool(first)
    return is_told and not any(word in first for word in _NOT_LEGAL)


def verdicts(lines: Sequence[tuple[str, str]]) -> str:
    """Format verdicts on values by the side that computed them, this backend first."""
    return "; ".join(f"{side}: {' '.join(verdict.split())}" for side, verdict in lines)


def elements(verdict: Verdict) -> str:
    """Format the number of elements by verdict: ``2 equal, 4 within``."""
    words = ("equal", "within", "outside", "undetermined")
    return ", ".join(f"{count} {word}" for word in words if (count := getattr(verdict, word)))


def share(passed: int, run: int) -> str:
    """Format the share of cases that passed; empty if there are none."""
    return f"{passed / run:.1%}" if run else ""


def section(title: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """List cases with their reasons."""
    if not outcomes:
        return
    yield from ("", f"## {title}", "")
    for one in outcomes:
        legal = f" ({one.legal})" if one.legal else ""
        yield f"* `{one.group}: {one.name}` ({one.setting}): {escaped(one.why + legal)}"


def counted(title: str, reasons: Iterable[str], kind: Callable[[str], str]) -> Iterator[str]:
    """Count reasons of the same kind."""
    counts = Counter(map(kind, reasons))
    if counts:
        yield from ("", f"## {title}: reasons", "")
    for name, times in counts.most_common():
        yield f"* {times:,}: {escaped(name)}"


def escaped(text: str) -> str:
    """Escape what Markdown takes for its own."""
    return text.replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")
