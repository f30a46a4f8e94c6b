"""Generate bitcasts: reshapes, transposes and conversions of bits that move no byte."""

from __future__ import annotations

from dataclasses import replace

from fuzz.draw.builder import Builder
from fuzz.draw.generators.data_movement import in_layout, other_dims
from fuzz.draw.patterns.pattern import Pattern, Patterns, changed
from fuzz.draw.shapes import MOST_RANK
from hlo.types import PRED, ArrayShape, Layout

_MOST_STEPS = 4


def _order(shape: ArrayShape) -> tuple[int, ...]:
    """Return the dimensions of an array from the slowest varying to the fastest."""
    if shape.layout is None:
        return tuple(range(shape.rank))
    return tuple(reversed(shape.layout.minor_to_major))


def _shape(builder: Builder, name: str) -> ArrayShape:
    shape = builder.shape(name)
    assert isinstance(shape, ArrayShape)
    return shape


def _transposed(builder: Builder, name: str) -> str:
    """Draw a transpose, half of the time as a bitcast: its result has another layout."""
    own = _shape(builder, name)
    order = builder.permutation(range(own.rank))
    there = ArrayShape(own.element_type, tuple(own.dims[d] for d in order))
    if not own.rank or builder.boolean():
        return builder.emit("transpose", there, name, dimensions=tuple(order))
    minor_to_major = tuple(order.index(d) for d in reversed(_order(own)))
    return builder.emit("bitcast", replace(there, layout=Layout(minor_to_major)), name)


def _reshaped(builder: Builder, name: str) -> str:
    """Draw a reshape, or a bitcast to other dimensions, which reads the bytes as they lie."""
    own = _shape(builder, name)
    there = ArrayShape(own.element_type, other_dims(builder, own.elements))
    opcode = builder.choice(("reshape", "bitcast"))
    return builder.emit(opcode, there, name)


def _copied(builder: Builder, name: str) -> str:
    """Draw a copy to another layout, or to none."""
    plain = replace(_shape(builder, name), layout=None)
    return builder.emit("copy", in_layout(builder, plain) if builder.boolean() else plain, name)


def _of_bits(builder: Builder, name: str) -> str:
    """Draw the bits as another type of the same width, or twice as wide or as narrow, if there is
    one."""
    own = _shape(builder, name)
    plain = replace(own, layout=None)
    types = builder.other_types(lambda t: t is not PRED and not t.is_complex)
    bits = builder.choice((own.element_type.bits, own.element_type.bits // 2))
    able = [t for t in types if t.bits == bits]
    if own.is_complex or own.element_type is PRED or not able:
        return name
    other = builder.choice(able)
    if bits == own.element_type.bits:
        # Only what a byte or more has is whole in memory.
        opcode = builder.choice(("bitcast-convert", "bitcast")) if bits >= 8 else "bitcast-convert"
        return builder.emit(opcode, replace(own, element_type=other), name)
    if own.rank == MOST_RANK:
        return name
    there = ArrayShape(other, (*plain.dims, 2))
    split = builder.emit("bitcast-convert", there, name)
    if builder.boolean() and "reverse" in builder.opcodes:
        split = builder.emit("reverse", there, split, dimensions=(plain.rank,))
    return builder.emit("bitcast-convert", plain, split)


def bitcasts(builder: Builder, shape: ArrayShape) -> str:
    """Draw a chain of reshapes, transposes, copies and bitcasts of a value, or of a parameter in
    any layout, with elementwise instructions in between."""
    dims = tuple(builder.permutation(shape.dims))
    start = in_layout(builder, ArrayShape(shape.element_type, dims))
    is_given = not builder.chance(4)
    name = builder.argument(start) if is_given else builder.value(replace(start, layout=None))
    steps = (_transposed, _transposed, _reshaped, _reshaped, _copied, _of_bits)
    for _ in range(builder.integer(2, _MOST_STEPS)):
        name = builder.choice(steps)(builder, name)
        own = _shape(builder, name)
        if builder.chance(4):
            name = changed(builder, replace(own, layout=None), name)
    own = _shape(builder, name)
    if own.element_type is not shape.element_type:
        name = builder.emit("bitcast-convert", replace(own, element_type=shape.element_type), name)
    return builder.emit(builder.choice(("bitcast", "bitcast", "reshape")), shape, name)


PATTERNS: Patterns = {
    "bitcasts": Pattern(bitcasts, ("bitcast", "bitcast-convert", "copy", "reshape", "transpose"))
}
