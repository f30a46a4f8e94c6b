"""Generate data movement that cancels or composes, for layout simplifications."""

from __future__ import annotations

from fuzz.draw.builder import Builder
from fuzz.draw.generators.data_movement import other_dims, sliced
from fuzz.draw.patterns.pattern import Pattern, Patterns, changed, ranked
from fuzz.draw.shapes import MOST_ELEMENTS, MOST_RANK, nonzero, size_to
from hlo.types import S32, ArrayShape, ElementType

_PARTS = (2, 3, 4, 8, 16)


def transposed(builder: Builder, shape: ArrayShape) -> str:
    """Draw a transpose, an elementwise operation, and the transpose back."""
    order = builder.permutation(range(shape.rank))
    back = tuple(order.index(d) for d in range(shape.rank))
    there = ArrayShape(shape.element_type, tuple(shape.dims[d] for d in order))
    name = builder.emit("transpose", there, builder.value(shape), dimensions=tuple(order))
    return builder.emit("transpose", shape, changed(builder, there, name), dimensions=back)


def reshaped(builder: Builder, shape: ArrayShape) -> str:
    """Draw a reshape, perhaps a transpose, and another reshape."""
    there = ArrayShape(shape.element_type, other_dims(builder, shape.elements))
    name = changed(builder, there, builder.emit("reshape", there, builder.value(shape)))
    if builder.boolean() and "transpose" in builder.opcodes:
        order = tuple(builder.permutation(range(there.rank)))
        there = ArrayShape(shape.element_type, tuple(there.dims[d] for d in order))
        name = builder.emit("transpose", there, name, dimensions=order)
    return builder.emit("reshape", shape, name)


def sliced_twice(builder: Builder, shape: ArrayShape) -> str:
    """Draw a slice of a slice."""
    middle, last = sliced(builder, shape.dims, 2)
    whole, first = sliced(builder, middle, 2)
    between = ArrayShape(shape.element_type, middle)
    name = builder.value(ArrayShape(shape.element_type, whole))
    name = changed(builder, between, builder.emit("slice", between, name, slice=first))
    return builder.emit("slice", shape, name, slice=last)


def padded_and_cut(builder: Builder, shape: ArrayShape) -> str:
    """Draw padding, an elementwise operation, and a slice or negative padding that removes part of
    it."""
    dims = tuple(size + 2 for size in shape.dims)
    if nonzero(dims) > MOST_ELEMENTS:
        return builder.value(shape)
    low = [builder.integer(0, 2) for _ in dims]
    start = [builder.integer(0, 2) for _ in dims]
    wide, number = ArrayShape(shape.element_type, dims), ArrayShape(shape.element_type)
    name = builder.emit(
        "pad", wide, builder.value(shape), builder.value(number),
        padding=tuple((a, 2 - a, 0) for a in low),
    )  # fmt: skip
    name = changed(builder, wide, name)
    if builder.boolean() and "slice" in builder.opcodes:
        window = tuple((a, a + size, 1) for a, size in zip(start, shape.dims, strict=True))
        return builder.emit("slice", shape, name, slice=window)
    padding = tuple((-a, a - 2, 0) for a in start)
    return builder.emit("pad", shape, name, builder.value(number), padding=padding)


def cut_and_joined(builder: Builder, shape: ArrayShape) -> str:
    """Draw slices of one value that are concatenated again, perhaps changed, or in another
    order."""
    dimension = builder.integer(0, shape.rank - 1)
    size, name = shape.dims[dimension], builder.value(shape)
    place = size_to(builder, max(1, size - 1)) if size else 0
    parts = []
    for start, limit in builder.permutation(((0, place), (place, size))):
        window = tuple(
            (start, limit, 1) if d == dimension else (0, n, 1) for d, n in enumerate(shape.dims)
        )
        dims = tuple(b - a for a, b, _ in window)
        part = ArrayShape(shape.element_type, dims)
        parts.append(changed(builder, part, builder.emit("slice", part, name, slice=window)))
    return builder.emit("concatenate", shape, *parts, dimensions=(dimension,))


