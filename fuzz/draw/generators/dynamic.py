"""Generate dynamic sizes that are set and read: results are static, values in between bounded."""

from __future__ import annotations

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.generators.data_movement import other_dims
from fuzz.draw.shapes import Accepts, size_to
from hlo.types import S32, ArrayShape, bounded

_SIZE = ArrayShape(S32)


def size(builder: Builder, bound: int) -> str:
    """Draw an s32[] mostly within the bound: a constant, or any value."""
    if builder.integer(0, 3) == 0:
        return builder.value(_SIZE)
    return builder.number(_SIZE, builder.integer(-1, bound + 1))


def _bounded_at(shape: ArrayShape, dimension: int) -> ArrayShape:
    dynamic = tuple(d == dimension for d in range(shape.rank))
    return bounded(shape.element_type, shape.dims, dynamic)


def set_dimension_size(builder: Builder, shape: ArrayShape) -> str:
    """Draw a dimension cut to one size, and then set to another, which may be larger."""
    dimension = builder.integer(0, shape.rank - 1)
    value, bound = builder.value(shape), shape.dims[dimension]
    for result in (_bounded_at(shape, dimension), shape):
        given = size(builder, bound)
        value = builder.emit("set-dimension-size", result, value, given, dimensions=(dimension,))
    return value


def get_dimension_size(builder: Builder, shape: ArrayShape) -> str:
    element_type = builder.element_type(lambda t: True)
    dims = tuple(builder.several(lambda: size_to(builder, 5), 1, 3))
    operand = ArrayShape(element_type, dims)
    dimension = builder.integer(0, operand.rank - 1)
    value = builder.value(operand)
    if builder.boolean():
        result = _bounded_at(operand, dimension)
        given = size(builder, operand.dims[dimension])
        value = builder.emit("set-dimension-size", result, value, given, dimensions=(dimension,))
    return builder.emit("get-dimension-size", shape, value, dimensions=(dimension,))


def dynamic_reshape(builder: Builder, shape: ArrayShape) -> str:
    operand = ArrayShape(shape.element_type, other_dims(builder, shape.elements))
    value = builder.value(operand)
    sizes = [size(builder, bound) for bound in shape.dims]
    return builder.emit("dynamic-reshape", shape, value, *sizes)


def _is_sized(shape: ArrayShape) -> bool:
    # A size may be one above the bound, and is an s32.
    return shape.rank > 0 and max(shape.dims) < 2**31 - 1


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "set-dimension-size": (set_dimension_size, _is_sized),
    "get-dimension-size": (
        get_dimension_size,
        lambda shape: shape.element_type is S32 and not shape.rank,
    ),
    "dynamic-reshape": (dynamic_reshape, lambda shape: True),
}
