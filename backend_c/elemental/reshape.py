"""Build one element of a reshape: the operand's element at the same row-major offset."""

from __future__ import annotations

import math
from collections.abc import Sequence

from backend_c.ir import index as ix
from backend_c.ir.bounded_elements import product
from backend_c.ir.element import Element, array_reader, zero
from backend_c.ir.loop_ir import INDEX, Expr
from backend_c.ir.scope import apply
from hlo.dynamic_sizes import reshape_runs
from hlo.types import PRED, ArrayShape, bounded

__all__ = ["dynamic_reshape", "reshape"]


def reshape(operand: Element, *, shape: ArrayShape, inferred_dimension: int = -1) -> Element:
    """result[i] = operand[delinearize(linearize(i, shape.dims), operand.dims)]."""
    if operand.sizes:
        return _reshape_bounded(operand, shape, inferred_dimension)
    dims = operand.shape.dims
    if 0 in dims:  # a reduction is written out around elements that there are none of
        return Element(_without_layout(shape), lambda *index: zero(shape.element_type))

    if operand.array is not None and not shape.is_dynamic:
        # Row-major order is kept, so the result lies where the operand does.
        return array_reader(operand.array, _without_layout(shape))

    def at(*index: Expr) -> Expr:
        return operand.at(*_reshaped_index(index, shape.dims, dims))

    return Element(_without_layout(shape), at)


def _reshape_bounded(operand: Element, shape: ArrayShape, inferred_dimension: int) -> Element:
    """Reshape with bounded dimensions: each run of dimensions in row-major order of what is there.

    A run is a group of source and result dimensions of the same product (hlo.dynamic_sizes). Where
    the actual sizes of a run differ, elements that the operand does not have are zero.
    """
    source = ArrayShape(operand.shape.element_type, operand.shape.dims)
    runs = reshape_runs(source, shape, inferred_dimension)
    sizes: list[Expr] = [ix.constant(dim) for dim in shape.dims]
    for run in runs:
        if run.free is not None:
            others = math.prod(shape.dims[d] for d in run.target if d != run.free)
            count = product([operand.size(d) for d in run.source])
            if others:
                size = ix.divide(count, others)
                sizes[run.free] = ix.clamp(0, size, shape.dims[run.free])

    def at(*index: Expr) -> Expr:
        position: list[Expr] = [ix.constant(0)] * operand.shape.rank
        missing: list[Expr] = []
        for run in runs:
            ours = [operand.size(d) for d in run.source]
            theirs = [sizes[d] for d in run.target]
            # Equal sizes: the index is the same, and needs no division by a size known at run time
            # only.
            if ours == theirs:
                there = [index[d] for d in run.target]
            else:
                offset = _actual_offset([index[d] for d in run.target], theirs)
                missing.append(apply("compare-LT", offset, product(ours), type=PRED))
                there = _actual_index(offset, ours, [operand.shape.dims[d] for d in run.source])
            for d, place in zip(run.source, there, strict=True):
                position[d] = place
        value = operand.at(*position)
        for condition in missing:
            value = apply("select", condition, value, zero(value.type), type=value.type)
        return value

    return Element(_without_layout(shape), at, tuple(sizes))


def dynamic_reshape(operand: Element, *sizes: Element, shape: ArrayShape) -> Element:
    """result[i] = operand's element at the place of i in row-major order of the actual ``sizes``.

    Elements that the operand does not have are zero.
    """
    pairs = zip(sizes, shape.dims, strict=True)
    actual = [ix.clamp(0, apply("convert", size.at(), type=INDEX), dim) for size, dim in pairs]
    dims = operand.shape.dims
    before = [operand.size(d) for d in range(len(dims))]

    def at(*index: Expr) -> Expr:
        offset = _actual_offset(index, actual)
        value = operand.at(*_actual_index(offset, before, dims))
        is_there = apply("compare-LT", offset, product(before), type=PRED)
        return apply("select", is_there, value, zero(value.type), type=value.type)

    dynamic = tuple(ix.value_of(size) != dim for size, dim in zip(actual, shape.dims, strict=True))
    result_shape = bounded(shape.element_type, shape.dims, dynamic)
    return Element(result_shape, at, tuple(actual) if any(dynamic) else ())


def _actual_offset(index: Sequence[Expr], sizes: Sequence[Expr]) -> Expr:
    """Linearise an index, row-major, by actual sizes."""
    offset: Expr = ix.constant(0)
    for i, size in zip(index, sizes, strict=True):
        offset = ix.add(product([offset, size]), i)
    return offset


def _actual_index(offset: Expr, sizes: Sequence[Expr], dims: Sequence[int]) -> list[Expr]:
    """Delinearise a row-major offset by actual sizes, clamped to the bounds."""
    position: list[Expr] = []
    for d in reversed(range(len(dims))):
        # Divided by at least 1: an array without elements has its index computed, too.
        extent = ix.clamp(1, sizes[d], max(dims[d], 1))
        place = apply("modulo", offset, extent) if d else offset
        position.insert(0, ix.clamp(0, place, max(dims[d] - 1, 0)))
        offset = apply("divide", offset, extent)
    return position


def _reshaped_index(
    index: Sequence[Expr], dims: Sequence[int], into: Sequence[int]
) -> tuple[Expr, ...]:
    """Convert an index of one shape to that of another with as many elements.

    Dimensions are matched in the smallest groups of equal product, so that few indices need
    divisions.
    """
    result: list[Expr] = []
    for ours, theirs in _equal_product_groups(dims, into):
        if len(theirs) == 1 and len(ours) == 1:
            result.append(index[ours[0]])
            continue
        group = [dims[d] for d in ours]
        offset = ix.linearize([index[d] for d in ours], group)
        result.extend(ix.delinearize(offset, [into[d] for d in theirs]))
    return tuple(result)


def _equal_product_groups(
    dims: Sequence[int], into: Sequence[int]
) -> list[tuple[list[int], list[int]]]:
    """Partition the dimensions of two shapes into the smallest runs of equal products."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(dims) or j < len(into):
        ours, theirs = ([i], [j])
        # All elements are in groups already: what is left has extents of 1.
        if i >= len(dims) or j >= len(into):
            ours, theirs = list(range(i, len(dims))), list(range(j, len(into)))
            groups.append((ours, theirs))
            break
        one, other = dims[i], into[j]
        # Grow the side with the smaller product until both hold equally many elements.
        while one != other:
            if one < other:
                ours.append(ours[-1] + 1)
                one *= dims[ours[-1]]
            else:
                theirs.append(theirs[-1] + 1)
                other *= into[theirs[-1]]
        i, j = ours[-1] + 1, theirs[-1] + 1
        groups.append((ours, theirs))
    return groups


def _without_layout(shape: ArrayShape) -> ArrayShape:
    """Return a shape without its layout: elements have none."""
    return ArrayShape(shape.element_type, shape.dims, shape.dynamic)
