"""Enclose scatter and select-and-scatter: updates of one element may be applied in any order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from hlo.attributes import Window
from hlo.values import Array
from hlo.walk import Callee
from interp.algorithms.scatter_updates import ScatterDimensions, targets
from interp.envelope import budget
from interp.envelope.blocks import in_blocks
from interp.envelope.boolean_masks import always, is_always, is_ever, never
from interp.envelope.complex_numbers import joined, parts
from interp.envelope.enclosure import (
    Enclosure,
    all_certain,
    anything,
    is_nan,
    is_nan_alone,
    largest,
    least,
    moved,
    nan_where,
    point,
    where,
)
from interp.envelope.float_sums.addends import Addends, counted, grid_of, is_zero, may_have_grid
from interp.envelope.float_sums.sums import exactly_summed, sum_of
from interp.envelope.folds.fold_orders import grows, on_points, open_where
from interp.envelope.interval_rules import compared, flushed
from interp.envelope.ops.choices import compares_alone, open_choices
from interp.envelope.ops.updating import put, updated
from interp.envelope.sums_in_order import or_rounded, ordered_addition
from interp.exact.conversion import type_of
from interp.ops import indexing as exact
from interp.ops import reduction

__all__ = ["scatter", "select_and_scatter"]


def scatter(
    *operands: Enclosure,
    update_window_dims: tuple[int, ...],
    inserted_window_dims: tuple[int, ...],
    scatter_dims_to_operand_dims: tuple[int, ...],
    index_vector_dim: int,
    to_apply: Callee[Any],
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    input_batching_dims: tuple[int, ...] = (),
    scatter_indices_batching_dims: tuple[int, ...] = (),
) -> Any:
    """Enclose scatter: sums of floats in any order, monotone folds by their ends, replacements
    where different updates of one element are open, anything where indices are uncertain."""
    del indices_are_sorted, unique_indices
    count = len(operands) // 2
    values, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    fold = on_points(to_apply)
    attributes: dict[str, Any] = {
        "update_window_dims": update_window_dims,
        "inserted_window_dims": inserted_window_dims,
        "scatter_dims_to_operand_dims": scatter_dims_to_operand_dims,
        "index_vector_dim": index_vector_dim,
        "input_batching_dims": input_batching_dims,
        "scatter_indices_batching_dims": scatter_indices_batching_dims,
    }

    def scattered(target: Array, update: Array) -> Array:
        # Of no updates it is the target, which arithmetic made a number if it has no dimensions.
        return np.asarray(exact.scatter(target, indices.low, update, to_apply=fold, **attributes))

    element_type = values[0].element_type
    known = count == 1 and all_certain(indices)
    is_exact = not element_type.is_inexact
    if (
        known
        and is_exact
        and to_apply.monoid
        and all_certain(values[0])
        and all_certain(updates[0])
    ):
        return point(scattered(values[0].low, updates[0].low))
    if known and to_apply.monoid == "add" and element_type.is_float:

        def in_order(target: Array, update: Array) -> Array:
            added = ordered_addition(to_apply)
            return np.asarray(
                exact.scatter(target, indices.low, update, to_apply=added, **attributes)
            )

        result = _added(values[0], updates[0], indices.low, attributes, scattered)
        return or_rounded(result, (values[0], updates[0]), in_order)
    if known and to_apply.monoid == "add" and element_type.is_complex:
        pairs = zip(parts(values[0]), parts(updates[0]), strict=True)
        return joined(*(_added(*pair, indices.low, attributes, scattered) for pair in pairs))
    if known and grows(to_apply.monoid, values[0], updates[0]):
        return compared(_by_ends(values[0], updates[0], scattered))
    if known and _keeps_last(to_apply):
        several = _several(values[0], indices, updates[0], to_apply, attributes)
        return open_where(several, _by_ends(values[0], updates[0], scattered))
    if not all_certain(indices):
        found = tuple(anything(x.shape, x.element_type) for x in values)
        return found if count > 1 else found[0]
    offset, inside = targets(
        values[0].shape, indices.low, updates[0].shape, ScatterDimensions(**attributes)
    )
    flat = updated(
        [moved(lambda x: x.reshape(-1), x) for x in values],
        offset[inside],
        [moved(lambda x: x[inside], x) for x in updates],
        to_apply,
    )
    found = tuple(moved(lambda x: x.reshape(values[0].shape), x) for x in flat)
    return found if count > 1 else found[0]


def select_and_scatter(
    operand: Enclosure,
    source: Enclosure,
    init: Enclosure,
    *,
    select: Callee[Any],
    scatter: Callee[Any],
    window: Window = Window(),  # noqa: B008  (frozen)
) -> Enclosure:
    """Enclose select-and-scatter: a scatter to what windows choose of the operand's low ends, and
    anything in what other elements a window may choose. With padding XLA searches a window in
    another order, so among equal elements any may be chosen."""
    is_padded = budget.current() is not budget.EXACT and _has_padding(window)
    # What is no order by size chooses others in another order, as `differs` does the last or first.
    if is_padded and source.low.size and not compares_alone(select.computation):
        return anything(operand.shape, source.element_type)
    result = _selected_and_scattered(operand, source, init, select, scatter, window)
    # `flushed` returns the operand itself if nothing in it may be flushed.
    if not all_certain(operand) or flushed(operand) is not operand:
        open_ = open_choices(operand, source.shape, select, window, in_any_order=is_padded)
        result = open_where(open_, result)
    if not is_padded:
        return result
    values = operand.low.ravel()
    # No better than what the padding of a window may hold.
    extreme = (values == least(operand.element_type)) | (values == largest(operand.element_type))
    extreme |= (operand.high == largest(operand.element_type)).ravel()
    _, alike, counts = np.unique(values, return_inverse=True, return_counts=True)
    if not is_ever(extreme) and counts.max(initial=1) == 1:
        return result
    target = reduction.selected(operand.low, source.shape, on_points(select), window)
    met = target[target >= 0]
    chosen = np.zeros(counts.size, np.bool_)  # by value
    chosen[alike[met]] = True
    open_ = (chosen & (counts > 1))[alike]
    open_[met] |= extreme[met]
    return where(open_.reshape(operand.shape), anything(operand.shape, source.element_type), result)


def _has_padding(window: Window) -> bool:
    return any(d.padding_low > 0 or d.padding_high > 0 for d in window.dimensions)


def _selected_and_scattered(
    operand: Enclosure,
    source: Enclosure,
    init: Enclosure,
    select: Callee[Any],
    scatter: Callee[Any],
    window: Window,
) -> Enclosure:
    chosen = on_points(select)
    fold = on_points(scatter)

    def scattered(start: Array, values: Array) -> Array:
        return reduction.select_and_scatter(
            operand.low, values, start, select=chosen, scatter=fold, window=window
        )

    element_type = source.element_type
    if scatter.monoid == "add" and element_type.is_float:
        return _summed(init, source, scattered)
    if scatter.monoid == "add" and element_type.is_complex:
        pairs = zip(parts(init), parts(source), strict=True)
        return joined(*(_summed(start, values, scattered) for start, values in pairs))
    if grows(scatter.monoid, init, source):
        return compared(_by_ends(init, source, scattered))
    target = reduction.selected(operand.low, source.shape, chosen, window)
    common = tuple(map(slice, target.shape))
    start = moved(lambda x: np.broadcast_to(x, (operand.low.size,)), init)
    met = target >= 0
    values = moved(lambda x: x[common][met], source)
    (result,) = updated([start], target[met], [values], scatter)
    return moved(lambda x: x.reshape(operand.shape), result)


def _keeps_last(to_apply: Callee[Any]) -> bool:
    """Test for a computation that returns its second parameter: the update replaces the element."""
    parameters = to_apply.computation.parameters
    return len(parameters) == 2 and to_apply.computation.root == parameters[1].name


def _several(
    value: Enclosure,
    indices: Enclosure,
    update: Enclosure,
    to_apply: Callee[Any],
    attributes: dict[str, Any],
) -> Array:
    """Test which elements get different updates, any of which may come last."""
    if budget.current() is budget.EXACT:
        return np.asarray(np.False_)

    def meet(*arguments: Array) -> tuple[Array, ...]:
        """Combine (low, high, nan, is an update, has different updates) of an element with an
        update."""
        low, high, nan, met, several, *new = arguments
        same = nan == new[2]
        for one, other in ((low, new[0]), (high, new[1])):
            same &= _are_same(one, other)
        return (*new[:3], always(met.shape), several | (met & ~same))

    none, all_ = np.zeros(value.shape, np.bool_), np.ones(update.shape, np.bool_)
    before = (value.low, value.high, np.broadcast_to(value.nan, value.shape), none, none)
    after = (update.low, update.high, np.broadcast_to(update.nan, update.shape), all_, all_)
    fold = replace(to_apply, call=meet)
    found = exact.scatter(*before, indices.low, *after, to_apply=fold, **attributes)
    return np.asarray(found[4])


def _are_same(one: Array, other: Array) -> Array:
    """Test for equal numbers, zeros of one sign and NaN."""
    if one.dtype.kind == "c":
        return _are_same(one.real, other.real) & _are_same(one.imag, other.imag)
    same = (one == other) | (is_nan(one) & is_nan(other))
    if type_of(one).is_float:
        same = same & ((one != 0) | (np.signbit(one) == np.signbit(other)))
    return np.asarray(same)


def _by_ends(value: Enclosure, update: Enclosure, scattered: Any) -> Enclosure:
    low = scattered(value.low, update.low)
    points = value.is_point and update.is_point
    high = low if points else scattered(value.high, update.high)
    if not (is_ever(value.nan) or is_ever(update.nan)):
        return Enclosure(low, high, never(low.shape))
    # A NaN reaches an element if its flag shows in the fold of the flags: a 1 among zeros shows in
    # a maximum, a 0 among ones in a minimum.
    flags = [x.nan.astype(low.dtype) for x in (value, update)]
    free = [(~x.nan).astype(low.dtype) for x in (value, update)]
    one = np.ones((), low.dtype)
    reached = (scattered(*flags) != 0) | (scattered(*free) != one)  # the least, or the greatest
    return Enclosure(low, high, reached)


def _added(
    value: Enclosure,
    update: Enclosure,
    indices: Array,
    attributes: dict[str, Any],
    scattered: Any,
) -> Enclosure:
    """Enclose the sums where updates land. Elsewhere the value is only rounded again, in blocks,
    since that is most of a table of embeddings."""
    if budget.current() is budget.EXACT:
        return _summed(value, update, scattered)
    offset, inside = targets(value.shape, indices, update.shape, ScatterDimensions(**attributes))
    met, segments = np.unique(offset[inside], return_inverse=True)
    flat, taken = moved(lambda x: x.reshape(-1), value), moved(lambda x: x[inside], update)
    nothing = moved(lambda x: x[:0], taken)

    def added(target: Array, update: Array) -> Array:
        """Add in float64, whose roundings :func:`sum_of` accounts for."""
        return np.asarray(target + np.bincount(segments, update.astype(np.float64), met.size))

    def rounded(one: Enclosure) -> Enclosure:
        result = _summed(one, nothing, lambda target, none: target)
        return where(np.isfinite(one.low) & np.isfinite(one.high) & ~one.nan, result, one)

    kept = in_blocks(rounded, [flat])
    sums = _summed(moved(lambda x: x[met], flat), taken, added)
    return moved(lambda x: x.reshape(value.shape), put(kept, met, sums))


def _summed(value: Enclosure, update: Enclosure, scattered: Any) -> Enclosure:
    if budget.current() is budget.EXACT:

        def meets(mask: Array) -> Array:
            return np.asarray(scattered(np.zeros(value.shape), mask.astype(np.float64)) != 0)

        return exactly_summed(lambda new, old: scattered(old, new), meets, update, value)
    value, update = flushed(value), flushed(update)
    special = [~(np.isfinite(x.low) & np.isfinite(x.high)) | x.nan for x in (value, update)]
    if not any(is_ever(x) for x in special):
        return _of_finite(value, update, scattered)
    none = np.zeros((), value.low.dtype)
    zeroed = [
        Enclosure(np.where(mask, none, x.low), np.where(mask, none, x.high), x.nan & ~mask)
        for x, mask in zip((value, update), special)
    ]
    result = _of_finite(zeroed[0], zeroed[1], scattered)

    def met(masks: Iterable[Array]) -> Any:
        return scattered(*(mask.astype(np.float64) for mask in masks)) != 0

    opened = where(met(special), anything(result.shape, result.element_type), result)
    return nan_where(met(map(is_nan_alone, (value, update))), opened)


def _of_finite(value: Enclosure, update: Enclosure, scattered: Any) -> Enclosure:
    element_type = value.element_type
    ends = [[x.low.astype(np.float64), x.high.astype(np.float64)] for x in (value, update)]
    low, high = (scattered(*pair) for pair in zip(*ends, strict=True))
    magnitudes = scattered(*(np.maximum(np.abs(a), np.abs(b)) for a, b in ends))
    terms = scattered(np.ones(value.shape), np.ones(update.shape)) + 1
    met = [(~is_zero(x)).astype(np.float64) for x in ends]
    count = scattered(*met) if any(not is_always(x) for x in met) else terms - 1
    worth = all(may_have_grid(x, element_type) for x in ends)
    grid = min(map(grid_of, ends)) if worth else 0.0
    known = Addends(counted(count, terms), grid)
    return sum_of(low, high, magnitudes, known, element_type)
