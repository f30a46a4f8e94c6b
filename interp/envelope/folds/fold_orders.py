"""Find out whether another order of a fold, where order is open, gives another result.

A fold by a computation that is associative and commutative on the values at hand has one result.
Where the orders tried here disagree, or the computation rounds, a compiler may give any of many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hlo.module import Computation
from hlo.opcodes import EXTREME, MONOID, having
from hlo.types import PRED, leaves
from hlo.values import Array
from hlo.walk import Callee, called
from interp.envelope import budget
from interp.envelope.boolean_masks import is_ever, never
from interp.envelope.enclosure import (
    Enclosure,
    Value,
    all_certain,
    anything,
    between,
    finfo,
    is_nan,
    point,
    where,
)
from interp.envelope.interval_rules import of_either_sign
from interp.exact.conversion import type_of

Fold = Callable[[Callee[Value], bool, str], Sequence[Array]]


def on_points(callee: Callee[Value]) -> Callee[Value]:
    """Return a callee that applies a computation exactly to arrays instead of enclosures."""

    def applied(*arrays: Array) -> Value:
        with budget.using(budget.EXACT):
            result = callee(*(point(np.asarray(array)) for array in arrays))
        return tuple(x.low for x in result) if isinstance(result, tuple) else result.low

    return replace(callee, call=applied)


def swapped(callee: Callee[Value]) -> Callee[Value]:
    """Return a callee that takes the elements before the state."""

    def applied(*arguments: Value) -> Value:
        half = len(arguments) // 2
        return callee(*arguments[half:], *arguments[:half])

    return replace(callee, call=applied)


MONOIDS = having(MONOID)
_EXTREMES = having(EXTREME)
# A fold of these alone only chooses among values, as one for the index of the greatest does.
_CHOOSES = frozenset(
    (
        *("and", "compare", "constant", "convert", "copy", "get-tuple-element", "is-finite"),
        *("maximum", "minimum", "not", "or", "parameter", "select", "tuple", "xor"),
    )
)


def rounds(computation: Computation) -> bool:
    """Test whether a computation may give another result in another order for other values: it
    rounds, or neither chooses among its operands nor is a monoid. Orders that agree on some values
    then prove nothing."""
    inexact = any(
        called(i)
        or (i.opcode in budget.ROUNDED and any(x.element_type.is_inexact for x in leaves(i.shape)))
        for i in computation.instructions
    )
    chooses = all(i.opcode in _CHOOSES for i in computation.instructions)
    return inexact or not (chooses or _is_associative(computation))


def grows(monoid: str | None, *values: Enclosure) -> bool:
    """Test whether a fold by a monoid is monotone in every value, so that the folds of low and high
    ends enclose it."""
    if monoid in _EXTREMES:
        return True
    is_truth = values[0].element_type is PRED
    return monoid in ("and", "or") and (is_truth or all(map(all_certain, values)))


def has_one_result(monoid: str | None, *values: Enclosure) -> bool:
    """Test for a fold of certain integers or truth values by a monoid: whatever the order, the
    exact result is the only one."""
    return (
        monoid is not None
        and not values[0].element_type.is_inexact
        and all(map(all_certain, values))
    )


def _is_associative(computation: Computation) -> bool:
    root = computation.root_instruction
    if root.opcode == "tuple":
        opcodes = separate(computation)
        return opcodes is not None and MONOIDS.issuperset(opcodes)
    names = sorted(parameter.name for parameter in computation.parameters)
    return root.opcode in MONOIDS and sorted(root.operands) == names


def separate(computation: Computation) -> tuple[str, ...] | None:
    """List the opcodes of a computation that combines each state value with its own element and
    nothing else; None for any other computation."""
    by_name = {i.name: i for i in computation.instructions}
    parameters = [parameter.name for parameter in computation.parameters]
    arity = len(parameters) // 2
    root = by_name[computation.root]
    if root.opcode != "tuple" or len(root.operands) != arity:
        return None
    found = []
    for number, name in enumerate(root.operands):
        one, pair = by_name[name], [parameters[number], parameters[number + arity]]
        if sorted(one.operands) != sorted(pair):
            return None
        found.append(one.opcode)
    return tuple(found)


def ends_of(*values: Enclosure) -> tuple[str, ...]:
    """Name the ends to evaluate: "low" alone if all values are points."""
    return ("low",) if all(x.is_point for x in values) else ("low", "high")


def _is_tiny(array: Array) -> Array:
    """Test for zeros, and for subnormals that may be flushed in comparisons."""
    if not type_of(array).is_float:
        return never(np.shape(array))
    return np.asarray(np.abs(array) < finfo(array.dtype).smallest_normal)


def disagree(fold: Fold, callee: Callee[Value], ends: tuple[str, ...] = ("low",)) -> Array:
    """Test which results of ``fold(callee, backwards, end)`` differ from those of the reversed
    order or of swapped operands, at either end, or may change if subnormals are flushed."""
    exact = on_points(callee)
    found: Array = np.asarray(np.False_)
    for end in ends:
        subnormal = False

        def watched(*arrays: Array) -> Value:
            nonlocal subnormal
            floats = [x for x in arrays if budget.current().may_flush(type_of(x))]
            subnormal |= any((_is_tiny(x) & (x != 0)).any() for x in floats)
            return exact(*arrays)

        first = fold(replace(exact, call=watched), False, end)
        if subnormal:
            found = found | np.logical_or.reduce([_is_tiny(one) for one in first])
        for other in (fold(exact, True, end), fold(swapped(exact), False, end)):
            found = found | _differ(first, other)
    return found


def _differ(some: Sequence[Array], others: Sequence[Array]) -> Array:
    found: Array = np.asarray(np.False_)
    for one, other in zip(some, others, strict=True):
        found = found | ~((one == other) | (is_nan(one) & is_nan(other)))
    return found


def lawless(callee: Callee[Value], rows: Sequence[Array]) -> Array:
    """Test which folds have neighbours along the first axis that violate commutativity or
    associativity, in the given order and in one random order."""
    exact = on_points(callee)

    def combined(lhs: Sequence[Array], rhs: Sequence[Array]) -> Sequence[Array]:
        result = exact(*lhs, *rhs)
        return result if isinstance(result, tuple) else (result,)

    count = len(rows[0])
    found = np.zeros(rows[0].shape[1:], np.bool_)
    # Seeded by the length, so that a verdict is the same at every run.
    for order in (np.arange(count), np.random.default_rng(count).permutation(count)):
        one, other = ([row[part] for row in rows] for part in (order[:-1], order[1:]))
        found |= _differ(combined(one, other), combined(other, one)).any(axis=0)
        a, b, c = ([row[part] for row in rows] for part in (order[:-2], order[1:-1], order[2:]))
        if count > 2:
            left, right = combined(combined(a, b), c), combined(a, combined(b, c))
            found |= _differ(left, right).any(axis=0)
    return found


def of_other_orders(open_: Array, result: Value, folded: Array | bool = True) -> Value:
    """Admit any value where ``open_`` is set and, of what is ``folded``, zeros of either sign:
    which of two zeros a comparison takes depends on the order."""
    if isinstance(result, tuple):
        return tuple(of_other_orders(open_, part, folded) for part in result)
    assert isinstance(result, Enclosure)
    if result.element_type.is_float:
        low, high = of_either_sign(result.low, result.high)
        if low is not result.low or high is not result.high:
            either = between(low, high, result.nan)
            result = where(np.asarray(folded), either, result)
    return open_where(open_, result)


def open_where(mask: Array, result: Value) -> Value:
    """Admit any value where the mask is set."""
    if not is_ever(mask):
        return result
    if isinstance(result, tuple):
        return tuple(open_where(mask, part) for part in result)
    assert isinstance(result, Enclosure)
    return where(mask, anything(result.shape, result.element_type), result)


def in_rows(operand: Array, init: Array, dimensions: tuple[int, ...]) -> Array:
    """Arrange the elements to fold over some dimensions along the first axis, the init first."""
    kept = [axis for axis in range(operand.ndim) if axis not in dimensions]
    dims = [operand.shape[axis] for axis in kept]
    steps = math.prod(operand.shape[axis] for axis in dimensions)
    rows = operand.transpose(*sorted(dimensions), *kept).reshape(steps, *dims)
    return np.concatenate([np.broadcast_to(init, (1, *dims)), rows])
