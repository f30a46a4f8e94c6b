"""Evaluate reduce, reduce-window and select-and-scatter: folds of many elements into one.

Sums of floats are exact. Folds whose order cannot matter are done in any; every other computation
is applied in row-major order, the init first, to all results at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hlo.attributes import Window
from hlo.types import F32, F64
from hlo.values import Array
from hlo.walk import Callee
from interp.algorithms.monoid_folds import fold_along, fold_windows, has_order, product_in_order
from interp.algorithms.scatter_updates import combined
from interp.exact.conversion import type_of
from interp.exact.sums import same_bits, sum_along, window_sum
from interp.values import Value, broadcast
from interp.windows import elements_at, positions, running, trimmed

__all__ = ["reduce", "reduce_window", "select_and_scatter"]


_STEPS_PER_RESULT = 64  # from here on it is worth while to look for steps that change nothing
_MOST_BLIND = 1 << 9  # steps that are taken without looking whether they change the state
_LONGEST_RUN = 1 << 16


def reduce(*operands: Array, dimensions: tuple[int, ...], to_apply: Callee[Value]) -> Value:
    """Reduce the first half of the operands over ``dimensions``; the second half are inits."""
    arity = len(operands) // 2
    inputs, inits = operands[:arity], operands[arity:]
    element_type = type_of(inputs[0])
    monoid = to_apply.monoid if arity == 1 else None
    if monoid == "add" and element_type.is_inexact:
        return sum_along(inputs[0], dimensions, inits[0], element_type)
    if monoid and not has_order(monoid, element_type):
        return fold_along(monoid, inputs[0], dimensions, inits[0])
    return _reduced_in_order(inputs, inits, dimensions, to_apply)


def _reduced_in_order(
    inputs: Sequence[Array],
    inits: Sequence[Array],
    dimensions: tuple[int, ...],
    to_apply: Callee[Value],
) -> Value:
    reduced = sorted(dimensions)
    kept = [axis for axis in range(inputs[0].ndim) if axis not in dimensions]
    dims = tuple(inputs[0].shape[axis] for axis in kept)
    steps = math.prod(inputs[0].shape[axis] for axis in reduced)
    if 0 in dims:
        return to_apply.bundled([np.empty(dims, x.dtype) for x in inputs])
    elements = [x.transpose(*reduced, *kept).reshape(steps, *dims) for x in inputs]
    state = [np.broadcast_to(init, dims) for init in inits]
    if to_apply.monoid == "multiply" and type_of(inputs[0]) in (F32, F64):
        state = [product_in_order(elements[0], state[0])]
    # Not complex: `same_bits`, which finds where a run changes something, does not take those.
    elif (
        steps > _STEPS_PER_RESULT * math.prod(dims)
        and to_apply.is_elementwise  # effects would happen too often, and loops might not end
        and not any(x.dtype.kind == "c" for x in state)
    ):
        state = _folded_in_runs(to_apply, state, elements)
    else:
        for step in range(steps):
            state = _applied(to_apply, state, [x[step, ...] for x in elements])
    return to_apply.bundled([np.array(x) for x in state])


def _folded_in_runs(
    to_apply: Callee[Value], state: list[Array], elements: Sequence[Array]
) -> list[Array]:
    """Fold few results over many steps in runs. While no element of a run changes the state, the
    whole run may be applied to one state at once: a maximum and its index change a dozen times in a
    million elements. Where each step changes it, more and more are taken without looking."""
    step, length, blind = 0, 1, 1
    while step < len(elements[0]):
        run = [x[step : step + length] for x in elements]
        before = [np.broadcast_to(x, part.shape) for x, part in zip(state, run)]
        after = _applied(to_apply, before, run)
        same = [same_bits(x, y).reshape(len(run[0]), -1).all(axis=1) for x, y in zip(before, after)]
        changes = np.flatnonzero(~np.logical_and.reduce(same))
        if len(changes):
            # What follows the first change was computed from an old state, and is dropped.
            length = int(changes[0]) + 1
            state = [x[length - 1, ...] for x in after]
            step += length
            blind = min(2 * blind, _MOST_BLIND) if length == 1 else 1
            for at in range(step, min(step + blind - 1, len(elements[0]))):
                state = _applied(to_apply, state, [x[at, ...] for x in elements])
                step = at + 1
        else:
            step += length
            length, blind = min(2 * length, _LONGEST_RUN), 1
    return state


def _applied(
    to_apply: Callee[Value], state: Sequence[Array], others: Sequence[Array]
) -> list[Array]:
    """Apply one step to all folds; a scalar result, the same for all folds, is broadcast."""
    result = to_apply(*state, *others)
    parts = result if isinstance(result, tuple) else (result,)
    return [broadcast(part, one.shape) for part, one in zip(parts, state, strict=True)]


def _applied_where(
    inside: Array, to_apply: Callee[Value], state: Sequence[Array], others: Sequence[Array]
) -> list[Array]:
    """Apply one step to the folds that it is a step of, and to no other: one may have effects, or
    not end."""
    where = np.broadcast_to(inside, state[0].shape)
    after = _applied(to_apply, [x[where] for x in state], [x[where] for x in others])
    result = [np.array(x) for x in state]
    for whole, part in zip(result, after, strict=True):
        whole[where] = part
    return result


def reduce_window(
    *operands: Array,
    to_apply: Callee[Value],
    window: Window = Window(),  # noqa: B008  (frozen)
) -> Value:
    """Fold each window's elements into the init; positions without an element (padding, holes) are
    skipped."""
    arity = len(operands) // 2
    inputs, inits = operands[:arity], operands[arity:]
    element_type = type_of(inputs[0])
    windows = tuple(map(trimmed, window.dimensions, inputs[0].shape))
    monoid = to_apply.monoid if arity == 1 else None
    if monoid == "add" and element_type.is_inexact:
        return window_sum(inputs[0], windows, inits[0], element_type)
    if monoid and not has_order(monoid, element_type):
        return fold_windows(monoid, inputs[0], windows, inits[0])
    along = running(windows, inputs[0].shape)
    if along is not None and along.ends and inputs[0].size and to_apply.is_elementwise:
        return to_apply.bundled(_accumulated(inputs, inits, to_apply, along.axis))
    dims = tuple(map(positions, window.dimensions, inputs[0].shape))
    state = [np.broadcast_to(init, dims) for init in inits]
    for step in steps_of(window, inputs[0].shape):
        elements = [x[step.elements] for x in inputs]
        if to_apply.is_elementwise:
            after = _applied(to_apply, state, elements)
            state = [np.where(step.inside, new, old) for new, old in zip(after, state)]
        else:
            state = _applied_where(step.inside, to_apply, state, elements)
    return to_apply.bundled([np.array(x) for x in state])


def _accumulated(
    inputs: Sequence[Array], inits: Sequence[Array], to_apply: Callee[Value], axis: int
) -> list[Array]:
    """Fold the elements up to each one along an axis, the init first: the fold up to one goes on
    from that up to the one before."""
    rows = [np.moveaxis(x, axis, 0) for x in inputs]
    state = [np.broadcast_to(init, rows[0].shape[1:]) for init in inits]
    results = [np.empty_like(x) for x in rows]
    for step in range(len(rows[0])):
        state = _applied(to_apply, state, [x[step, ...] for x in rows])
        for result, one in zip(results, state, strict=True):
            result[step] = one
    return [np.ascontiguousarray(np.moveaxis(x, 0, axis)) for x in results]


class _Step(NamedTuple):
    """One offset within all windows: an index for the elements there, and a mask of the windows
    that have one."""

    elements: tuple[Array, ...]
    inside: Array


def steps_of(window: Window, dims: tuple[int, ...]) -> Iterator[_Step]:
    """Yield the offsets in row-major order, without those that no window has an element at."""
    if 0 in dims:
        return
    windows = tuple(map(trimmed, window.dimensions, dims))
    for offsets in np.ndindex(*(one.size for one in windows)):
        found = list(map(elements_at, windows, dims, offsets))
        if all(inside.any() for _, inside in found):
            everywhere = np.ones((), np.bool_)
            for _, inside in found:
                everywhere = np.logical_and.outer(everywhere, inside)
            yield _Step(np.ix_(*(index for index, _ in found)), everywhere)


def select_and_scatter(
    operand: Array,
    source: Array,
    init: Array,
    *,
    select: Callee[Value],
    scatter: Callee[Value],
    window: Window = Window(),  # noqa: B008  (frozen)
) -> Array:
    """Select one element in each window: the first, replaced by each candidate for which
    ``select(best, candidate)`` is false. Each source element is scattered to its window's element,
    into an array of inits."""
    target = selected(operand, source.shape, select, window)
    source = source[tuple(map(slice, target.shape))]
    chosen = target.ravel() >= 0
    ids, values = target.ravel()[chosen], source.ravel()[chosen]
    start = np.full(operand.size, init)
    (result,) = combined((start,), ids, (values,), scatter)
    return result.reshape(operand.shape)


def selected(
    operand: Array, source_dims: tuple[int, ...], select: Callee[Value], window: Window
) -> Array:
    """Return the linear offset of the element that each window selects, -1 for windows without one.
    Bounded operands may have fewer windows than ``source_dims``, or more."""
    dims = tuple(map(min, map(positions, window.dimensions, operand.shape), source_dims))
    common = tuple(map(slice, dims))
    best = np.zeros(dims, operand.dtype)
    target = np.full(dims, -1)
    numbers = np.arange(operand.size).reshape(operand.shape)
    for step in steps_of(window, operand.shape):
        elements = np.ix_(*(x.ravel()[part] for x, part in zip(step.elements, common)))
        candidate = operand[elements]
        # Until a window has met an element, `best` is a 0 that is no candidate.
        taken = np.array(np.broadcast_to(step.inside[common], dims))
        compared = taken & (target >= 0)
        taken[compared] = ~np.asarray(select(best[compared], candidate[compared]))
        best = np.where(taken, candidate, best)
        target = np.where(taken, numbers[elements], target)
    return target
