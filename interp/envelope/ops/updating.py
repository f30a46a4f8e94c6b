"""Enclose updates of elements by a computation, in an open order (scatter, select-and-scatter)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo.values import Array
from hlo.walk import Callee
from interp.algorithms.scatter_updates import combined
from interp.envelope import budget
from interp.envelope.enclosed_values import spread
from interp.envelope.enclosure import Enclosure, anything, moved
from interp.envelope.folds.fold_orders import disagree, ends_of, of_other_orders, rounds

__all__: list[str] = []

_MOST_ROUNDS = 1 << 10


def updated(
    values: Sequence[Enclosure],
    places: Array,
    updates: Sequence[Enclosure],
    to_apply: Callee[Any],
) -> tuple[Enclosure, ...]:
    """Apply updates to the elements of vectors at ``places``. Where several meet, the result is
    known only if the computation does not round and all orders tried agree; else it is open, since
    a few orders do not bound the others."""
    counts = np.bincount(places, minlength=values[0].shape[0])
    if counts.max(initial=0) > _MOST_ROUNDS:
        return tuple(anything(x.shape, x.element_type) for x in values)
    state = list(values)
    # Stable: updates of one place stay in the order written, which is the interpreter's.
    order = np.argsort(places, kind="stable")
    begins = np.cumsum(counts) - counts
    ranks = np.arange(len(order)) - np.repeat(begins, counts)
    for number in range(int(counts.max(initial=0))):  # each place at most once in a round
        chosen = order[ranks == number]
        met = places[chosen]
        found = to_apply(*(_taken(x, met) for x in state), *(_taken(x, chosen) for x in updates))
        results = found if isinstance(found, tuple) else (found,)
        state = [put(x, met, spread(one, met.shape)) for x, one in zip(state, results)]
    if budget.current() is budget.EXACT:
        return tuple(state)

    def fold(callee: Callee[Any], backwards: bool, end: str) -> Sequence[Array]:
        step = -1 if backwards else 1
        olds, news = ([getattr(x, end) for x in part] for part in (values, updates))
        return combined(tuple(olds), places[::step], tuple(x[::step] for x in news), callee)

    several = disagree(fold, to_apply, ends_of(*values, *updates))
    if rounds(to_apply.computation):
        several = several | (counts > 1)
    return tuple(of_other_orders(several, x, counts > 0) for x in state)


def _taken(value: Enclosure, places: Array) -> Enclosure:
    return moved(lambda x: x[places], value)


def put(value: Enclosure, places: Array, new: Enclosure) -> Enclosure:
    """Replace elements of a vector at the given places."""

    def replaced(old: Array, one: Array) -> Array:
        result = np.array(old)
        result[places] = one
        return result

    return moved(replaced, value, new)
