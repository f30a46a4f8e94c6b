"""Instructions that move elements without changing them."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from fuzz.builder import Builder, Generator
from fuzz.shapes import MOST_ELEMENTS, MOST_RANK, Accepts, nonzero
from hlo.types import PRED, ArrayShape


def broadcast(builder: Builder, shape: ArrayShape) -> str:
    kept = [d for d in range(shape.rank) if builder.draw(st.booleans())]
    operand = ArrayShape(shape.element_type, tuple(shape.dims[d] for d in kept))
    return builder.emit("broadcast", shape, builder.value(operand), dimensions=tuple(kept))


def iota(builder: Builder, shape: ArrayShape) -> str:
    return builder.emit("iota", shape, iota_dimension=builder.draw(st.integers(0, shape.rank - 1)))


def reshape(builder: Builder, shape: ArrayShape) -> str:
    """The same number of elements in other dimensions: divisors, ones, or all in one."""
    rest, dims = shape.elements, []
    for _ in range(builder.draw(st.integers(0, MOST_RANK - 1))):
        divisors = [n for n in range(1, 9) if rest % n == 0] if rest else [1, 0]
        dims.append(builder.draw(st.sampled_from(divisors)))
        rest //= dims[-1] or 1
    if math.prod(dims) != shape.elements:
        dims.append(rest)
    operand = ArrayShape(shape.element_type, tuple(builder.draw(st.permutations(dims))))
    return builder.emit("reshape", shape, builder.value(operand))


def transpose(builder: Builder, shape: ArrayShape) -> str:
    dimensions = tuple(builder.draw(st.permutations(range(shape.rank))))
    dims = tuple(shape.dims[dimensions.index(d)] for d in range(shape.rank))
    operand = builder.value(ArrayShape(shape.element_type, dims))
    return builder.emit("transpose", shape, operand, dimensions=dimensions)


def reverse(builder: Builder, shape: ArrayShape) -> str:
    dimensions = tuple(d for d in range(shape.rank) if builder.draw(st.booleans()))
    return builder.emit("reverse", shape, builder.value(shape), dimensions=dimensions)


def slice_(builder: Builder, shape: ArrayShape) -> str:
    dims: list[int] = []
    window = []
    for position, size in enumerate(shape.dims):
        before, after = builder.draw(st.integers(0, 3)), builder.draw(st.integers(0, 3))
        stride = builder.draw(st.integers(1, 3))
        span = (size - 1) * stride + 1 if size else 0
        others = nonzero((*dims, *shape.dims[position + 1 :]))
        if others * (before + span + after) > MOST_ELEMENTS:
            before, after, stride, span = 0, 0, 1, size
        limit = before + span
        window.append((before, limit, stride))
        dims.append(limit + after)
    operand = builder.value(ArrayShape(shape.element_type, tuple(dims)))
    return builder.emit("slice", shape, operand, slice=tuple(window))


def pad(builder: Builder, shape: ArrayShape) -> str:
    """Low, high and interior padding; of nothing where the size leaves no room."""
    dims, padding = [], []
    for size in shape.dims:
        low, high = builder.draw(st.integers(-2, 2)), builder.draw(st.integers(-2, 2))
        interior = builder.draw(st.integers(0, 2))
        inner = size - low - high
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
    dimension = builder.draw(st.integers(0, shape.rank - 1))
    rest, parts = shape.dims[dimension], []
    for _ in range(builder.draw(st.integers(0, 3))):
        size = builder.draw(st.integers(0, rest))
        parts.append(size)
        rest -= size
    operands = []
    for size in (*parts, rest):
        dims = (*shape.dims[:dimension], size, *shape.dims[dimension + 1 :])
        operands.append(builder.value(ArrayShape(shape.element_type, dims)))
    return builder.emit("concatenate", shape, *operands, dimensions=(dimension,))


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "broadcast": (broadcast, lambda shape: True),
    "iota": (iota, lambda shape: shape.rank > 0 and shape.element_type is not PRED),
    "reshape": (reshape, lambda shape: True),
    "transpose": (transpose, lambda shape: True),
    "reverse": (reverse, lambda shape: True),
    "slice": (slice_, lambda shape: True),
    "pad": (pad, lambda shape: shape.rank > 0),  # no compiler reads back an empty "padding="
    "concatenate": (concatenate, lambda shape: shape.rank > 0),
}
