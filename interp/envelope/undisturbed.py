"""Which values a compiler can be asked for without giving other results.

Asked for one more value, a compiler may fuse, contract or lay out otherwise; values in between then
say nothing of the results that are judged. Most do no such harm: they are found by trial.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Names = tuple[str, ...]


def undisturbed(groups: Mapping[str, Sequence[str]], agrees: Callable[[Names], bool]) -> Names:
    """As many names as can be asked for together such that ``agrees``; what cannot is tried in
    halves, after all groups. ``agrees`` is False, too, when it was asked often enough."""
    kept: Names = ()
    waiting = [tuple(group) for group in groups.values()]
    while waiting:
        group = waiting.pop(0)
        if agrees(kept + group):
            kept += group
        elif len(group) > 1:
            half = len(group) // 2
            waiting += [group[:half], group[half:]]
    return kept
