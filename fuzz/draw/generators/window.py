"""Generate windows that slide over arrays: of any size, stride, dilation and padding."""

from __future__ import annotations

from dataclasses import replace

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.generators.reduction import element_types, emit_variadic
from fuzz.draw.scalar_computations import fold, selection
from fuzz.draw.shapes import MOST_ELEMENTS, Accepts, nonzero
from hlo.attributes import Window, WindowDimension
from hlo.ops.contraction import window_positions
from hlo.types import ArrayShape

_WORK = 1 << 16  # elements that all windows of an instruction may hold together


def reduce_window(builder: Builder, shape: ArrayShape) -> str:
    dims, window = windows_onto(builder, shape.dims)
    types = element_types(builder, shape.element_type)
    inputs = [builder.value(ArrayShape(t, dims)) for t in types]
    inits = [builder.value(ArrayShape(t)) for t in types]
    results = [ArrayShape(t, shape.dims) for t in types]
    to_apply = fold(builder, types, [*inputs, *inits])
    return emit_variadic(
        builder, "reduce-window", results, [*inputs, *inits], to_apply=to_apply, window=window
    )


def select_and_scatter(builder: Builder, shape: ArrayShape) -> str:
    """Draw a select-and-scatter; its result has the shape that the windows slide over."""
    room, chosen, places = _WORK // nonzero(shape.dims), [], []
    # StableHLO has no dilations of it, and XLA takes programs whose sizes are right without them:
    # with one dimension that is dilated they are more often than with several.
    dilated = builder.integer(0, shape.rank)
    for number, extent in enumerate(shape.dims):
        dimension = _dimension(builder, extent, room)
        if number != dilated and builder.integer(0, 3):
            dimension = replace(dimension, base_dilation=1, window_dilation=1)
        low, high = (_padding(builder, dimension) for _ in range(2))
        # The verifier refuses negative padding that removes more than there is.
        high = max(high, -low - _dilated(dimension, extent))
        dimension = replace(dimension, padding_low=low, padding_high=high)
        room //= dimension.size
        chosen.append(dimension)
        places.append(window_positions("drawn", extent, number, dimension))
    if nonzero(places) > MOST_ELEMENTS:
        chosen, places = [WindowDimension(1)] * shape.rank, list(shape.dims)
    element_type = shape.element_type
    operand = builder.value(shape)
    source = builder.value(ArrayShape(element_type, tuple(places)))
    init = builder.value(ArrayShape(element_type))
    stays = selection(builder, element_type, operand)
    combined = fold(builder, [element_type], [source, init])
    return builder.emit(
        "select-and-scatter", shape, operand, source, init,
        window=Window(tuple(chosen)), select=stays, scatter=combined,
    )  # fmt: skip


def windows_onto(
    builder: Builder, places: tuple[int, ...], reversals: bool = False
) -> tuple[tuple[int, ...], Window]:
    """Draw the dims of an array, and a window that has ``places`` positions in it."""
    dims: list[int] = []
    chosen: list[WindowDimension] = []
    work, room = _WORK // nonzero(places), 4 * MOST_ELEMENTS
    for d, count in enumerate(places):
        extent, dimension = _onto(builder, count, work)
        if nonzero((*dims, extent, *places[d + 1 :])) > room:
            extent, dimension = count, WindowDimension(1)
        if reversals and builder.boolean():
            dimension = replace(dimension, reversal=True)
        work //= dimension.size
        dims.append(extent)
        chosen.append(dimension)
    return tuple(dims), Window(tuple(chosen))


def _onto(builder: Builder, places: int, work: int) -> tuple[int, WindowDimension]:
    dimension = _dimension(builder, places, work)
    reach = (dimension.size - 1) * dimension.window_dilation + 1
    if places:
        # There are (padded - reach) // stride + 1 places: less than a stride adds none.
        slack = builder.integer(0, dimension.stride - 1)
        padded = (places - 1) * dimension.stride + reach + slack
    else:
        padded = builder.integer(0, reach - 1)
    low = _padding(builder, dimension)
    most = max(0, padded - low) // dimension.base_dilation
    least = 0 if builder.empty() else 1
    extent = max(least, most + builder.choice((0, 1, -1, 2, -3)))
    high = padded - low - _dilated(dimension, extent)
    return extent, replace(dimension, padding_low=low, padding_high=high)


def _dimension(builder: Builder, extent: int, work: int) -> WindowDimension:
    """Draw a window's size: 1; as long as the array, as cumulative sums have; or small."""
    kind = builder.choice(("small", "single", "small", "long"))
    if kind == "single" or work < 2:
        return WindowDimension(1)
    if kind == "long":
        size = extent + builder.integer(-1, 3)
        return WindowDimension(max(1, min(size, work)))
    size = builder.integer(1, min(work, 4))
    stride, base, own = (builder.choice((1, 1, 2, 3)) for _ in range(3))
    return WindowDimension(size, stride, base_dilation=base, window_dilation=own)


def _padding(builder: Builder, dimension: WindowDimension) -> int:
    """Draw padding: none, some, as long as the window, or negative."""
    reach = (dimension.size - 1) * dimension.window_dilation + 1
    kind = builder.choice(("none", "reach", "any"))
    if kind == "reach":
        return builder.choice((reach - 1, reach, reach // 2))
    return builder.integer(-2, reach + 1) if kind == "any" else 0


def _dilated(dimension: WindowDimension, extent: int) -> int:
    return (extent - 1) * dimension.base_dilation + 1 if extent else 0


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "reduce-window": (reduce_window, lambda shape: True),
    "select-and-scatter": (select_and_scatter, lambda shape: True),
}
