"""Reductions, with computations whose order matters and with those whose does not."""

from __future__ import annotations

from hypothesis import strategies as st

from fuzz.builder import Builder, Generator
from fuzz.shapes import MOST_ELEMENTS, MOST_RANK, Accepts, extents, nonzero
from hlo.types import ArrayShape

_ANY = ("add", "multiply", "maximum", "minimum")
_INTEGER = (*_ANY, "subtract", "and", "or", "xor")
_OF_KIND = {
    "pred": ("and", "or", "xor"),
    "signed": _INTEGER,
    "unsigned": _INTEGER,
    "float": (*_ANY, "subtract"),
}


def reduce(builder: Builder, shape: ArrayShape) -> str:
    dims = list(shape.dims)
    dimensions: list[int] = []
    room = MOST_ELEMENTS * 4 // nonzero(shape.dims)
    for _ in range(builder.draw(st.integers(1, max(1, MOST_RANK - shape.rank)))):
        size = builder.draw(extents(room))
        room //= max(1, size)
        position = builder.draw(st.integers(0, len(dims)))
        dims.insert(position, size)
        dimensions = [d + (d >= position) for d in dimensions] + [position]
    element_type = shape.element_type
    opcode = builder.draw(st.sampled_from(_OF_KIND[element_type.kind]))
    operand = builder.value(ArrayShape(element_type, tuple(dims)))
    init = builder.value(ArrayShape(element_type))
    to_apply = builder.binary(opcode, element_type)
    return builder.emit(
        "reduce", shape, operand, init, dimensions=tuple(sorted(dimensions)), to_apply=to_apply
    )


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "reduce": (reduce, lambda shape: shape.rank < MOST_RANK)
}
