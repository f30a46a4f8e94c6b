"""Find anchors that a compiler can be asked for without changing its results.

Asked for one more value, a compiler may fuse, contract or lay out otherwise; intermediate values
then say nothing of the results that are judged. Most values do no such harm; they are found by
trial.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from interp.envelope.value_names import decisions, with_decisions

Names = tuple[str, ...]

# What compilers combine with their users: products become parts of sums and of dots, broadcasts and
# pads parts of loops. Most other values are computed as they are, asked for or not.
_COMBINED = frozenset(
    (
        *("broadcast", "conditional", "convolution", "divide", "dot", "multiply", "negate"),
        *("pad", "subtract", "while"),
    )
)


def seldom_disturbing(groups: Mapping[str, Sequence[str]]) -> Names:
    """List the anchors, grouped by opcode, that compilers seldom fuse into their users."""
    return tuple(x for opcode, names in groups.items() if opcode not in _COMBINED for x in names)


def undisturbed(
    groups: Mapping[str, Sequence[str]], agrees: Callable[[Names], bool], kept: Names = ()
) -> Names:
    """Find by bisection a set of anchors, with those in ``kept`` and the trip counts and branch
    numbers that they depend on, for which ``agrees`` is True when all are asked for together.
    Halves of a group that failed are tried after all other groups; before these, the decisions of
    the group alone: a loop that cannot even be asked for its trip count rules out every value
    inside it. ``agrees`` returns False once its budget of trials is used up."""
    refused: list[frozenset[str]] = []
    waiting = [group for names in groups.values() if (group := _without(names, kept))]
    while waiting:
        group = waiting.pop(0)
        wanted = with_decisions(kept + group)
        if not any(one.issubset(wanted) for one in refused) and agrees(wanted):
            kept = wanted
            continue
        refused.append(frozenset(wanted))
        around = _without([one for name in group for one in decisions(name)], kept)
        if 0 < len(around) < len(_without(wanted, kept)):
            waiting.insert(0, around)
        if len(group) > 1:
            half = len(group) // 2
            waiting += [group[:half], group[half:]]
    return kept


def _without(names: Sequence[str], kept: Names) -> Names:
    known = frozenset(kept)
    return tuple(dict.fromkeys(name for name in names if name not in known))
