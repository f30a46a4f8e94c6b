"""Generate slices at computed indices: starts of every kind, slices of slices, gathers,
scatters."""

from __future__ import annotations

from collections.abc import Sequence

from fuzz.draw.builder import Builder
from fuzz.draw.patterns.pattern import Pattern, Patterns, changed, ranked
from fuzz.draw.patterns.templates import number
from fuzz.draw.shapes import MOST_ELEMENTS, nonzero
from hlo.literal import Literal
from hlo.types import ArrayShape, ElementType

_KINDS = (
    *("constant", "argument", "below", "beyond", "end of the type", "added", "clamped"),
    *("converted", "multiplied", "masked"),
)


def start(builder: Builder, index: ElementType, size: int) -> str:
    """Draw a start index for a dimension of this size: constants in and out of bounds, values, and
    simple arithmetic on values, like that of loops and bounds checks."""
    scalar = ArrayShape(index)
    kind = builder.choice(_KINDS)
    if kind == "constant":
        return _constant(builder, scalar, str(builder.integer(0, max(0, size))))
    if kind in ("below", "beyond", "end of the type"):
        words = {"below": "-1", "beyond": str(size + builder.integer(0, 2))}
        return _constant(builder, scalar, words.get(kind, builder.choice(("min", "max"))))
    value = builder.value(scalar)
    if kind == "argument":
        return value
    if kind == "converted":
        wide = ArrayShape(builder.element_type(lambda t: t.is_integer))
        return builder.emit("convert", scalar, builder.value(wide))
    other = _constant(builder, scalar, str(builder.integer(0, size)))
    if kind == "clamped":
        zero = _constant(builder, scalar, "0")
        return builder.emit("clamp", scalar, zero, value, other)
    opcode = {"added": "add", "multiplied": "multiply", "masked": "and"}[kind]
    return builder.emit(opcode, scalar, *builder.permutation((value, other)))


def _constant(builder: Builder, scalar: ArrayShape, word: str) -> str:
    literal = Literal(scalar, number(word, scalar.element_type))
    return builder.emit("constant", scalar, literal=literal)


def starts(builder: Builder, dims: Sequence[int]) -> list[str]:
    """Draw start indices of one integer type."""
    index = builder.element_type(lambda t: t.is_integer)
    return [start(builder, index, size) for size in dims]


def _wider(builder: Builder, shape: ArrayShape) -> ArrayShape:
    """Draw a shape that slices of this shape fit in."""
    dims = [size + builder.integer(0, 3) for size in shape.dims]
    return ArrayShape(
        shape.element_type, tuple(dims) if nonzero(dims) <= MOST_ELEMENTS else shape.dims
    )


def _dynamic_slice(builder: Builder, name: str, whole: ArrayShape, part: ArrayShape) -> str:
    places = starts(builder, whole.dims)
    return builder.emit("dynamic-slice", part, name, *places, dynamic_slice_sizes=part.dims)


def _slice(builder: Builder, name: str, whole: ArrayShape, part: ArrayShape) -> str:
    window = []
    for size, extent in zip(part.dims, whole.dims, strict=True):
        first = builder.integer(0, extent - size)
        window.append((first, first + size, 1))
    return builder.emit("slice", part, name, slice=tuple(window))


def slice_of_slice(builder: Builder, shape: ArrayShape) -> str:
    """Draw a slice of a slice, perhaps of another; at least one has computed starts."""
    shapes = [shape]
    for _ in range(2 + builder.chance(4)):
        shapes.append(_wider(builder, shapes[-1]))
    shapes.reverse()
    name = builder.value(shapes[0])
    computed = builder.integer(1, len(shapes) - 1)
    for place, (whole, part) in enumerate(zip(shapes, shapes[1:], strict=False), 1):
        is_computed = place == computed or builder.boolean()
        cut = _dynamic_slice if is_computed else _slice
        name = changed(builder, part, cut(builder, name, whole, part))
    return name


def slice_of_update(builder: Builder, shape: ArrayShape) -> str:
    """Draw a slice of a dynamic-update-slice: at the same index, a nearby one, or any."""
    whole = _wider(builder, shape)
    update = shape if builder.boolean() else _wider_than_nothing(builder, whole)
    places = starts(builder, whole.dims)
    written = builder.emit(
        "dynamic-update-slice", whole, builder.value(whole), builder.value(update), *places
    )
    if builder.boolean():
        again = starts(builder, whole.dims)
        parts = written, builder.value(update)
        written = builder.emit("dynamic-update-slice", whole, *parts, *again)
    if builder.boolean():
        return builder.emit(
            "dynamic-slice", shape, written, *places, dynamic_slice_sizes=shape.dims
        )
    return _slice(builder, written, whole, shape)


def _wider_than_nothing(builder: Builder, whole: ArrayShape) -> ArrayShape:
    dims = tuple(builder.integer(min(1, size), size) for size in whole.dims)
    return ArrayShape(whole.element_type, dims)


def row_of_slice(builder: Builder, shape: ArrayShape) -> str:
    """Draw a gather of rows of a slice, as indexing by an array makes, perhaps sliced again."""
    rows, *rest = shape.dims
    count = rows + builder.integer(0, 2)
    table = ArrayShape(shape.element_type, (builder.integer(1, 5), *rest))
    whole = _wider(builder, table)
    cut = builder.choice((_slice, _dynamic_slice))
    name = changed(builder, table, cut(builder, builder.value(whole), whole, table))
    places = ArrayShape(builder.element_type(lambda t: t.is_integer), (count, 1))
    gathered = ArrayShape(shape.element_type, (count, *rest))
    name = builder.emit(
        "gather", gathered, name, builder.value(places),
        offset_dims=tuple(range(1, shape.rank)), collapsed_slice_dims=(0,), start_index_map=(0,),
        index_vector_dim=1, slice_sizes=(1, *rest),
    )  # fmt: skip
    return name if count == rows else _slice(builder, name, gathered, shape)


def scatter_into_slice(builder: Builder, shape: ArrayShape) -> str:
    """Draw a scatter of rows, some repeated, into a slice, or a slice of a scatter."""
    own, *rest = shape.dims
    count = builder.integer(1, 4)
    before = builder.boolean()
    inner = shape if before else _wider(builder, shape)
    whole = _wider(builder, inner) if before else inner
    name = builder.value(whole)
    if before:
        name = builder.choice((_slice, _dynamic_slice))(builder, name, whole, inner)
    places = ArrayShape(builder.element_type(lambda t: t.is_integer), (count, 1))
    updates = builder.value(ArrayShape(shape.element_type, (count, *inner.dims[1:])))
    opcode = builder.choice(("add", "multiply"))
    name = builder.emit(
        "scatter", inner, name, builder.value(places), updates,
        update_window_dims=tuple(range(1, shape.rank)), inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,), index_vector_dim=1,
        to_apply=builder.binary(opcode, shape.element_type),
    )  # fmt: skip
    return name if before else _slice(builder, name, inner, shape)


def _has_rows(shape: ArrayShape) -> bool:
    return shape.rank > 0 and shape.elements > 0


_CUT = ("dynamic-slice", "slice")

PATTERNS: Patterns = {
    "slice of dynamic slice": Pattern(slice_of_slice, _CUT, ranked),
    "slice of dynamic update": Pattern(
        slice_of_update, ("dynamic-slice", "dynamic-update-slice", "slice"), ranked
    ),
    "gather of slice": Pattern(row_of_slice, ("gather", *_CUT), _has_rows),
    "scatter of slice": Pattern(scatter_into_slice, ("scatter", *_CUT), _has_rows),
}
