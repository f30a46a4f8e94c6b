"""One element of each op that moves data: an operand's element at another index.

Reads are always in bounds: an index that may fall outside is clamped, and the value read there is
replaced by a select, so that every loop can be vectorised.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from backend_c import index as ix
from backend_c.element import Element, scalar
from backend_c.loop_ir import INDEX, Constant, Expr
from backend_c.scope import apply
from hlo.errors import Unsupported
from hlo.literal import Literal
from hlo.types import PRED, S32, U32, ArrayShape

__all__ = [
    "bitcast_convert",
    "broadcast",
    "concatenate",
    "constant",
    "copy",
    "copy_done",
    "copy_start",
    "dynamic_reshape",
    "get_dimension_size",
    "iota",
    "pad",
    "reshape",
    "reverse",
    "set_dimension_size",
    "slice_",
    "transpose",
]


def constant(*, literal: Literal, shape: ArrayShape) -> Element:
    """A scalar; arrays of constants are kept in memory, outside kernels."""
    if not isinstance(literal.value, np.ndarray) or shape.rank:
        raise Unsupported(f"a constant of shape {shape} inside a kernel")
    kind = shape.element_type.kind
    python = {"pred": bool, "float": float, "complex": complex}.get(kind, int)
    value = Constant(shape.element_type, python(literal.value[()]))
    return Element(shape, lambda *index: value)


def iota(*, iota_dimension: int, shape: ArrayShape) -> Element:
    def at(*index: Expr) -> Expr:
        return apply("convert", index[iota_dimension], type=shape.element_type)

    return Element(_plain(shape), at)


def broadcast(operand: Element, *, dimensions: tuple[int, ...] = (), shape: ArrayShape) -> Element:
    sizes: tuple[Expr, ...] = ()
    if operand.sizes:
        whole: list[Expr] = [ix.constant(dim) for dim in shape.dims]
        for source, target in enumerate(dimensions):
            whole[target] = operand.sizes[source]
        sizes = tuple(whole)
    return Element(_plain(shape), lambda *index: operand.at(*(index[d] for d in dimensions)), sizes)


def reshape(operand: Element, *, shape: ArrayShape, inferred_dimension: int = -1) -> Element:
    if operand.sizes:
        return _reshape_bounded(operand, shape)
    dims = operand.shape.dims
    if 0 in dims:
        return Element(_plain(shape), operand.at)

    def at(*index: Expr) -> Expr:
        return operand.at(*_reshaped(index, shape.dims, dims))

    array = None if shape.is_dynamic else operand.array
    return Element(_plain(shape), at, (), array)


def _reshaped(index: Sequence[Expr], dims: Sequence[int], into: Sequence[int]) -> tuple[Expr, ...]:
    """An index of a shape as the index of another with as many elements.

    Dimensions are matched in the smallest groups of equal size, so that few need divisions.
    """
    result: list[Expr] = []
    for ours, theirs in _groups(dims, into):
        if len(theirs) == 1 and len(ours) == 1:
            result.append(index[ours[0]])
            continue
        group = [dims[d] for d in ours]
        offset = ix.linearize([index[d] for d in ours], group)
        result.extend(ix.delinearize(offset, [into[d] for d in theirs]))
    return tuple(result)


def _groups(dims: Sequence[int], into: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Runs of dimensions of two shapes that hold equally many elements."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(dims) or j < len(into):
        ours, theirs = ([i], [j])
        if i >= len(dims) or j >= len(into):
            ours, theirs = list(range(i, len(dims))), list(range(j, len(into)))
            groups.append((ours, theirs))
            break
        one, other = dims[i], into[j]
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


def _reshape_bounded(operand: Element, shape: ArrayShape) -> Element:
    """Bounded dimensions keep their place among those of more than one element."""
    ours = [d for d, extent in enumerate(operand.shape.dims) if extent != 1]
    theirs = [d for d, extent in enumerate(shape.dims) if extent != 1]
    if [operand.shape.dims[d] for d in ours] != [shape.dims[d] for d in theirs]:
        raise Unsupported(f"a reshape of {operand.shape} to {shape} that mixes bounded dimensions")
    sizes: list[Expr] = [ix.constant(1)] * shape.rank
    for source, target in zip(ours, theirs, strict=True):
        sizes[target] = operand.sizes[source]

    def at(*index: Expr) -> Expr:
        position: list[Expr] = [ix.constant(0)] * operand.shape.rank
        for source, target in zip(ours, theirs, strict=True):
            position[source] = index[target]
        return operand.at(*position)

    return Element(_plain(shape), at, tuple(sizes), operand.array)


def transpose(operand: Element, *, dimensions: tuple[int, ...]) -> Element:
    dims = tuple(operand.shape.dims[d] for d in dimensions)
    inverse = sorted(range(len(dimensions)), key=dimensions.__getitem__)
    dynamic = tuple(operand.shape.dynamic[d] for d in dimensions) if operand.sizes else ()
    sizes = tuple(operand.sizes[d] for d in dimensions) if operand.sizes else ()
    shape = ArrayShape(operand.shape.element_type, dims, dynamic)
    return Element(shape, lambda *index: operand.at(*(index[d] for d in inverse)), sizes)


def reverse(operand: Element, *, dimensions: tuple[int, ...]) -> Element:
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
    dims = tuple(max(0, -(-(limit - start) // stride)) for start, limit, stride in slice)

    def at(*index: Expr) -> Expr:
        return operand.at(
            *(ix.add(ix.multiply(i, stride), start) for i, (start, _, stride) in zip(index, slice))
        )

    whole = [
        limit - start == extent and stride == 1
        for (start, limit, stride), extent in zip(slice, operand.shape.dims)
    ]
    sizes: tuple[Expr, ...] = ()
    if operand.sizes and any(d and w for d, w in zip(operand.shape.dynamic, whole)):
        sizes = tuple(
            size if w else ix.constant(dim)
            for size, w, dim in zip(operand.sizes, whole, dims, strict=True)
        )
    dynamic = operand.shape.dynamic if sizes else ()
    return Element(ArrayShape(operand.shape.element_type, dims, dynamic), at, sizes)


def pad(
    operand: Element, padding_value: Element, *, padding: tuple[tuple[int, int, int], ...]
) -> Element:
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
            step = interior + 1
            shifted = ix.subtract(i, low)
            start, end = ix.bounds(shifted)
            if start < 0 or end > (extent - 1) * step:
                inside.append(_within(shifted, 0, (extent - 1) * step))
            clamped = ix.clamp(0, shifted, (extent - 1) * step)
            if step > 1:
                remainder = ix.modulo(clamped, step)
                inside.append(apply("compare-EQ", remainder, ix.constant(0), type=PRED))
            position.append(ix.divide(clamped, step))
        value = operand.at(*position)
        if not inside:
            return value
        return apply("select", all_of(inside), value, outside, type=shape.element_type)

    if operand.sizes:
        raise Unsupported("pad of a bounded dimension")
    return Element(shape, at)


def _within(value: Expr, low: int, high: int) -> Expr:
    """``low <= value <= high``, by one unsigned comparison."""
    return apply("within", value, ix.constant(low), ix.constant(high), type=PRED)


def all_of(conditions: Sequence[Expr]) -> Expr:
    """The conjunction of conditions, of which there is at least one."""
    result = conditions[0]
    for condition in conditions[1:]:
        result = apply("and", result, condition)
    return result


def concatenate(*operands: Element, dimensions: tuple[int, ...]) -> Element:
    (dimension,) = dimensions
    parts = [o for o in operands if o.shape.dims[dimension] or o.sizes]
    if not parts:
        return operands[0]
    first = parts[0].shape
    starts: list[Expr] = [ix.constant(0)]
    for part in parts:
        starts.append(ix.add(starts[-1], part.size(dimension)))

    def at(*index: Expr) -> Expr:
        def read(part: Element, start: Expr) -> Expr:
            shifted = ix.subtract(index[dimension], start)
            local = ix.clamp(0, shifted, part.shape.dims[dimension] - 1)
            return part.at(*index[:dimension], local, *index[dimension + 1 :])

        value = read(parts[-1], starts[-2])
        for part, start, end in reversed(list(zip(parts[:-1], starts, starts[1:]))):
            before = apply("compare-LT", index[dimension], end, type=PRED)
            value = apply("select", before, read(part, start), value, type=first.element_type)
        return value

    total = sum(operand.shape.dims[dimension] for operand in operands)
    dims = (*first.dims[:dimension], total, *first.dims[dimension + 1 :])
    if not any(part.sizes for part in parts):
        return Element(ArrayShape(first.element_type, dims), at)
    dynamic = tuple(any(p.shape.dynamic[d] for p in parts if p.sizes) for d in range(first.rank))
    sizes = tuple(starts[-1] if d == dimension else _any_size(parts, d) for d in range(first.rank))
    return Element(ArrayShape(first.element_type, dims, dynamic), at, sizes)


def _any_size(parts: Sequence[Element], dimension: int) -> Expr:
    bounded = [p for p in parts if p.sizes and p.shape.dynamic[dimension]]
    return (bounded or parts)[0].size(dimension)


def copy(operand: Element) -> Element:
    return operand


def copy_start(
    operand: Element, *, cross_program_prefetch_index: int = -1
) -> tuple[Element, Element, Element]:
    """(destination, source, context)."""
    return operand, operand, scalar(ArrayShape(U32), Constant(U32, 0))


def copy_done(operand: tuple[Element, ...]) -> Element:
    return operand[0]


def bitcast_convert(operand: Element, *, shape: ArrayShape) -> Element:
    source, target = operand.shape.element_type, shape.element_type
    if source.bits == target.bits:
        if source is target:
            return operand

        def same(*index: Expr) -> Expr:
            return apply("bitcast", operand.at(*index), type=target)

        return Element(_plain(shape), same, operand.sizes)
    narrow, wide = sorted((source.bits, target.bits))
    parts = wide // narrow

    def split(*index: Expr) -> Expr:
        """Part ``index[-1]`` of a wider element, the low bits first."""
        return apply("bitcast-part", operand.at(*index[:-1]), index[-1], type=target)

    def joined(*index: Expr) -> Expr:
        pieces = [operand.at(*index, ix.constant(part)) for part in range(parts)]
        return apply("bitcast-join", *pieces, type=target)

    at = split if source.bits > target.bits else joined
    return Element(_plain(shape), at, _split_sizes(operand, shape.rank, parts))


def _split_sizes(operand: Element, rank: int, parts: int) -> tuple[Expr, ...]:
    """Actual sizes with the dimension of the parts, or without it."""
    if not operand.sizes:
        return ()
    return (
        operand.sizes[:rank] if rank < operand.shape.rank else (*operand.sizes, ix.constant(parts))
    )


def get_dimension_size(operand: Element, *, dimensions: tuple[int, ...]) -> Element:
    (dimension,) = dimensions
    size = apply("convert", operand.size(dimension), type=S32)
    return Element(ArrayShape(S32), lambda: size)


def set_dimension_size(operand: Element, size: Element, *, dimensions: tuple[int, ...]) -> Element:
    (dimension,) = dimensions
    extent = operand.shape.dims[dimension]
    given = ix.clamp(0, apply("convert", size.at(), type=INDEX), extent)
    sizes = [operand.size(d) for d in range(operand.shape.rank)]
    sizes[dimension] = given
    dynamic = [bool(operand.sizes) and operand.shape.dynamic[d] for d in range(len(sizes))]
    dynamic[dimension] = ix.value_of(given) != extent
    shape = ArrayShape(operand.shape.element_type, operand.shape.dims)
    if not any(dynamic):
        return Element(shape, operand.at, (), operand.array)
    bounded = ArrayShape(shape.element_type, shape.dims, tuple(dynamic))
    return Element(bounded, operand.at, tuple(sizes), operand.array)


def dynamic_reshape(operand: Element, *sizes: Element, shape: ArrayShape) -> Element:
    """The same elements in row-major order of the actual sizes."""
    given = zip(sizes, shape.dims, strict=True)
    actual = [ix.clamp(0, apply("convert", size.at(), type=INDEX), dim) for size, dim in given]
    dims = operand.shape.dims

    def at(*index: Expr) -> Expr:
        offset: Expr = ix.constant(0)
        for i, size in zip(index, actual, strict=True):
            offset = ix.add(apply("multiply", offset, size), i)
        position: list[Expr] = []
        for d in reversed(range(len(dims))):
            extent = ix.clamp(1, operand.size(d), max(dims[d], 1))
            place = apply("modulo", offset, extent) if d else offset
            position.insert(0, ix.clamp(0, place, max(dims[d] - 1, 0)))
            offset = apply("divide", offset, extent)
        return operand.at(*position)

    return Element(_plain(shape), at, tuple(actual) if shape.is_dynamic else ())


def _plain(shape: ArrayShape) -> ArrayShape:
    """A shape without its layout: elements have none."""
    return ArrayShape(shape.element_type, shape.dims, shape.dynamic)
