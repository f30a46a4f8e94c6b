"""Generate reductions by computations that are monoids, and by those whose order matters."""

from __future__ import annotations

from collections.abc import Sequence

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.scalar_computations import fold
from fuzz.draw.shapes import MOST_ELEMENTS, MOST_RANK, Accepts, extent, nonzero
from hlo.attributes import Attribute
from hlo.types import ArrayShape, ElementType, TupleShape


def element_types(builder: Builder, first: ElementType) -> list[ElementType]:
    """Return the type and up to two others, for the operands of a variadic instruction."""
    more = builder.choice((0, 0, 0, 1, 2))
    return [first, *(builder.element_type(lambda t: True) for _ in range(more))]


def emit_variadic(
    builder: Builder, opcode: str, results: Sequence[ArrayShape], operands: Sequence[str],
    **attributes: Attribute,
) -> str:  # fmt: skip
    """Add an instruction with one or several results; return the name of the first."""
    if len(results) == 1:
        return builder.emit(opcode, results[0], *operands, **attributes)
    several = builder.emit(opcode, TupleShape(tuple(results)), *operands, **attributes)
    return builder.emit("get-tuple-element", results[0], several, index=0)


def reduce(builder: Builder, shape: ArrayShape) -> str:
    dims = list(shape.dims)
    dimensions: list[int] = []
    room = MOST_ELEMENTS * 4 // nonzero(shape.dims)
    for _ in range(builder.integer(0, max(0, MOST_RANK - shape.rank))):
        size = extent(builder, room)
        room //= max(1, size)
        position = builder.integer(0, len(dims))
        dims.insert(position, size)
        dimensions = [d + (d >= position) for d in dimensions] + [position]
    types = element_types(builder, shape.element_type)
    inputs = [builder.value(ArrayShape(t, tuple(dims))) for t in types]
    inits = [builder.value(ArrayShape(t)) for t in types]
    results = [ArrayShape(t, shape.dims) for t in types]
    to_apply = fold(builder, types, [*inputs, *inits])
    return emit_variadic(
        builder, "reduce", results, [*inputs, *inits],
        dimensions=tuple(dimensions), to_apply=to_apply,
    )  # fmt: skip


GENERATORS: dict[str, tuple[Generator, Accepts]] = {"reduce": (reduce, lambda shape: True)}
