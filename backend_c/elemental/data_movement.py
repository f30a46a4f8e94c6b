"""Build one element of each op that moves data: an operand's element at another index.

Reads are always in bounds: an index that may fall outside is clamped, and the value read there is
replaced by a select. So no loop has a branch, and every one can be vectorised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from backend_c.ir import index as ix
from backend_c.ir.bounded_elements import inside as within
from backend_c.ir.bounded_elements import resized, smaller_size, zero_beyond
from backend_c.ir.element import Element, Part, array_reader, scalar
from backend_c.ir.loop_ir import INDEX, Array, Constant, Expr
from backend_c.ir.scope import apply
from hlo.errors import Unsupported
from hlo.literal import Literal
from hlo.types import PRED, S32, U32, ArrayShape, bounded

__all__ = [
    "bitcast_convert",
    "broadcast",
    "constant",
    "copy",
    "copy_done",
    "copy_start",
    "get_dimension_size",
    "iota",
    "pad",
    "reverse",
    "set_dimension_size",
    "slice_",
    "transpose",
]


def constant(*, literal: Literal, shape: ArrayShape) -> Element:
    """Return a scalar constant; arrays of constants are kept in memory, outside kernels."""
    if not isinstance(literal.value, np.ndarray) or shape.rank:
        raise Unsupported(f"a constant of shape {shape} inside a kernel")
    kind = shape.element_type.kind
    python = {"pred": bool, "float": float, "complex": complex}.get(kind, int)
    value = Constant(shape.element_type, python(literal.value[()]))
    return Element(shape, lambda *index: value)


def iota(*, iota_dimension: int, shape: ArrayShape) -> Element:
    """result[i] = i[iota_dimension]."""

    def at(*index: Expr) -> Expr:
        return apply("convert", index[iota_dimension], type=shape.element_type)

    return Element(_without_layout(shape), at)


def broadcast(operand: Element, *, dimensions: tuple[int, ...] = (), shape: ArrayShape) -> Element:
    """result[i] = operand[j] with j[d] = i[dimensions[d]]."""
    sizes: tuple[Expr, ...] = ()
    dynamic = [False] * shape.rank
    if operand.sizes:
        whole: list[Expr] = [ix.constant(dim) for dim in shape.dims]
        for source, target in enumerate(dimensions):
            whole[target] = operand.sizes[source]
            dynamic[target] = operand.shape.dynamic[source]
        sizes = tuple(whole)
    result_shape = bounded(shape.element_type, shape.dims, tuple(dynamic))
    # A stretched dimension is not among ``dimensions``: its index is ignored, which is the
    # broadcast.
    return Element(result_shape, lambda *index: operand.at(*(index[d] for d in dimensions)), sizes)


def transpose(operand: Element, *, dimensions: tuple[int, ...]) -> Element:
    """result[i] = operand[j] with j[dimensions[d]] = i[d]."""
    dims = tuple(operand.shape.dims[d] for d in dimensions)
    # The result's index by operand dimension: the inverse permutation.
    inverse = sorted(range(len(dimensions)), key=dimensions.__getitem__)
    dynamic = tuple(operand.shape.dynamic[d] for d in dimensions) if operand.sizes else ()
    sizes = tuple(operand.sizes[d] for d in dimensions) if operand.sizes else ()
    shape = ArrayShape(operand.shape.element_type, dims, dynamic)
    return Element(shape, lambda *index: operand.at(*(index[d] for d in inverse)), sizes)


def reverse(operand: Element, *, dimensions: tuple[int, ...]) -> Element:
    """result[i] = operand[j], j[d] = operand.dims[d] - 1 - i[d] for d in dimensions, else i[d]."""

    def at(*index: Expr) -> Expr:
        turned = [
            ix.subtract(ix.add(operand.size(d), -1), i) if d in dimensions else i
            for d, i in enumerate(index)
        ]
        if operand.sizes:  # beyond the actual size nothing is read
            turned = [ix.clamp(0, i, e - 1) for i, e in zip(turned, operand.shape.dims)]
        return operand.at(*turned)

    return Element(operand.shape, at, operand.sizes)


def slice_(operand: Element, *, slice: tuple[tuple[int, int, int], ...]) -> Element:
    """result[i] = operand[start + i * stride]."""
    dims = tuple(max(0, -(-(limit - start) // stride)) for start, limit, stride in slice)

    def at(*index: Expr) -> Expr:
        return operand.at(
            *(ix.add(ix.multiply(i, stride), start) for i, (start, _, stride) in zip(index, slice))
        )

    if not operand.sizes:
        is_part = all(stride == 1 for _, _, stride in slice)
        part = Part(operand, tuple(start for start, _, _ in slice)) if is_part else None
        return Element(ArrayShape(operand.shape.element_type, dims), at, part=part)
    # At 2**62 the bounds of indices saturate: only the lower end counts.
    sizes = [
        ix.divide(
            ix.clamp(0, ix.add(smaller_size(size, limit), stride - 1 - start), 1 << 62), stride
        )
        for size, (start, limit, stride) in zip(operand.sizes, slice, strict=True)
    ]
    shape = ArrayShape(operand.shape.element_type, dims, operand.shape.dynamic)
    return Element(shape, at, tuple(sizes))


def pad(
    operand: Element, padding_value: Element, *, padding: tuple[tuple[int, int, int], ...]
) -> Element:
    """result[i] = operand[(i - low) / (interior + 1)] where that is one, else padding_value."""
    extents = operand.shape.dims
    dims = tuple(
        max(0, low + high + extent + max(extent - 1, 0) * interior)
        for extent, (low, high, interior) in zip(extents, padding, strict=True)
    )
    shape = ArrayShape(operand.shape.element_type, dims)

    def at(*index: Expr) -> Expr:
        outside = padding_value.at()
        if 0 in extents:
            return outside
        inside: list[Expr] = []
        position: list[Expr] = []
        for i, extent, (low, _, interior) in zip(index, extents, padding, strict=True):
            shifted, step, last = ix.subtract(i, low), interior + 1, (extent - 1) * (interior + 1)
            start, end = ix.bounds(shifted)
            if end < 0 or start > last:
                return outside
            # The read is in bounds whatever the index; the conditions say whether it counts.
            clamped = ix.clamp(0, shifted, last)
            inside += _inside_padding(shifted, clamped, last, step)
            position.append(ix.divide(clamped, step))
        if operand.sizes:
            inside += within(position, operand.sizes, extents)
        value = operand.at(*position)
        if not inside:
            return value
        return apply("select", all_of(inside), value, outside, type=shape.element_type)

    if not operand.sizes:
        return Element(shape, at)
    sizes: list[Expr] = []
    for size, dim, (low, high, interior) in zip(operand.sizes, dims, padding, strict=True):
        # Actual sizes are s32, so that the upper end never counts.
        holes = ix.multiply(ix.clamp(0, ix.subtract(size, 1), 1 << 32), interior)
        sizes.append(ix.clamp(0, ix.add(size, low + high, holes), dim))
    bounds = ArrayShape(shape.element_type, dims, operand.shape.dynamic)
    return Element(bounds, at, tuple(sizes))


def _inside_padding(shifted: Expr, clamped: Expr, last: int, step: int) -> Iterator[Expr]:
    """Yield the conditions under which an index, less the low padding, is not padding.

    ``clamped`` is the index clamped to 0 … ``last``.
    """
    if clamped != shifted:
        yield _within(shifted, 0, last)
    if step > 1:
        yield apply("compare-EQ", ix.modulo(clamped, step), ix.constant(0), type=PRED)


def _within(value: Expr, low: int, high: int) -> Expr:
    """Build ``low <= value <= high``, one unsigned comparison in C."""
    return apply("within", value, ix.constant(low), ix.constant(high), type=PRED)


def all_of(conditions: Sequence[Expr]) -> Expr:
    """Build the conjunction of one or more conditions."""
    result = conditions[0]
    for condition in conditions[1:]:
        result = apply("and", result, condition)
    return result


def copy(operand: Element) -> Element:
    """result[i] = operand[i]."""
    return operand


def copy_start(
    operand: Element, *, cross_program_prefetch_index: int = -1
) -> tuple[Element, Element, Element]:
    """Return (destination, source, context): the copy is the operand."""
    return operand, operand, scalar(ArrayShape(U32), Constant(U32, 0))


def copy_done(operand: tuple[Element, ...]) -> Element:
    """Return the destination of a copy."""
    return operand[0]


def bitcast_convert(operand: Element, *, shape: ArrayShape) -> Element:
    """result[i] = the bits of operand[i] as another type.

    If the widths differ, a minor dimension counts the parts of the wider type. Part 0 of a wider
    element is its low bits.
    """
    source, target = operand.shape.element_type, shape.element_type
    if source.bits == target.bits:
        if source is target:
            return operand

        def same(*index: Expr) -> Expr:
            return apply("bitcast", operand.at(*index), type=target)

        return Element(_without_layout(shape), same, operand.sizes)
    narrow, wide = sorted((source.bits, target.bits))
    parts = wide // narrow
    sizes = _split_sizes(operand, shape.rank, parts)
    is_split = source.bits > target.bits
    # Elements of fewer than 8 bits have a byte each in memory: its bytes would not be parts.
    if operand.array is not None and narrow % 8 == 0 and (is_split or not operand.sizes):
        return array_reader(_view(operand.array, shape), _without_layout(shape), sizes)

    def split(*index: Expr) -> Expr:
        """Return part ``index[-1]`` of a wider element, the low bits first."""
        return apply("bitcast-part", operand.at(*index[:-1]), index[-1], type=target)

    def joined(*index: Expr) -> Expr:
        # A part that is not there would be undefined bits of a whole element: zeros instead, as in
        # the interpreter.
        whole = operand if not operand.sizes else zero_beyond(operand, operand.sizes)
        pieces = [whole.at(*index, ix.constant(part)) for part in range(parts)]
        return apply("bitcast-join", *pieces, type=target)

    return Element(_without_layout(shape), split if is_split else joined, sizes)


def _view(array: Array, shape: ArrayShape) -> Array:
    """View an array's bytes as elements of another type (memory is little-endian).

    Neighbouring narrow elements are then neighbouring loads; parts extracted from wide loads by
    shifts would be a gather, which gcc 12 also miscompiles (docs/same_bits.md).
    """
    memory = array.memory or array.element_type
    return array._replace(element_type=shape.element_type, elements=shape.elements, memory=memory)


def _split_sizes(operand: Element, rank: int, parts: int) -> tuple[Expr, ...]:
    """Return the operand's actual sizes, with the dimension of parts added or removed."""
    if not operand.sizes:
        return ()
    return (
        operand.sizes[:rank] if rank < operand.shape.rank else (*operand.sizes, ix.constant(parts))
    )


