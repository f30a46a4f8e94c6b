"""Generate sort and topk."""

from __future__ import annotations

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.generators.reduction import element_types, emit_variadic
from fuzz.draw.scalar_computations import comparator
from fuzz.draw.shapes import MOST_ELEMENTS, Accepts, nonzero
from hlo.types import S32, ArrayShape, TupleShape


def sort(builder: Builder, shape: ArrayShape) -> str:
    types = element_types(builder, shape.element_type)
    results = [ArrayShape(t, shape.dims) for t in types]
    operands = [builder.value(result) for result in results]
    dimension = builder.integer(0, shape.rank - 1)
    stable = {"is_stable": True} if builder.boolean() else {}
    return emit_variadic(
        builder, "sort", results, operands,
        dimensions=(dimension,), to_apply=comparator(builder, types, operands), **stable,
    )  # fmt: skip


def topk(builder: Builder, shape: ArrayShape) -> str:
    """Draw a topk; return its values, or, if the shape is s32, perhaps its indices."""
    k = shape.dims[-1]
    is_places = shape.element_type is S32 and builder.boolean()
    whole = wider(builder, shape, is_places=is_places)
    operand = builder.value(whole)
    both = TupleShape((ArrayShape(whole.element_type, shape.dims), ArrayShape(S32, shape.dims)))
    flags = {name: builder.boolean() for name in ("largest", "is_stable")}
    # Both are true where the text does not say.
    chosen = {name: False for name, flag in flags.items() if not flag}
    found = builder.emit("topk", both, operand, k=k, **chosen)
    return builder.emit("get-tuple-element", shape, found, index=int(is_places))


def wider(builder: Builder, shape: ArrayShape, *, is_places: bool) -> ArrayShape:
    """Draw an operand's shape for a top-k with result ``shape``; of any type if that is of the
    indices."""
    *outer, k = shape.dims
    room = max(0, MOST_ELEMENTS * 2 // nonzero(outer) - k)
    dims = (*outer, k + builder.integer(0, min(room, 40)))
    element_type = shape.element_type
    if is_places:
        element_type = builder.element_type(lambda t: not t.is_complex)
    return ArrayShape(element_type, dims)


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "sort": (sort, lambda shape: shape.rank > 0),
    "topk": (topk, lambda shape: shape.rank > 0 and not shape.is_complex),
}
