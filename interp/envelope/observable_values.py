"""Find the values that a compiler can be asked for without changing its results.

Asked for one more value, a compiler may fuse, contract or lay out otherwise; intermediate values
then say nothing of the results that are judged. Most values do no such harm; they are found by
trial.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Names = tuple[str, ...]


def undisturbed(groups: Mapping[str, Sequence[str]], agrees: Callable[[Names], bool]) -> Names:
    """Find by bisection as many names as can be asked for together such that ``agrees``; halves of
    a group that cannot are tried after all other groups. ``agrees`` also returns False once it was
    asked too often."""
    kept: Names = ()
    refused: list[frozenset[str]] = []
    waiting = [tuple(group) for group in groups.values()]
    while waiting:
        group = waiting.pop(0)
        wanted = kept + group
        if not any(one.issubset(wanted) for one in refused) and agrees(wanted):
            kept = wanted
            continue
        refused.append(frozenset(wanted))
        if len(group) > 1:
            half = len(group) // 2
            waiting += [group[:half], group[half:]]
    return kept
