"""Folds whose order the language leaves open: does another order give another result?

A fold by a computation that is associative and commutative, of the values at hand, has one result.
Where the orders tried here disagree, a compiler may give any of many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hlo.walk import Callee
from interp.envelope import budget
from interp.envelope.enclosure import Array, Enclosure, anything, is_nan, point, where

Value = Any
Fold = Callable[[Callee[Value], bool], Sequence[Array]]


def on_points(callee: Callee[Value]) -> Callee[Value]:
    """The computation on arrays, exactly."""

    def applied(*arrays: Array) -> Value:
        with budget.using(budget.EXACT):
            result = callee(*(point(np.asarray(array)) for array in arrays))
        return tuple(x.low for x in result) if isinstance(result, tuple) else result.low

    return replace(callee, call=applied)


def swapped(callee: Callee[Value]) -> Callee[Value]:
    """The computation with the state and the elements in each other's place."""

    def applied(*arguments: Value) -> Value:
        half = len(arguments) // 2
        return callee(*arguments[half:], *arguments[:half])

    return replace(callee, call=applied)


def disagree(fold: Fold, callee: Callee[Value]) -> Array:
    """Where ``fold(callee, backwards)`` gives other results in another order."""
    exact = on_points(callee)
    first = fold(exact, False)
    found: Array = np.zeros(np.shape(first[0]), np.bool_)
    for other in (fold(exact, True), fold(swapped(exact), False)):
        for one, another in zip(first, other, strict=True):
            found = found | ~((one == another) | (is_nan(one) & is_nan(another)))
    return found


def open_where(mask: Array, result: Value) -> Value:
    """The result, and anything where the mask says so."""
    if not mask.any():
        return result
    if isinstance(result, tuple):
        return tuple(open_where(mask, part) for part in result)
    assert isinstance(result, Enclosure)
    return where(mask, anything(result.shape, result.element_type), result)
