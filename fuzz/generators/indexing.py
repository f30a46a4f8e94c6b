"""Instructions whose indices are values: mostly out of range, where they are clamped."""

from __future__ import annotations

from hypothesis import strategies as st

from fuzz.builder import Builder, Generator
from fuzz.shapes import MOST_ELEMENTS, Accepts, nonzero
from hlo.types import ArrayShape


def dynamic_slice(builder: Builder, shape: ArrayShape) -> str:
    dims: list[int] = []
    for position, size in enumerate(shape.dims):
        larger = size + builder.draw(st.integers(0, 3))
        room = nonzero((*dims, larger, *shape.dims[position + 1 :])) <= MOST_ELEMENTS
        dims.append(larger if room else size)
    operand = builder.value(ArrayShape(shape.element_type, tuple(dims)))
    starts = _starts(builder, shape.rank)
    return builder.emit("dynamic-slice", shape, operand, *starts, dynamic_slice_sizes=shape.dims)


def dynamic_update_slice(builder: Builder, shape: ArrayShape) -> str:
    dims = tuple(builder.draw(st.integers(max(0, size - 3), size)) for size in shape.dims)
    operand, update = builder.value(shape), builder.value(ArrayShape(shape.element_type, dims))
    return builder.emit(
        "dynamic-update-slice", shape, operand, update, *_starts(builder, shape.rank)
    )


def _starts(builder: Builder, rank: int) -> list[str]:
    """Start indices of one integer type."""
    index = ArrayShape(builder.element_type(lambda t: t.is_integer))
    return [builder.value(index) for _ in range(rank)]


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "dynamic-slice": (dynamic_slice, lambda shape: shape.rank > 0),
    "dynamic-update-slice": (dynamic_update_slice, lambda shape: shape.rank > 0),
}
