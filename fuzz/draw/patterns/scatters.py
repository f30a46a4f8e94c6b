"""Generate scatters that overwrite, as ``x.at[places].set(values)`` is, and what reads them."""

from __future__ import annotations

import numpy as np

from fuzz.draw.builder import MOST_CONSTANT_ELEMENTS, Builder
from fuzz.draw.patterns.pattern import Pattern, Patterns, changed
from fuzz.draw.scalar_computations import one_of_both
from hlo.literal import Literal
from hlo.types import ArrayShape, ElementType

_LARGEST = 127  # what every type of places can hold


def _places(
    builder: Builder, element_type: ElementType, count: int, rows: int
) -> tuple[str, dict[str, bool]]:
    """Draw where rows go: to constants in ascending order, to consecutive ones, to those that
    arguments say; return also what is known of them."""
    shape = ArrayShape(element_type, (count, 1))
    kind = builder.choice(("ascending", "ascending", "consecutive", "given"))
    if kind == "given":
        return builder.value(shape), {}
    if kind == "consecutive" and {"add", "broadcast", "iota"} <= builder.opcodes:
        name = builder.emit("iota", shape, iota_dimension=0)
        first = builder.number(ArrayShape(element_type), builder.integer(0, 1))
        spread = builder.emit("broadcast", shape, first, dimensions=())
        return builder.emit("add", shape, name, spread), _said(builder, True, True)
    low = -1 if element_type.kind == "signed" else 0
    drawn = [builder.integer(low, min(rows, _LARGEST)) for _ in range(count)]
    places = sorted(drawn)
    literal = Literal(shape, np.array(places).astype(element_type.numpy).reshape(shape.dims))
    known = _said(builder, True, len({*places}) == count)
    return builder.emit("constant", shape, literal=literal), known


def _said(builder: Builder, is_sorted: bool, is_unique: bool) -> dict[str, bool]:
    """Draw what the scatter says of its places, of what holds."""
    holds = {"indices_are_sorted": is_sorted, "unique_indices": is_unique}
    return {name: True for name, value in holds.items() if value and builder.boolean()}


def overwritten(builder: Builder, shape: ArrayShape) -> str:
    """Draw a scatter of rows, or of elements of the first dimension, whose combiner takes the
    update, or rarely the old element; perhaps the rows are gathered again."""
    rows, *rest = shape.dims
    count = builder.integer(1, MOST_CONSTANT_ELEMENTS)
    index = builder.element_type(lambda t: t.is_integer and t.bits >= 8)
    places, known = _places(builder, index, count, rows)
    updates = builder.value(ArrayShape(shape.element_type, (count, *rest)))
    taken = int(not builder.chance(5))
    window = tuple(range(1, shape.rank))
    name = builder.emit(
        "scatter", shape, builder.value(shape), places, updates,
        update_window_dims=window, inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1, to_apply=one_of_both(builder, shape.element_type, taken), **known,
    )  # fmt: skip
    if not builder.chance(3) or "gather" not in builder.opcodes:
        return changed(builder, shape, name)
    others = places if count == rows else _places(builder, index, rows, rows)[0]
    return builder.emit(
        "gather", shape, name, others,
        offset_dims=window, collapsed_slice_dims=(0,), start_index_map=(0,),
        index_vector_dim=1, slice_sizes=(1, *rest),
    )  # fmt: skip


PATTERNS: Patterns = {
    "overwritten": Pattern(
        overwritten, ("scatter",), lambda shape: shape.rank > 0 and shape.elements > 0
    ),
}
