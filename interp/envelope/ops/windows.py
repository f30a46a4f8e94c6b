"""Enclose reduce-window: folds over windows, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice

import numpy as np

from hlo.attributes import Window
from hlo.values import Array
from hlo.walk import Callee
from interp.envelope import budget
from interp.envelope.boolean_masks import is_ever
from interp.envelope.budget import Folds
from interp.envelope.complex_numbers import joined, parts
from interp.envelope.enclosure import Enclosure, Value, anything, point, where
from interp.envelope.float_sums.addends import of_folds
from interp.envelope.float_sums.sums import exactly_summed, sum_of
from interp.envelope.folds import fold_orders
from interp.envelope.folds.fold_orders import disagree, ends_of, of_other_orders
from interp.envelope.folds.running_folds import in_some_blocks, is_running, windows_in_order
from interp.envelope.interval_rules import compared, flushed
from interp.envelope.ops.reduction import (
    in_any_order,
    is_small,
    or_elements,
    separately,
    with_specials,
)
from interp.envelope.sums_in_order import or_rounded, ordered_addition, step_by_step
from interp.exact import sums
from interp.ops import reduction as exact
from interp.windows import is_trivial, positions, window_fold

__all__ = ["reduce_window"]


_MOST_NEIGHBOURS = 64  # in a window


def reduce_window(
    *operands: Enclosure,
    to_apply: Callee[Value],
    window: Window = Window(),  # noqa: B008  (frozen)
) -> Value:
    """Enclose reduce-window with the elements of each window in any order. As in reduce, the fold
    of a single element may be that element itself."""
    arity = len(operands) // 2
    inputs, inits = operands[:arity], operands[arity:]
    result = _windows_folded(inputs, inits, to_apply, window)
    if all(map(is_trivial, window.dimensions)):
        return or_elements(result, inputs)
    return result


def _windows_folded(
    inputs: tuple[Enclosure, ...],
    inits: tuple[Enclosure, ...],
    to_apply: Callee[Value],
    window: Window,
) -> Value:
    """Enclose monotone folds by their ends, and float sums in any order; others as the budget
    says."""
    arity = len(inputs)
    element_type = inputs[0].element_type
    monoid = to_apply.monoid if arity == 1 else None

    def folded(values: Array, init: Array) -> Array:
        fold = Callee(to_apply.computation, to_apply.call)
        return np.asarray(exact.reduce_window(values, init, to_apply=fold, window=window))

    if fold_orders.grows(monoid, inputs[0], inits[0]):
        low = folded(inputs[0].low, inits[0].low)
        high = low
        if not (inputs[0].is_point and inits[0].is_point):
            high = folded(inputs[0].high, inits[0].high)
        nan = _any_in_windows(inputs[0].nan, window) | inits[0].nan
        return compared(Enclosure(low, high, nan))
    if fold_orders.has_one_result(monoid, inputs[0], inits[0]):
        return point(folded(inputs[0].low, inits[0].low))
    if monoid == "add" and element_type.is_float:
        ordered = ordered_addition(to_apply)
        in_order = partial(exact.reduce_window, to_apply=ordered, window=window)
        in_blocks = partial(in_some_blocks, inputs, inits, to_apply, window)
        result = _window_sums(inputs[0], inits[0], window)
        fits = is_running(window, inputs[0].shape)
        return or_rounded(result, (inputs[0], inits[0]), in_order, in_blocks if fits else None)
    if monoid == "add" and element_type.is_complex:
        sums = [_window_sums(x, i, window) for x, i in zip(parts(inputs[0]), parts(inits[0]))]
        return joined(*sums)
    way = budget.current().folds
    if way in (Folds.IN_ORDER, Folds.IN_BLOCKS):
        is_in_blocks = way is Folds.IN_BLOCKS and is_running(window, inputs[0].shape)
        with step_by_step():
            fold = in_some_blocks if is_in_blocks else windows_in_order
            return fold(inputs, inits, to_apply, window)
    return _in_some_order(inputs, inits, to_apply, window, monoid)


def _in_some_order(
    inputs: tuple[Enclosure, ...],
    inits: tuple[Enclosure, ...],
    to_apply: Callee[Value],
    window: Window,
    monoid: str | None,
) -> Value:
    """Enclose a fold by its result in order, and by anything where another order may give
    another."""
    element_type = inputs[0].element_type
    rounds = budget.current() is not budget.EXACT
    dims = tuple(map(positions, window.dimensions, inputs[0].shape))
    is_single = len([*islice(exact.steps_of(window, inputs[0].shape), 2)]) < 2
    is_product = monoid == "multiply" and element_type.is_float
    if rounds and not is_single and not is_product and fold_orders.rounds(to_apply.computation):
        totals = [partial(_window_sums, x, init, window) for x, init in zip(inputs, inits)]
        in_order = partial(windows_in_order, inputs, inits, to_apply, window)
        return separately(to_apply, totals, in_order, dims)
    result = windows_in_order(inputs, inits, to_apply, window)
    if is_product and rounds:
        return in_any_order(
            result,
            inputs[0],
            inits[0],
            lambda array, operation: window_fold(
                array, window.dimensions, operation, operation.identity
            ),
        )
    if not rounds or (monoid and not element_type.is_complex):
        return result
    steps = list(exact.steps_of(window, inputs[0].shape))

    def fold(callee: Callee[Value], backwards: bool, end: str) -> Sequence[Array]:
        state = [np.broadcast_to(getattr(x, end), dims) for x in inits]
        for step in reversed(steps) if backwards else steps:
            made = callee(*state, *(getattr(x, end)[step.elements] for x in inputs))
            after = made if isinstance(made, tuple) else (made,)
            state = [np.where(step.inside, *pair) for pair in zip(after, state, strict=True)]
        return state

    ends = ends_of(*inputs, *inits)
    open_ = disagree(fold, to_apply, ends)
    for end in ends if steps else ():
        rows = []
        for value, init in zip(inputs, inits):
            array, start = getattr(value, end), np.broadcast_to(getattr(init, end), dims)
            of_each = [np.where(step.inside, array[step.elements], start) for step in steps]
            rows.append(np.stack([start, *of_each[:_MOST_NEIGHBOURS]]))
        open_ = open_ | fold_orders.lawless(to_apply, rows)
    for value, init in zip(inputs, inits):  # a NaN is neither above nor below
        open_ = open_ | _any_in_windows(value.nan, window) | init.nan
    return of_other_orders(open_, result)


def _any_in_windows(mask: Array, window: Window) -> Array:
    return window_fold(mask, window.dimensions, np.logical_or, False)


def _window_sums(operand: Enclosure, init: Enclosure, window: Window) -> Enclosure:
    if budget.current() is budget.EXACT:

        def summed(array: Array, start: Array) -> Array:
            return sums.window_sum(array, window.dimensions, start, operand.element_type)

        return exactly_summed(summed, lambda mask: _any_in_windows(mask, window), operand, init)
    values, start = flushed(operand), flushed(init)
    finite = [np.isfinite(x.low) & np.isfinite(x.high) & ~x.nan for x in (values, start)]
    ends = [
        [np.where(mask, end, 0).astype(np.float64) for end in (x.low, x.high)]
        for x, mask in zip((values, start), finite, strict=True)
    ]

    def fold(array: Array, operation: np.ufunc) -> Array:
        identity = np.inf if operation is np.minimum else operation.identity
        return window_fold(array, window.dimensions, operation, identity)

    total = partial(fold, operation=np.add)

    low, high = (total(a) + b for a, b in zip(*ends, strict=True))
    most = [np.maximum(np.abs(a), np.abs(b)) for a, b in ends]
    terms = total(np.ones_like(ends[0][0])) + 1
    magnitudes = total(most[0]) + most[1]
    known = of_folds(ends[0], ends[1], fold, terms, operand.element_type)
    result = sum_of(low, high, magnitudes, known, operand.element_type)
    special = _any_in_windows(~finite[0], window) | ~finite[1]
    if not is_ever(special):
        return result
    result = where(special, anything(result.shape, result.element_type), result)
    return with_specials(result, special & is_small(magnitudes, operand), operand, init, total)
