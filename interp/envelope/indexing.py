"""Sorting and scattering: where keys overlap, or additions may come in any order."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.walk import Callee
from interp import indexing as exact
from interp.envelope import budget
from interp.envelope.enclosure import (
    Array,
    Enclosure,
    all_certain,
    anything,
    between,
    is_certain,
    where,
)
from interp.envelope.reduction import sum_of
from interp.envelope.rules import flushed

__all__ = ["scatter", "sort"]

Value = Any


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
    fold = Callee(to_apply.computation, to_apply.call)
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
    known = count == 1 and all_certain(indices) and not element_type.is_complex
    if known and to_apply.monoid == "add" and element_type.is_float:
        return _summed(values[0], updates[0], scattered)
    if known and to_apply.monoid in ("maximum", "minimum", "and", "or"):
        return _by_ends(values[0], updates[0], scattered)
    if known and _keeps_last(to_apply):
        return _by_ends(values[0], updates[0], scattered)
    found = tuple(anything(x.shape, x.element_type) for x in values)
    return found if count > 1 else found[0]


def _keeps_last(to_apply: Callee[Any]) -> bool:
    """Whether an update replaces what is there."""
    parameters = to_apply.computation.parameters
    return len(parameters) == 2 and to_apply.computation.root == parameters[1].name


def _by_ends(value: Enclosure, update: Enclosure, scattered: Any) -> Enclosure:
    low = scattered(value.low, update.low)
    points = value.is_point and update.is_point
    high = low if points else scattered(value.high, update.high)
    if not (value.nan.any() or update.nan.any()):
        return Enclosure(low, high, np.broadcast_to(np.False_, low.shape))
    one, other = (x.nan.astype(low.dtype) for x in (value, update))
    reached = scattered(one, other) != 0
    return Enclosure(low, high, reached)


def _summed(value: Enclosure, update: Enclosure, scattered: Any) -> Enclosure:
    value, update = flushed(value), flushed(update)
    if budget.current() is budget.EXACT:
        return _by_ends(value, update, scattered)
    finite = all(np.isfinite(x.low).all() and np.isfinite(x.high).all() for x in (value, update))
    element_type = value.element_type
    if not finite or value.nan.any() or update.nan.any():
        return anything(value.shape, element_type)
    ends = [scattered(*pair) for pair in ((value.low, update.low), (value.high, update.high))]
    low, high = (end.astype(np.float64) for end in ends)
    most = [np.maximum(np.abs(x.low), np.abs(x.high)) for x in (value, update)]
    magnitudes = scattered(*most).astype(np.float64)
    terms = int(
        scattered(np.ones_like(value.low), np.ones_like(update.low)).astype(np.float64).max()
    )
    return sum_of(low, high, magnitudes * (1 + 2.0**-20), terms + 1, element_type)


def sort(
    *operands: Enclosure,
    dimensions: tuple[int, ...],
    to_apply: Callee[Any],
    is_stable: bool = False,
) -> Any:
    """The k-th of uncertain numbers is between the k-th of the low ends and that of the high ends.
    Rows with several operands are followed where all are certain."""
    del is_stable
    comparator = Callee(to_apply.computation, _on_points(to_apply))
    if len(operands) == 1 and operands[0].element_type.is_float and not operands[0].nan.any():
        ends = [
            exact.sort(x, dimensions=dimensions, to_apply=comparator) for x in operands[0].ends()
        ]
        return Enclosure(ends[0], ends[-1], operands[0].nan)
    lows = exact.sort(*(x.low for x in operands), dimensions=dimensions, to_apply=comparator)
    rows = lows if isinstance(lows, tuple) else (lows,)
    certain: Array = np.broadcast_to(np.True_, operands[0].shape)
    for operand in operands:
        certain = certain & is_certain(operand)
    certain = np.broadcast_to(certain.all(axis=dimensions, keepdims=True), certain.shape)
    results = tuple(_certainly(row, certain) for row in rows)
    return results if len(operands) > 1 else results[0]


def _on_points(callee: Callee[Any]) -> Any:
    """The comparator on arrays."""

    def compared(*arrays: Array) -> Array:
        result = callee(*(Enclosure(x, x, np.broadcast_to(np.False_, x.shape)) for x in arrays))
        answer: Array = result.low
        return answer

    return compared


def _certainly(row: Array, certain: Array) -> Enclosure:
    nan = (
        np.asarray(np.isnan(row)) if row.dtype.kind in "fcV" else np.broadcast_to(False, row.shape)
    )
    if certain.all():
        return Enclosure(row, row, nan)
    return where(
        certain, between(row, row, nan), anything(row.shape, between(row, row, nan).element_type)
    )
