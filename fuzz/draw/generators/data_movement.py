"""Generate instructions that move elements without changing them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fuzz.draw.builder import MOST_CONSTANT_ELEMENTS, Builder, Generator
from fuzz.draw.shapes import MOST_ELEMENTS, MOST_RANK, Accepts, nonzero, size_to
from hlo.passes.rewriting import Slices
from hlo.types import PRED, U32, ArrayShape, ElementType, Layout, TupleShape


def broadcast(builder: Builder, shape: ArrayShape) -> str:
    kept = [d for d in range(shape.rank) if builder.boolean()]
    operand = ArrayShape(shape.element_type, tuple(shape.dims[d] for d in kept))
    return builder.emit("broadcast", shape, builder.value(operand), dimensions=tuple(kept))


def iota(builder: Builder, shape: ArrayShape) -> str:
    return builder.emit("iota", shape, iota_dimension=builder.integer(0, shape.rank - 1))


def reshape(builder: Builder, shape: ArrayShape) -> str:
    """Draw a reshape, perhaps with ``inferred_dimension``, which only matters for bounded
    dimensions."""
    operand = ArrayShape(shape.element_type, other_dims(builder, shape.elements))
    inferred = shape.rank and builder.chance(4)
    given = {"inferred_dimension": builder.integer(0, shape.rank - 1)} if inferred else {}
    return builder.emit("reshape", shape, builder.value(operand), **given)


def other_dims(builder: Builder, elements: int) -> tuple[int, ...]:
    """Draw dims with the same number of elements: divisors, ones, or all in one."""
    rest, dims = elements, list[int]()
    for _ in range(builder.integer(0, MOST_RANK - 1)):
        divisors = [n for n in range(1, 9) if rest % n == 0] if rest else [1, 0]
        dims.append(builder.choice(divisors))
        rest //= dims[-1] or 1
    if math.prod(dims) != elements:
        dims.append(rest)
    return tuple(builder.permutation(dims))


def transpose(builder: Builder, shape: ArrayShape) -> str:
    dimensions = tuple(builder.permutation(range(shape.rank)))
    dims = tuple(shape.dims[dimensions.index(d)] for d in range(shape.rank))
    operand = builder.value(ArrayShape(shape.element_type, dims))
    return builder.emit("transpose", shape, operand, dimensions=dimensions)


def reverse(builder: Builder, shape: ArrayShape) -> str:
    dimensions = tuple(d for d in range(shape.rank) if builder.boolean())
    return builder.emit("reverse", shape, builder.value(shape), dimensions=dimensions)


def slice_(builder: Builder, shape: ArrayShape) -> str:
    dims, window = sliced(builder, shape.dims, 3)
    operand = builder.value(ArrayShape(shape.element_type, dims))
    return builder.emit("slice", shape, operand, slice=window)


def sliced(builder: Builder, dims: Sequence[int], most: int) -> tuple[tuple[int, ...], Slices]:
    """Draw an operand's dims and a slice of it that has ``dims``: margins and strides are at most
    ``most``."""
    whole, window = list(dims), []
    for d, size in enumerate(dims):
        before, after, stride = (builder.integer(low, most) for low in (0, 0, 1))
        span = (size - 1) * stride + 1 if size else 0
        others = nonzero([*whole[:d], *whole[d + 1 :]])
        if others * (before + span + after) > MOST_ELEMENTS:
            before, after, stride, span = 0, 0, 1, size
        window.append((before, before + span, stride))
        whole[d] = before + span + after
    return tuple(whole), tuple(window)


def pad(builder: Builder, shape: ArrayShape) -> str:
    """Draw low, high and interior padding; no padding where the size leaves no room."""
    dims, padding = [], []
    for size in shape.dims:
        low, high = builder.integer(-2, 2), builder.integer(-2, 2)
        interior = builder.integer(0, 2)
        inner = size - low - high
        # n elements with interior padding are inner = (n - 1) * (interior + 1) + 1.
        if inner > 0 and (inner - 1) % (interior + 1) == 0:
            dims.append((inner - 1) // (interior + 1) + 1)
        else:
            low = high = interior = 0
            dims.append(size)
        padding.append((low, high, interior))
    if math.prod(dims) > MOST_ELEMENTS:
        dims, padding = list(shape.dims), [(0, 0, 0)] * shape.rank
    operand = builder.value(ArrayShape(shape.element_type, tuple(dims)))
    value = builder.value(ArrayShape(shape.element_type))
    return builder.emit("pad", shape, operand, value, padding=tuple(padding))


def concatenate(builder: Builder, shape: ArrayShape) -> str:
    """Draw one to five operands, a few of them empty."""
    dimension = builder.integer(0, shape.rank - 1)
    rest, parts = shape.dims[dimension], []
    for _ in range(builder.integer(0, 4)):
        if rest < 2 and not builder.empty():
            break
        size = size_to(builder, rest - 1)
        parts.append(size)
        rest -= size
    operands = []
    for size in (*parts, rest):
        dims = (*shape.dims[:dimension], size, *shape.dims[dimension + 1 :])
        operands.append(builder.value(ArrayShape(shape.element_type, dims)))
    return builder.emit("concatenate", shape, *operands, dimensions=(dimension,))


def constant(builder: Builder, shape: ArrayShape) -> str:
    return builder.constant(shape)


def in_layout(builder: Builder, shape: ArrayShape) -> ArrayShape:
    """Draw a layout for a shape."""
    if not shape.rank:
        return shape
    order = builder.permutation(range(shape.rank))
    return replace(shape, layout=Layout(tuple(order)))


def copy(builder: Builder, shape: ArrayShape) -> str:
    """Draw a copy between two layouts."""
    operand = builder.value(shape)
    if builder.boolean():
        operand = builder.emit("copy", in_layout(builder, shape), operand)
    return builder.emit("copy", in_layout(builder, shape), operand)


def copy_start(builder: Builder, shape: ArrayShape) -> str:
    return _copied(builder, shape, builder.choice([{}, _PREFETCH]))


def copy_done(builder: Builder, shape: ArrayShape) -> str:
    return _copied(builder, shape, {})


def _copied(builder: Builder, shape: ArrayShape, attributes: Mapping[str, int]) -> str:
    started = TupleShape((shape, shape, ArrayShape(U32)))
    start = builder.emit("copy-start", started, builder.value(shape), **attributes)
    return builder.emit("copy-done", shape, start)


def bitcast(builder: Builder, shape: ArrayShape) -> str:
    """Draw an operand of as many bytes, of any type, dimensions and layout."""
    size = shape.elements * _bytes(shape.element_type)
    # Narrow types have a byte for each element, whose spare bits no bitcast may read.
    same = shape.element_type.bits < 8 or shape.is_complex
    source = builder.element_type(
        lambda t: (
            t is shape.element_type
            or (not same and size % _bytes(t) == 0 and t.bits >= 8 and not t.is_complex)
        )
    )
    dims = other_dims(builder, size // _bytes(source))
    operand = in_layout(builder, ArrayShape(source, dims))
    laid_out = builder.emit("copy", operand, builder.value(replace(operand, layout=None)))
    return builder.emit("bitcast", in_layout(builder, shape), laid_out)


def _bytes(element_type: ElementType) -> int:
    """Return the bytes of an array; types of fewer than 8 bits take a byte."""
    return max(8, element_type.bits) // 8


def bitcast_convert(builder: Builder, shape: ArrayShape) -> str:
    """Draw a source type of the same width, or one that splits or joins along the last
    dimension."""
    target = shape.element_type
    source = builder.element_type(lambda t: _fitting(t, shape) is not None)
    dims = _fitting(source, shape)
    assert dims is not None, target
    return builder.emit("bitcast-convert", shape, builder.value(ArrayShape(source, dims)))


def _fitting(source: ElementType, shape: ArrayShape) -> tuple[int, ...] | None:
    """Return the dims of an operand of this type that bitcast-converts to ``shape``, None if
    impossible."""
    target = shape.element_type
    if source.is_complex != target.is_complex:
        return None
    if source.bits > target.bits:
        splits = shape.rank > 0 and shape.dims[-1] * target.bits == source.bits
        return shape.dims[:-1] if splits else None
    joins = target.bits % source.bits == 0 and shape.rank < MOST_RANK
    if source.bits == target.bits or not joins:
        return shape.dims if source.bits == target.bits else None
    return (*shape.dims, target.bits // source.bits)


_PREFETCH = {"cross_program_prefetch_index": 0}

GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "bitcast": (bitcast, lambda shape: True),
    "bitcast-convert": (bitcast_convert, lambda shape: True),
    "broadcast": (broadcast, lambda shape: True),
    "concatenate": (concatenate, lambda shape: shape.rank > 0),
    "constant": (constant, lambda shape: shape.elements <= MOST_CONSTANT_ELEMENTS),
    "copy": (copy, lambda shape: True),
    "copy-done": (copy_done, lambda shape: True),
    "copy-start": (copy_start, lambda shape: True),
    "iota": (iota, lambda shape: shape.rank > 0 and shape.element_type is not PRED),
    "pad": (pad, lambda shape: shape.rank > 0),  # no compiler reads back an empty "padding="
    "reshape": (reshape, lambda shape: True),
    "reverse": (reverse, lambda shape: True),
    "slice": (slice_, lambda shape: True),
    "transpose": (transpose, lambda shape: True),
}
