"""Dot products of every arrangement of dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from fuzz.builder import Builder, Generator
from fuzz.shapes import MOST_ELEMENTS, MOST_RANK, Accepts, extents, nonzero
from hlo.types import ArrayShape, ElementType

# Result type → types that operands may have besides: products are exact, the sum is rounded once.
_NARROW = {"f32": ("bf16", "f16"), "s32": ("s8",), "f64": ("f32",)}


def dot(builder: Builder, shape: ArrayShape) -> str:
    batches = builder.draw(st.integers(0, shape.rank))
    frees = builder.draw(st.integers(0, shape.rank - batches))
    batch, mine, other = (
        shape.dims[:batches],
        shape.dims[batches : batches + frees],
        shape.dims[batches + frees :],
    )
    room = max(1, MOST_ELEMENTS * 4 // nonzero(shape.dims))
    longest = MOST_RANK - batches - max(len(mine), len(other))
    summed: list[int] = []
    for _ in range(builder.draw(st.integers(0, max(0, min(2, longest))))):
        summed.append(builder.draw(extents(room)))
        room //= max(1, summed[-1])
    element_type = _operand_type(builder, shape.element_type)
    lhs, lhs_batch, lhs_contracting = _operand(builder, element_type, (batch, summed, mine))
    rhs, rhs_batch, rhs_contracting = _operand(builder, element_type, (batch, summed, other))
    return builder.emit(
        "dot",
        shape,
        lhs,
        rhs,
        lhs_batch_dims=lhs_batch,
        lhs_contracting_dims=lhs_contracting,
        rhs_batch_dims=rhs_batch,
        rhs_contracting_dims=rhs_contracting,
    )


def _operand_type(builder: Builder, result: ElementType) -> ElementType:
    narrow = [t for t in builder.types if t.name in _NARROW.get(result.name, ())]
    return builder.draw(st.sampled_from([result, *narrow]))


def _operand(
    builder: Builder, element_type: ElementType, groups: Sequence[Sequence[int]]
) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """An operand with batch and contracting dimensions anywhere, the free ones in order between."""
    batch, summed, free = groups
    bound = [("batch", n, size) for n, size in enumerate(batch)]
    bound += [("summed", n, size) for n, size in enumerate(summed)]
    order = [("free", n, size) for n, size in enumerate(free)]
    for entry in bound:
        order.insert(builder.draw(st.integers(0, len(order))), entry)
    at = {(kind, n): position for position, (kind, n, _) in enumerate(order)}
    name = builder.value(ArrayShape(element_type, tuple(size for _, _, size in order)))
    batch_dims = tuple(at["batch", n] for n in range(len(batch)))
    return name, batch_dims, tuple(at["summed", n] for n in range(len(summed)))


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "dot": (dot, lambda shape: shape.element_type.kind != "pred")
}
