"""Define instructions by their meaning: one element at a time, for small arrays only.

Sources: StableHLO's specification of the op of the same name, and XLA's ``hlo_evaluator.cc`` where
that says more (padding and holes that are skipped, windows out of bounds that are left out). A
``Fold`` gives what a computation of scalars makes of initial values and then of elements in order,
a ``Predicate`` what one says of two elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hlo.attributes import ConvolutionDimensions, Window, WindowDimension
from hlo.types import ArrayShape
from hlo.values import Array
from interp.exact.rounding import rounded_fraction

Index = tuple[int, ...]
Values = tuple[Array, ...]
Fold = Callable[[Values, list[Values]], Values]
Predicate = Callable[..., bool]


def reduce(
    inputs: Sequence[Array], inits: Sequence[Array], dimensions: Sequence[int], fold: Fold
) -> list[Array]:
    """Every result: the init, then the elements in row-major order."""
    kept = [d for d in range(inputs[0].ndim) if d not in dimensions]
    results = [np.empty([inputs[0].shape[d] for d in kept], x.dtype) for x in inputs]
    for place in np.ndindex(results[0].shape):
        indices = [
            index
            for index in np.ndindex(inputs[0].shape)
            if all(index[d] == i for d, i in zip(kept, place, strict=True))
        ]
        _set_all(results, place, fold(tuple(inits), [_at(inputs, index) for index in indices]))
    return results


def reduce_window(
    inputs: Sequence[Array], inits: Sequence[Array], window: Window, fold: Fold
) -> list[Array]:
    """Every result: the init, then the elements that are in the window."""
    dims = [
        positions(d, extent) for d, extent in zip(window.dimensions, inputs[0].shape, strict=True)
    ]
    results = [np.empty(dims, x.dtype) for x in inputs]
    for place in np.ndindex(*dims):
        elements = [_at(inputs, index) for index in _inside(window, place, inputs[0].shape)]
        _set_all(results, place, fold(tuple(inits), elements))
    return results


def select_and_scatter(
    operand: Array, source: Array, init: Array, window: Window, select: Predicate, scatter: Fold
) -> Array:
    """A window's element that stays against those after it gets the window's element of source."""
    result, given = np.full(operand.shape, init), dict[Index, list[Values]]()
    for place in np.ndindex(source.shape):
        chosen: Index | None = None
        for index in _inside(window, place, operand.shape):
            if chosen is None or not select(operand[chosen], operand[index]):
                chosen = index
        if chosen is not None:
            given.setdefault(chosen, []).append((source[place],))
    for index, elements in given.items():
        (result[index],) = scatter((init,), elements)
    return result


def _at(arrays: Sequence[Array], index: Index) -> Values:
    return tuple(x[index] for x in arrays)


def _set_all(arrays: Sequence[Array], index: Index, values: Values) -> None:
    for array, value in zip(arrays, values, strict=True):
        array[index] = value


def positions(window: WindowDimension, extent: int) -> int:
    """How many windows fit into the dilated and padded dimension."""
    dilated = max(0, (extent - 1) * window.base_dilation + 1)
    padded = window.padding_low + dilated + window.padding_high
    reach = (window.size - 1) * window.window_dilation + 1
    return sum(start + reach <= padded for start in range(0, max(padded, 0), window.stride))


def _inside(window: Window, place: Index, dims: Sequence[int]) -> Iterator[Index]:
    """The elements of the window at a place, in its row-major order."""
    for offset in np.ndindex(*(d.size for d in window.dimensions)):
        index = _element(window, place, offset, dims)
        if index is not None:
            yield index


def _element(window: Window, place: Index, offset: Index, dims: Sequence[int]) -> Index | None:
    index: list[int] = []
    for p, o, d, extent in zip(place, offset, window.dimensions, dims, strict=True):
        position = p * d.stride + o * d.window_dilation - d.padding_low
        if position % d.base_dilation or not 0 <= position // d.base_dilation < extent:
            return None
        index.append(position // d.base_dilation)
    return tuple(index)


def gather(operand: Array, indices: Array, shape: ArrayShape, **attributes: Any) -> Array:
    """Each element of a slice whose start is brought into bounds."""
    offset_dims = attributes["offset_dims"]
    operand_batch = attributes.get("operand_batching_dims", ())
    indices_batch = attributes.get("start_indices_batching_dims", ())
    apart = (*attributes["collapsed_slice_dims"], *operand_batch)
    kept = [d for d in range(operand.ndim) if d not in apart]
    sizes = attributes["slice_sizes"]
    result = np.empty(shape.dims, operand.dtype)
    for place in np.ndindex(*shape.dims):
        batch = [i for d, i in enumerate(place) if d not in offset_dims]
        vector = _vector(indices, batch, attributes["index_vector_dim"])
        index = [0] * operand.ndim
        for d, start in zip(attributes["start_index_map"], vector, strict=True):
            index[d] = min(max(start, 0), operand.shape[d] - sizes[d])
        for d, of in zip(operand_batch, indices_batch, strict=True):
            index[d] = batch[of - (of > attributes["index_vector_dim"])]
        for d, out in zip(kept, offset_dims, strict=True):
            index[d] += place[out]
        result[place] = operand[tuple(index)]
    return result


def scatter(
    inputs: Sequence[Array], indices: Array, updates: Sequence[Array], fold: Fold,
    **attributes: Any,
) -> list[Array]:  # fmt: skip
    """Updates in row-major order; of a window that is not in bounds, none."""
    window_dims = attributes["update_window_dims"]
    input_batch = attributes.get("input_batching_dims", ())
    indices_batch = attributes.get("scatter_indices_batching_dims", ())
    apart = (*attributes["inserted_window_dims"], *input_batch)
    dims, update_dims = inputs[0].shape, updates[0].shape
    kept = [d for d in range(len(dims)) if d not in apart]
    given = dict[Index, list[Values]]()
    for place in np.ndindex(update_dims):
        batch = [i for d, i in enumerate(place) if d not in window_dims]
        vector = _vector(indices, batch, attributes["index_vector_dim"])
        first, size, index = [0] * len(dims), [1] * len(dims), [0] * len(dims)
        for d, start in zip(attributes["scatter_dims_to_operand_dims"], vector, strict=True):
            first[d] = start
        for d, of in zip(input_batch, indices_batch, strict=True):
            first[d] = batch[of - (of > attributes["index_vector_dim"])]
        for d, at in zip(kept, window_dims, strict=True):
            size[d], index[d] = update_dims[at], place[at]
        if any(f < 0 or f + s > n for f, s, n in zip(first, size, dims, strict=True)):
            continue
        target = tuple(f + i for f, i in zip(first, index, strict=True))
        given.setdefault(target, []).append(_at(updates, place))
    results = [x.copy() for x in inputs]
    for target, elements in given.items():
        _set_all(results, target, fold(_at(inputs, target), elements))
    return results


def _vector(indices: Array, batch: Sequence[int], dimension: int) -> list[int]:
    """The index vector at a place of the batch."""
    if dimension == indices.ndim:
        return [int(indices[tuple(batch)])]
    size = indices.shape[dimension]
    return [int(indices[(*batch[:dimension], i, *batch[dimension:])]) for i in range(size)]


def dynamic_slice(operand: Array, starts: Sequence[Array], sizes: Sequence[int]) -> Array:
    result = np.empty(sizes, operand.dtype)
    for place in np.ndindex(*sizes):
        result[place] = operand[_shifted(place, starts, sizes, operand.shape)]
    return result


def dynamic_update_slice(operand: Array, update: Array, starts: Sequence[Array]) -> Array:
    result = operand.copy()
    for place in np.ndindex(update.shape):
        result[_shifted(place, starts, update.shape, operand.shape)] = update[place]
    return result


def _shifted(
    place: Index, starts: Sequence[Array], sizes: Sequence[int], dims: Sequence[int]
) -> Index:
    flat = [s for start in starts for s in start.reshape(-1)]  # scalars, or one vector
    first = [min(max(int(s), 0), n - k) for s, k, n in zip(flat, sizes, dims, strict=True)]
    return tuple(f + i for f, i in zip(first, place, strict=True))


def sort(inputs: Sequence[Array], dimension: int, before: Predicate) -> list[Array]:
    """Sort by insertion: an element goes before those that it comes before."""
    results = [x.copy() for x in inputs]
    extent = inputs[0].shape[dimension]
    others = (*inputs[0].shape[:dimension], *inputs[0].shape[dimension + 1 :])
    for place in np.ndindex(*others):
        row = [(*place[:dimension], i, *place[dimension:]) for i in range(extent)]
        order: list[Index] = []
        for index in row:
            at = len(order)
            while at and before(*(x[i] for x in inputs for i in (index, order[at - 1]))):
                at -= 1
            order.insert(at, index)
        for result, x in zip(results, inputs, strict=True):
            for index, source in zip(row, order, strict=True):
                result[index] = x[source]
    return results


def dot(
    lhs: Array, rhs: Array, shape: ArrayShape, *,
    lhs_contracting_dims: Sequence[int], rhs_contracting_dims: Sequence[int],
    lhs_batch_dims: Sequence[int], rhs_batch_dims: Sequence[int],
) -> Array:  # fmt: skip
    result = np.empty(shape.dims, shape.element_type.numpy)
    frees = [
        [d for d in range(x.ndim) if d not in (*batch, *contracting)]
        for x, batch, contracting in (
            (lhs, lhs_batch_dims, lhs_contracting_dims),
            (rhs, rhs_batch_dims, rhs_contracting_dims),
        )
    ]
    batches, middle = len(lhs_batch_dims), len(lhs_batch_dims) + len(frees[0])
    for place in np.ndindex(*shape.dims):
        factors = []
        for summed in np.ndindex(*(lhs.shape[d] for d in lhs_contracting_dims)):
            left, right = [0] * lhs.ndim, [0] * rhs.ndim
            _set(left, lhs_batch_dims, place[:batches])
            _set(right, rhs_batch_dims, place[:batches])
            _set(left, frees[0], place[batches:middle])
            _set(right, frees[1], place[middle:])
            _set(left, lhs_contracting_dims, summed)
            _set(right, rhs_contracting_dims, summed)
            factors.append((lhs[tuple(left)], rhs[tuple(right)]))
        result[place] = sum_of_products(factors, shape)
    return result


def _set(index: list[int], dimensions: Sequence[int], values: Sequence[int]) -> None:
    for d, value in zip(dimensions, values, strict=True):
        index[d] = value


def convolution(
    lhs: Array, rhs: Array, shape: ArrayShape, *, dim_labels: ConvolutionDimensions,
    window: Window = Window(),  # noqa: B008  (frozen)
    feature_group_count: int = 1, batch_group_count: int = 1,
) -> Array:  # fmt: skip
    """result[b, o, place]: the sum over input features of the group of o, and over the window."""
    labels, result = dim_labels, np.empty(shape.dims, shape.element_type.numpy)
    sizes = [d.size for d in window.dimensions]
    batch = lhs.shape[labels.input_batch] // batch_group_count
    inner = rhs.shape[labels.kernel_input_feature]
    outer = rhs.shape[labels.kernel_output_feature]
    for place in np.ndindex(*shape.dims):
        b, o = place[labels.output_batch], place[labels.output_feature]
        group = o // (outer // max(feature_group_count, batch_group_count))
        at = tuple(place[d] for d in labels.output_spatial)
        factors = []
        for i in range(inner):
            for offset in np.ndindex(*sizes):
                dims = [lhs.shape[d] for d in labels.input_spatial]
                element = _element(window, at, offset, dims)
                if element is None:
                    continue
                left, right = [0] * lhs.ndim, [0] * rhs.ndim
                left[labels.input_batch] = b + batch * group * (batch_group_count > 1)
                left[labels.input_feature] = i + inner * group * (feature_group_count > 1)
                right[labels.kernel_input_feature], right[labels.kernel_output_feature] = i, o
                _set(left, labels.input_spatial, element)
                for d, k, w in zip(labels.kernel_spatial, offset, window.dimensions, strict=True):
                    right[d] = w.size - 1 - k if w.reversal else k
                factors.append((lhs[tuple(left)], rhs[tuple(right)]))
        result[place] = sum_of_products(factors, shape)
    return result


def sum_of_products(factors: Sequence[tuple[Array, Array]], shape: ArrayShape) -> Any:
    """Add up products of integers modulo the result's range, and of floats up to f32 exactly, from
    +0, rounded once."""
    element_type = shape.element_type
    if element_type.kind == "pred":
        return any(bool(one) and bool(other) for one, other in factors)
    if element_type.is_integer:
        total = sum(int(one) * int(other) for one, other in factors)
        low = -(2 ** (element_type.bits - 1)) if element_type.kind == "signed" else 0
        return (total - low) % 2**element_type.bits + low
    with np.errstate(all="ignore"):
        return exact_sum([0.0, *(float(one) * float(other) for one, other in factors)], shape)


def exact_sum(addends: Sequence[float], shape: ArrayShape) -> Any:
    """The real sum, rounded once to a float type. Of -0 only it is -0. A NaN is the positive one,
    whose sign decides what it becomes in a type without NaN."""
    dtype = shape.element_type.numpy
    if not all(map(math.isfinite, addends)):
        limit = sum(x for x in addends if not math.isfinite(x))
        return np.float64(math.nan if math.isnan(limit) else limit).astype(dtype)
    if all(x == 0 and math.copysign(1, x) < 0 for x in addends):
        return np.float64(-0.0).astype(dtype)
    return rounded_fraction(sum(map(Fraction, addends), Fraction(0)), shape.element_type)
