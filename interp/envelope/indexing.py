"""Sorting and scattering: where keys overlap, or additions may come in any order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hlo.attributes import Window
from hlo.walk import Callee
from interp import indexing as exact
from interp import reduction
from interp.envelope import budget
from interp.envelope.complex_numbers import joined, parts
from interp.envelope.enclosure import (
    Array,
    Enclosure,
    all_certain,
    anything,
    between,
    finfo,
    is_certain,
    is_nan,
    point,
    where,
)
from interp.envelope.orders import on_points, open_where
from interp.envelope.reduction import sum_of
from interp.envelope.rules import compared, flushed

__all__ = ["scatter", "select_and_scatter", "sort"]

Value = Any

_MONOTONE = ("maximum", "minimum", "and", "or")


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
    """Float sums in any order; folds that grow with every element by their ends."""
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
        result = exact.scatter(target, indices.low, update, to_apply=fold, **attributes)
        assert isinstance(result, np.ndarray)
        return result

    element_type = values[0].element_type
    known = count == 1 and all_certain(indices)
    is_exact = not (element_type.is_float or element_type.is_complex)
    if (
        known
        and is_exact
        and to_apply.monoid
        and all_certain(values[0])
        and all_certain(updates[0])
    ):
        return point(scattered(values[0].low, updates[0].low))
    if known and to_apply.monoid == "add" and element_type.is_float:
        return _summed(values[0], updates[0], scattered)
    if known and to_apply.monoid == "add" and element_type.is_complex:
        pairs = zip(parts(values[0]), parts(updates[0]), strict=True)
        return joined(*(_summed(value, update, scattered) for value, update in pairs))
    if known and to_apply.monoid in _MONOTONE:
        return compared(_by_ends(values[0], updates[0], scattered))
    if known and _keeps_last(to_apply):
        several = _several(values[0], indices, updates[0], to_apply, attributes)
        return open_where(several, _by_ends(values[0], updates[0], scattered))
    found = tuple(anything(x.shape, x.element_type) for x in values)
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
    """Where the operand is certain, so is what each window selects: the rest is a scatter."""
    chosen = on_points(select)
    fold = on_points(scatter)

    def scattered(start: Array, values: Array) -> Array:
        return reduction.select_and_scatter(
            operand.low, values, start, select=chosen, scatter=fold, window=window
        )

    element_type = source.element_type
    if all_certain(operand) and scatter.monoid == "add" and element_type.is_float:
        return _summed(init, source, scattered)
    if all_certain(operand) and scatter.monoid == "add" and element_type.is_complex:
        pairs = zip(parts(init), parts(source), strict=True)
        return joined(*(_summed(start, values, scattered) for start, values in pairs))
    if all_certain(operand) and scatter.monoid in _MONOTONE:
        return compared(_by_ends(init, source, scattered))
    return anything(operand.shape, element_type)


def _keeps_last(to_apply: Callee[Any]) -> bool:
    """Whether an update replaces what is there."""
    parameters = to_apply.computation.parameters
    return len(parameters) == 2 and to_apply.computation.root == parameters[1].name


def _several(
    value: Enclosure,
    indices: Enclosure,
    update: Enclosure,
    to_apply: Callee[Any],
    attributes: dict[str, Any],
) -> Array:
    """Where different updates meet, of which any may come last."""
    if budget.current() is budget.EXACT:
        return np.asarray(np.False_)

    def meet(*arguments: Array) -> tuple[Array, ...]:
        """What is there, whether that is an update, and whether different ones came."""
        low, high, nan, met, several, *new = arguments
        same = nan == new[2]
        for one, other in ((low, new[0]), (high, new[1])):
            same &= (one == other) | (is_nan(one) & is_nan(other))
        return (*new[:3], np.broadcast_to(np.True_, met.shape), several | (met & ~same))

    none, all_ = np.zeros(value.shape, np.bool_), np.ones(update.shape, np.bool_)
    before = (value.low, value.high, np.broadcast_to(value.nan, value.shape), none, none)
    after = (update.low, update.high, np.broadcast_to(update.nan, update.shape), all_, all_)
    fold = replace(to_apply, call=meet)
    found = exact.scatter(*before, indices.low, *after, to_apply=fold, **attributes)
    return np.asarray(found[4])


def _by_ends(value: Enclosure, update: Enclosure, scattered: Any) -> Enclosure:
    low = scattered(value.low, update.low)
    points = value.is_point and update.is_point
    high = low if points else scattered(value.high, update.high)
    if not (value.nan.any() or update.nan.any()):
        return Enclosure(low, high, np.broadcast_to(np.False_, low.shape))
    flags = [x.nan.astype(low.dtype) for x in (value, update)]
    free = [(~x.nan).astype(low.dtype) for x in (value, update)]
    one = np.ones((), low.dtype)
    reached = (scattered(*flags) != 0) | (scattered(*free) != one)  # the least, or the greatest
    return Enclosure(low, high, reached)


def _summed(value: Enclosure, update: Enclosure, scattered: Any) -> Enclosure:
    value, update = flushed(value), flushed(update)
    if budget.current() is budget.EXACT:
        return _by_ends(value, update, scattered)
    special = [~(np.isfinite(x.low) & np.isfinite(x.high)) | x.nan for x in (value, update)]
    if not any(x.any() for x in special):
        return _of_finite(value, update, scattered)
    none = np.zeros((), value.low.dtype)
    zeroed = [
        Enclosure(np.where(mask, none, x.low), np.where(mask, none, x.high), x.nan & ~mask)
        for x, mask in zip((value, update), special)
    ]
    result = _of_finite(zeroed[0], zeroed[1], scattered)
    met = scattered(*(x.astype(value.low.dtype) for x in special)) != 0
    return where(met, anything(result.shape, result.element_type), result)


def _of_finite(value: Enclosure, update: Enclosure, scattered: Any) -> Enclosure:
    element_type = value.element_type
    ends = [scattered(*pair) for pair in ((value.low, update.low), (value.high, update.high))]
    low, high = (end.astype(np.float64) for end in ends)
    most = [np.maximum(np.abs(x.low), np.abs(x.high)) for x in (value, update)]
    magnitudes = scattered(*most).astype(np.float64)
    terms = int(
        scattered(np.ones_like(value.low), np.ones_like(update.low))
        .astype(np.float64)
        .max(initial=0)
    )
    magnitudes = magnitudes * (1 + 2.0**-20)
    return sum_of(low, high, magnitudes, terms + 1, element_type, accumulates=False)


def sort(
    *operands: Enclosure,
    dimensions: tuple[int, ...],
    to_apply: Callee[Any],
    is_stable: bool = False,
) -> Any:
    """The k-th of uncertain numbers is between the k-th of the low ends and that of the high ends.
    Rows with several operands are followed where all are certain; what compares equal may come in
    any order, unless the sort is stable."""
    comparator = on_points(to_apply)
    numbers = operands[0].element_type.is_float and not operands[0].nan.any()
    keys = _tied(operands[0])
    if len(operands) == 1 and numbers and _orders_numbers(to_apply, comparator, keys.ends()):
        ends = [exact.sort(x, dimensions=dimensions, to_apply=comparator) for x in keys.ends()]
        return Enclosure(ends[0], ends[-1], operands[0].nan)
    lows = exact.sort(*(x.low for x in operands), dimensions=dimensions, to_apply=comparator)
    rows = lows if isinstance(lows, tuple) else (lows,)
    certain: Array = np.broadcast_to(np.True_, operands[0].shape)
    for operand in operands:
        certain = certain & is_certain(_tied(operand))
    certain = np.broadcast_to(certain.all(axis=dimensions, keepdims=True), certain.shape)
    if not is_stable and budget.current() is not budget.EXACT:
        certain = certain & ~_interchangeable(rows, dimensions[0], comparator)
    results = tuple(_certainly(row, certain) for row in rows)
    return results if len(operands) > 1 else results[0]


# With bits, which JAX and XLA compare as integers, but without arithmetic.
_COMPARES = frozenset(
    (
        *("parameter", "constant", "compare", "select", "and", "or", "not", "xor"),
        *("bitcast", "bitcast-convert", "broadcast", "copy", "reshape"),
    )
)


def _orders_numbers(to_apply: Callee[Any], comparator: Callee[Any], ends: Sequence[Array]) -> bool:
    """Whether numbers are compared as they are, the ends among them: their floors, say, would have
    another order."""
    if not all(i.opcode in _COMPARES for i in to_apply.computation.instructions):
        return False
    numbers = np.unique(np.concatenate([end.astype(np.float64).reshape(-1) for end in ends]))
    numbers = numbers.astype(ends[0].dtype)
    up, down = comparator(numbers[:-1], numbers[1:]), comparator(numbers[1:], numbers[:-1])
    return bool((up & ~down).all() or (down & ~up).all())


def _interchangeable(rows: tuple[Array, ...], axis: int, comparator: Callee[Any]) -> Array:
    """Where sorted rows compare equal to others that differ from them."""
    lanes = [np.moveaxis(row, axis, -1) for row in rows]
    if not lanes[0].size:
        return np.zeros(rows[0].shape, np.bool_)
    pairs = [(lane[..., :-1], lane[..., 1:]) for lane in lanes]
    equal = ~np.asarray(comparator(*(side for pair in pairs for side in pair)))
    equal = equal == ~np.asarray(comparator(*(side for pair in pairs for side in pair[::-1])))
    differ = np.logical_or.reduce([(a != b) & ~(is_nan(a) & is_nan(b)) for a, b in pairs])
    run = np.zeros(lanes[0].shape, np.int64)
    run[..., 1:] = np.cumsum(~equal, axis=-1)
    count = math.prod(run.shape[:-1])
    run += np.arange(count).reshape(*run.shape[:-1], 1) * run.shape[-1]
    mixed = np.zeros(run.size, np.bool_)
    mixed[run[..., 1:][equal & differ]] = True
    return np.moveaxis(mixed[run], -1, axis)


def _tied(keys: Enclosure) -> Enclosure:
    """Where a peer that flushes takes subnormals for zeros, they come in any order."""
    if not keys.element_type.is_float or not budget.current().flushes:
        return keys
    tiny = finfo(keys.low.dtype).smallest_normal
    low = np.where((keys.low < tiny) & (keys.low > -tiny), -tiny, keys.low)
    high = np.where((keys.high < tiny) & (keys.high > -tiny), tiny, keys.high)
    tied = (low != keys.low) | (high != keys.high)
    zeros = (keys.low == 0) & (keys.high == 0)
    if not (tied & ~zeros).any():
        return keys
    return Enclosure(low, high, keys.nan)


def _certainly(row: Array, certain: Array) -> Enclosure:
    nan = (
        np.asarray(np.isnan(row)) if row.dtype.kind in "fcV" else np.broadcast_to(False, row.shape)
    )
    if certain.all():
        return Enclosure(row, row, nan)
    return where(
        certain, between(row, row, nan), anything(row.shape, between(row, row, nan).element_type)
    )