def get_dimension_size(operand: Element, *, dimensions: tuple[int, ...]) -> Element:
    """result = the actual size of a dimension."""
    (dimension,) = dimensions
    size = apply("convert", operand.size(dimension), type=S32)
    return Element(ArrayShape(S32), lambda: size)


def set_dimension_size(operand: Element, size: Element, *, dimensions: tuple[int, ...]) -> Element:
    """result[i] = operand[i], of which ``size`` elements of a dimension are there.

    A dimension that grows again shows zeros.
    """
    (dimension,) = dimensions
    extent = operand.shape.dims[dimension]
    before: list[Expr] = [operand.size(d) for d in range(operand.shape.rank)]
    sizes: list[Expr] = list(before)
    sizes[dimension] = ix.clamp(0, apply("convert", size.at(), type=INDEX), extent)
    if ix.value_of(before[dimension]) == extent:  # it does not grow
        return resized(operand, sizes)
    limits: list[Expr] = [ix.constant(dim) for dim in operand.shape.dims]
    limits[dimension] = before[dimension]
    return resized(zero_beyond(operand, limits), sizes)


def _without_layout(shape: ArrayShape) -> ArrayShape:
    """Return a shape without its layout: elements have none."""
    return ArrayShape(shape.element_type, shape.dims, shape.dynamic)
