"""Generate convolutions and sliding windows over padded, sliced or reversed arrays."""

from __future__ import annotations

from fuzz.draw.builder import Builder
from fuzz.draw.patterns.pattern import Pattern, Patterns, changed
from fuzz.draw.shapes import MOST_ELEMENTS, nonzero
from hlo.attributes import ConvolutionDimensions, Window, WindowDimension
from hlo.types import PRED, ArrayShape, ElementType

_MOST_KERNEL = 3


def _window(builder: Builder, size: int) -> tuple[int, WindowDimension]:
    """Draw a window with ``size`` positions, whose padding may be negative at one end or both;
    return also the array's size."""
    kernel, dilation = builder.integer(1, _MOST_KERNEL), builder.integer(1, 2)
    low, high = (builder.integer(-2, 1) for _ in range(2))
    reach = (kernel - 1) * dilation + 1
    stride = builder.integer(1, 2)
    padded = (size - 1) * stride + reach
    # Where there is less than the padding, it is less, too: of no elements are padded no more.
    high = min(high, padded - low)
    extent = padded - low - high
    window = WindowDimension(
        kernel, stride, low, high, window_dilation=dilation, reversal=builder.boolean()
    )
    return extent, window


def cut_convolution(builder: Builder, shape: ArrayShape) -> str:
    """Draw a convolution with negative padding, also of integers, half of the time of a padded
    array, whose padding may be merged into it."""
    batch, features, *places = shape.dims
    drawn = [_window(builder, size) for size in places]
    spatial = tuple(extent for extent, _ in drawn)
    window = Window(tuple(dimension for _, dimension in drawn))
    kernel = tuple(dimension.size for dimension in window.dimensions)
    inner = builder.integer(1, 3)
    lhs = ArrayShape(_operand_type(builder, shape.element_type), (batch, inner, *spatial))
    rhs = ArrayShape(_operand_type(builder, shape.element_type), (inner, features, *kernel))
    left = _padded(builder, lhs) if builder.boolean() else builder.value(lhs)
    labels = (0, 1, tuple(range(2, shape.rank)))
    return builder.emit(
        "convolution", shape, left, builder.value(rhs), window=window,
        dim_labels=ConvolutionDimensions(*labels, *labels, *labels),
    )  # fmt: skip


def _operand_type(builder: Builder, result: ElementType) -> ElementType:
    """Draw the type of an operand: the result's, or a narrower one of its kind."""
    if builder.boolean():
        return result
    return builder.element_type(lambda t: t.kind == result.kind and t.bits <= result.bits)


def _padded(builder: Builder, shape: ArrayShape) -> str:
    """Draw a pad with this shape, by zero or another number."""
    dims, padding = list[int](), list[tuple[int, int, int]]()
    for size in shape.dims:
        low = builder.integer(0, min(1, max(0, size - 1)))
        high = builder.integer(-1, 0)
        dims.append(size - low - high)
        padding.append((low, high, 0))
    small = ArrayShape(shape.element_type, tuple(dims))
    scalar = ArrayShape(shape.element_type)
    number = builder.value(scalar) if builder.chance(3) else builder.number(scalar, 0)
    return builder.emit("pad", shape, builder.value(small), number, padding=tuple(padding))


def summed_windows(builder: Builder, shape: ArrayShape) -> str:
    """Draw a reduce-window, in one dimension, of a padded array: pooling, or a cumulative sum."""
    dimension, init = shape.rank - 1, builder.integer(0, 1)
    size = shape.dims[dimension]
    is_cumulative = builder.boolean() and size > 0
    extent, one = (
        (size, WindowDimension(size, 1, size - 1, 0)) if is_cumulative else _window(builder, size)
    )
    # Windows of convolutions may be reversed and dilated, those of pooling are not.
    plain = WindowDimension(one.size, one.stride, one.padding_low, one.padding_high)
    reach = one.size
    if not is_cumulative:
        extent = (size - 1) * one.stride + reach - one.padding_low - one.padding_high
        if extent < 0:  # more padding than the places take
            plain = WindowDimension(one.size, one.stride)
            extent = (size - 1) * one.stride + reach
    whole = ArrayShape(shape.element_type, (*shape.dims[:dimension], extent))
    name = _padded(builder, whole) if builder.boolean() else builder.value(whole)
    opcode = builder.choice(
        ("add", "maximum", "minimum", "multiply")[: 4 if _is_real(shape) else 1]
    )
    window = Window((*[WindowDimension(1)] * dimension, plain))
    number = builder.number(ArrayShape(shape.element_type), init)
    name = builder.emit(
        "reduce-window", shape, changed(builder, whole, name), number,
        window=window, to_apply=builder.binary(opcode, shape.element_type),
    )  # fmt: skip
    return changed(builder, shape, name)


def _is_real(shape: ArrayShape) -> bool:
    return not shape.element_type.is_complex


def _has_places(shape: ArrayShape) -> bool:
    room = nonzero([size + 8 for size in shape.dims]) <= 8 * MOST_ELEMENTS
    return shape.rank > 2 and room and shape.element_type is not PRED and shape.elements > 0


def _has_row(shape: ArrayShape) -> bool:
    return shape.rank > 0 and shape.elements > 0 and shape.element_type is not PRED


PATTERNS: Patterns = {
    "convolution that cuts": Pattern(cut_convolution, ("convolution", "pad"), _has_places),
    "window of padded": Pattern(summed_windows, ("pad", "reduce-window"), _has_row),
}
