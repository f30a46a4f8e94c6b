"""Generate long windows: cumulative and moving sums, and windows with strides and holes."""

from __future__ import annotations

from fuzz.draw.builder import Builder
from fuzz.draw.patterns.pattern import Pattern, Patterns, changed
from fuzz.draw.shapes import MOST_ELEMENTS, nonzero
from hlo.attributes import ConvolutionDimensions, Window, WindowDimension
from hlo.types import PRED, ArrayShape

_FEWEST, _MOST = 5, 12  # elements of a long window
_MOST_MOVING = 64
_OPCODES = ("add", "add", "maximum", "minimum", "multiply")


def _folded(
    builder: Builder, shape: ArrayShape, whole: ArrayShape, window: Window, opcode: str
) -> str:
    """Fold the windows of a value from an init that is a number, or rarely any value."""
    scalar = ArrayShape(shape.element_type)
    first = {"multiply": 1}.get(opcode, 0)
    init = builder.value(scalar) if builder.chance(6) else builder.number(scalar, first)
    name = changed(builder, whole, builder.value(whole))
    return builder.emit(
        "reduce-window", shape, name, init,
        window=window, to_apply=builder.binary(opcode, shape.element_type),
    )  # fmt: skip


def cumulative(builder: Builder, shape: ArrayShape) -> str:
    """Draw a cumulative sum, or rarely product or extreme, from either end, of all elements or of
    as many as a moving average has."""
    place = builder.choice([d for d, size in enumerate(shape.dims) if size > 1] or [0])
    size = shape.dims[place]
    length = builder.integer(1, min(size, _MOST_MOVING)) if builder.chance(4) else size
    padding = (length - 1, 0) if builder.integer(0, 3) else (0, length - 1)
    dimensions = [WindowDimension(1)] * shape.rank
    dimensions[place] = WindowDimension(length, 1, *padding)
    opcode = builder.choice(_OPCODES) if builder.boolean() else "add"
    return changed(builder, shape, _folded(builder, shape, shape, Window((*dimensions,)), opcode))


def _long(builder: Builder, size: int) -> tuple[int, WindowDimension]:
    """Draw a long window with ``size`` positions; return also the array's size."""
    length, stride = builder.integer(_FEWEST, _MOST), builder.integer(1, 4)
    holes, base = builder.integer(1, 3), 1 + builder.chance(4)
    reach = (length - 1) * holes + 1
    low = builder.integer(-1, reach)
    padded = (size - 1) * stride + reach + builder.integer(0, stride - 1)
    extent = builder.integer(1, max(1, (padded - low - 1) // base + 1))
    high = padded - low - ((extent - 1) * base + 1)
    return extent, WindowDimension(length, stride, low, high, base, holes)


def _with_long(builder: Builder, places: tuple[int, ...]) -> tuple[tuple[int, ...], Window]:
    """Draw windows of which one is long, the others have one or two elements."""
    chosen = builder.integer(0, len(places) - 1)
    dims, dimensions = [*places], [WindowDimension(1)] * len(places)
    for d, size in enumerate(places):
        if d == chosen:
            dims[d], dimensions[d] = _long(builder, size)
        elif size > 1 and builder.chance(4):
            dims[d], dimensions[d] = size + 1, WindowDimension(2)
    if nonzero(dims) > 4 * MOST_ELEMENTS:
        return places, Window((WindowDimension(1),) * len(places))
    return (*dims,), Window((*dimensions,))


def long_window(builder: Builder, shape: ArrayShape) -> str:
    """Draw a reduce-window or, half of the time that it can be, a convolution, with a long window
    with a stride, with holes in it and in the array."""
    if shape.rank > 2 and "convolution" in builder.opcodes and builder.boolean():
        return _convolved(builder, shape)
    dims, window = _with_long(builder, shape.dims)
    opcodes = _OPCODES[:2] if shape.element_type.is_complex else _OPCODES
    whole = ArrayShape(shape.element_type, dims)
    return _folded(builder, shape, whole, window, builder.choice(opcodes))


def _convolved(builder: Builder, shape: ArrayShape) -> str:
    batch, features, *places = shape.dims
    dims, window = _with_long(builder, tuple(places))
    inner = builder.integer(1, 3)
    lhs = ArrayShape(shape.element_type, (batch, inner, *dims))
    kernel = tuple(d.size for d in window.dimensions)
    rhs = ArrayShape(shape.element_type, (inner, features, *kernel))
    labels = (0, 1, tuple(range(2, shape.rank)))
    return builder.emit(
        "convolution", shape, builder.value(lhs), builder.value(rhs), window=window,
        dim_labels=ConvolutionDimensions(*labels, *labels, *labels),
    )  # fmt: skip


def _has_row(shape: ArrayShape) -> bool:
    return shape.rank > 0 and shape.elements > 0 and shape.element_type is not PRED


PATTERNS: Patterns = {
    "cumulative": Pattern(
        cumulative,
        ("reduce-window",),
        lambda shape: _has_row(shape) and shape.element_type.is_float,
    ),
    "long window": Pattern(long_window, ("reduce-window",), _has_row),
}
