"""Enclose loops and branches by following them where the decision is certain."""

from __future__ import annotations

import numpy as np

from hlo.walk import Callee
from interp.envelope.enclosed_values import hull_of, unknown
from interp.envelope.enclosure import Enclosure, Value
from interp.envelope.exact_loops import MOST_TURNS, too_long

__all__ = ["conditional", "while_"]


def while_(init: Value, *, condition: Callee[Value], body: Callee[Value]) -> Value:
    """Enclose a loop by iterating its body while the condition is certain; anything once it is
    open."""
    value = init
    for _ in range(MOST_TURNS):
        again = condition(value)
        if not again.high:
            return value
        if not again.low:
            return unknown(value)
        value = body(value)
    raise too_long()


def conditional(
    selector: Enclosure,
    *operands: Value,
    true_computation: Callee[Value] | None = None,
    false_computation: Callee[Value] | None = None,
    branch_computations: tuple[Callee[Value], ...] = (),
) -> Value:
    """Enclose the hull of all branches that the selector may choose."""
    branches = branch_computations
    if true_computation and false_computation:
        branches = (true_computation, false_computation)
    results = [branches[n](operands[n]) for n in chosen_branches(selector, len(branches))]
    result = results[0]
    for other in results[1:]:
        result = hull_of(result, other)
    return result


def chosen_branches(selector: Enclosure, count: int) -> list[int]:
    """List the branches that an uncertain selector may choose; an index out of range chooses the
    last."""
    if selector.low.dtype == np.bool_:
        taken = {bool(selector.low), bool(selector.high)}
        return sorted(0 if chosen else count - 1 for chosen in taken)
    low, high = int(selector.low), int(selector.high)
    inside = set(range(max(low, 0), min(high, count - 1) + 1))
    return sorted(inside | ({count - 1} if low < 0 or high >= count else set()))