def updated_in_place(builder: Builder, shape: ArrayShape) -> str:
    """Draw a dynamic-slice that is changed and written back at the same or nearly the same
    index."""
    dims = tuple(builder.integer(min(1, size), size) for size in shape.dims)
    part, index, name = ArrayShape(shape.element_type, dims), ArrayShape(S32), builder.value(shape)
    starts = [_start(builder, index, size) for size in shape.dims]
    others = starts if builder.boolean() else [_start(builder, index, n) for n in shape.dims]
    read = builder.emit("dynamic-slice", part, name, *starts, dynamic_slice_sizes=dims)
    return builder.emit("dynamic-update-slice", shape, name, changed(builder, part, read), *others)


def _start(builder: Builder, index: ArrayShape, size: int) -> str:
    if builder.boolean():
        return builder.value(index)
    return builder.number(index, builder.integer(-1, size))


def interleaved(builder: Builder, shape: ArrayShape) -> str:
    """Draw interleaved elements: each repeated, the parts of wider ones, or those of several arrays
    in turn. A fused index is then divided by their number."""
    *before, size = shape.dims
    parts = builder.choice([n for n in _PARTS if size % n == 0])
    apart = ArrayShape(shape.element_type, (*before, size // parts, parts))
    ways = [_repeated, _in_turn, *([_split] if _wider(builder, apart) else [])]
    name = changed(builder, apart, builder.choice(ways)(builder, apart))
    return builder.emit("reshape", shape, name)


def _repeated(builder: Builder, apart: ArrayShape) -> str:
    whole = ArrayShape(apart.element_type, apart.dims[:-1])
    kept = tuple(range(whole.rank))
    return builder.emit("broadcast", apart, builder.value(whole), dimensions=kept)


def _in_turn(builder: Builder, apart: ArrayShape) -> str:
    *before, parts = apart.dims
    order = (*range(1, apart.rank), 0)
    planes = builder.value(ArrayShape(apart.element_type, (parts, *before)))
    return builder.emit("transpose", apart, planes, dimensions=order)


def _wider(builder: Builder, apart: ArrayShape) -> list[ElementType]:
    """Return the program's types that a bitcast splits into this many elements."""
    own, bits = apart.element_type, apart.element_type.bits * apart.dims[-1]
    return [t for t in builder.types if t.bits == bits and t.is_complex == own.is_complex]


def _split(builder: Builder, apart: ArrayShape) -> str:
    wide = ArrayShape(builder.choice(_wider(builder, apart)), apart.dims[:-1])
    return builder.emit("bitcast-convert", apart, builder.value(wide))


def _has_parts(shape: ArrayShape) -> bool:
    ranked = 0 < shape.rank < MOST_RANK
    return ranked and any(shape.dims[-1] and shape.dims[-1] % n == 0 for n in _PARTS)


def reversed_twice(builder: Builder, shape: ArrayShape) -> str:
    both = [tuple(d for d in range(shape.rank) if builder.boolean()) for _ in range(2)]
    name = builder.emit("reverse", shape, builder.value(shape), dimensions=both[0])
    return builder.emit("reverse", shape, changed(builder, shape, name), dimensions=both[1])


PATTERNS: Patterns = {
    "transposed": Pattern(transposed, ("transpose",)),
    "reshaped": Pattern(reshaped, ("reshape",)),
    "sliced twice": Pattern(sliced_twice, ("slice",), ranked),
    "padded and cut": Pattern(padded_and_cut, ("pad",), ranked),
    "cut and joined": Pattern(cut_and_joined, ("concatenate", "slice"), ranked),
    "updated in place": Pattern(
        updated_in_place, ("dynamic-slice", "dynamic-update-slice"), ranked
    ),
    "reversed twice": Pattern(reversed_twice, ("reverse",), ranked),
    "interleaved": Pattern(
        interleaved, ("bitcast-convert", "broadcast", "reshape", "transpose"), _has_parts
    ),
}
