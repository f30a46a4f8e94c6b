"""Generate type conversions: there and back, in chains, around arithmetic, bit by bit."""

from __future__ import annotations

from fuzz.draw.builder import MOST_CONSTANT_ELEMENTS, Builder
from fuzz.draw.generators.elementwise import ALIKE, DIRECTIONS
from fuzz.draw.patterns.pattern import Pattern, Patterns, applied, changed
from fuzz.draw.shapes import ALL_TYPES, MOST_RANK
from hlo.types import PRED, ArrayShape, ElementType

_NARROW = tuple(t for t in ALL_TYPES if t.is_float and t.bits <= 16)
_INTEGERS = tuple(t for t in ALL_TYPES if t.is_integer)


def _any_type(builder: Builder, near: ElementType) -> ElementType:
    """Draw a type to convert to: any that there may be, or mostly one of the program's."""
    types = builder.types if builder.boolean() else builder.other_types(lambda t: True)
    return builder.choice([t for t in types if t.is_complex == near.is_complex] or [near])


def _converted(builder: Builder, name: str, shape: ArrayShape, to: ElementType) -> str:
    return builder.emit("convert", ArrayShape(to, shape.dims), name)


def there_and_back(builder: Builder, shape: ArrayShape) -> str:
    """Draw a conversion to another type and back, with an operation in between half of the time."""
    other = _any_type(builder, shape.element_type)
    there = ArrayShape(other, shape.dims)
    name = _converted(builder, builder.value(shape), shape, other)
    return _converted(builder, changed(builder, there, name), there, shape.element_type)


def several(builder: Builder, shape: ArrayShape) -> str:
    """Draw two to four conversions in a row, which round, truncate or extend on the way."""
    count = builder.integer(2, 4)
    types = [_any_type(builder, shape.element_type) for _ in range(count)]
    name = builder.value(ArrayShape(types[0], shape.dims))
    for element_type in (*types[1:], shape.element_type):
        name = _converted(builder, name, shape, element_type)
    return name


def narrow_arithmetic(builder: Builder, shape: ArrayShape) -> str:
    """Draw arithmetic in a narrow float type on converted operands, with the result converted back.

    Float normalisation computes that in a wider type, and must round in between. Integers use
    another type, which one operand may have from the start: what is known of the bits of a
    converted number holds in its own type.
    """
    types = _INTEGERS if shape.element_type.is_integer else _NARROW
    narrow = builder.choice([t for t in types if t in builder.types] or [shape.element_type])
    there = ArrayShape(narrow, shape.dims)
    operands = [_converted(builder, builder.value(shape), shape, narrow) for _ in range(2)]
    if shape.element_type.is_integer and builder.boolean():
        operands[1] = builder.value(there)
    name = applied(builder, there, *operands)
    for _ in range(builder.integer(0, 2)):
        pair = builder.permutation((name, builder.choice(operands)))
        name = applied(builder, there, *(pair if builder.boolean() else [name]))
    return _converted(builder, name, there, shape.element_type)


def narrow_precision(builder: Builder, shape: ArrayShape) -> str:
    """Draw reduce-precision once or twice, perhaps between conversions: to the format of a type, or
    any."""
    name = builder.value(shape)
    for _ in range(builder.integer(1, 2)):
        # The formats of f16, bf16, f32, f64, f8e4m3 and f8e5m2.
        exponent, mantissa = builder.choice(((5, 10), (8, 7), (8, 23), (11, 52), (4, 3), (5, 2)))
        if builder.boolean():
            exponent, mantissa = builder.integer(1, 12), builder.integer(0, 53)
        name = builder.emit(
            "reduce-precision", shape, name, exponent_bits=exponent, mantissa_bits=mantissa
        )
        name = changed(builder, shape, name)
    return name


def bits_there_and_back(builder: Builder, shape: ArrayShape) -> str:
    """Draw a bitcast to another type of the same width, an operation, and the bitcast back."""
    own = shape.element_type
    same = builder.other_types(lambda t: t.bits == own.bits and _has_plain_bits(t))
    there = ArrayShape(builder.choice(same or [own]), shape.dims)
    name = builder.emit("bitcast-convert", there, builder.value(shape))
    return builder.emit("bitcast-convert", shape, changed(builder, there, name))


def _has_plain_bits(element_type: ElementType) -> bool:
    return not element_type.is_complex and element_type is not PRED


def bits_narrowed(builder: Builder, shape: ArrayShape) -> str:
    """Draw a bitcast to a narrower type with one more dimension, an operation, and the bitcast
    back; where there may be no narrower type, one of the same width."""
    own = shape.element_type
    narrower = builder.other_types(lambda t: _has_plain_bits(t) and _splits(own, t))
    if not narrower:
        return bits_there_and_back(builder, shape)
    other = builder.choice(narrower)
    there = ArrayShape(other, (*shape.dims, own.bits // other.bits))
    name = builder.emit("bitcast-convert", there, builder.value(shape))
    name = changed(builder, there, name)
    if builder.boolean() and "reverse" in builder.opcodes:
        name = builder.emit("reverse", there, name, dimensions=(shape.rank,))
    return builder.emit("bitcast-convert", shape, name)


def _splits(wide: ElementType, narrow: ElementType) -> bool:
    return wide.bits > narrow.bits and wide.bits % narrow.bits == 0


def _can_split(shape: ArrayShape) -> bool:
    own = shape.element_type
    return _has_plain_bits(own) and own.bits >= 8 and shape.rank < MOST_RANK


def compared_after_conversion(builder: Builder, shape: ArrayShape) -> str:
    """Draw a comparison of a converted value with a constant, or with another converted value."""
    own = builder.element_type(lambda t: not t.is_complex)
    other = _any_type(builder, own)
    there = ArrayShape(other, shape.dims)
    name = _converted(builder, builder.value(ArrayShape(own, shape.dims)), shape, other)
    if builder.boolean():
        side = builder.emit("broadcast", there, builder.constant(ArrayShape(other)), dimensions=())
    else:
        side = _converted(builder, builder.value(ArrayShape(own, shape.dims)), shape, other)
    sides = builder.permutation((name, side))
    return builder.emit("compare", shape, *sides, direction=builder.choice(DIRECTIONS))


def total_order(builder: Builder, shape: ArrayShape) -> str:
    """Draw a total-order comparison of arguments or constants, possibly moved: in computed values a
    NaN may have either sign."""
    own = builder.element_type(lambda t: t.is_float)
    others = builder.other_types(lambda t: t.is_float) or [own]
    data = ArrayShape(own if builder.boolean() else builder.choice(others), shape.dims)
    sides = [_given(builder, data) for _ in range(2)]
    if builder.chance(4):
        sides[1] = sides[0]
    direction = builder.choice(DIRECTIONS)
    return builder.emit("compare", shape, *sides, direction=direction, type="TOTALORDER")


def _given(builder: Builder, shape: ArrayShape) -> str:
    kind = builder.choice(("leaf", "constant", "reverse"))
    small = shape.elements <= MOST_CONSTANT_ELEMENTS
    if kind == "constant":
        whole = shape if small else ArrayShape(shape.element_type)
        name = builder.constant(whole)
        return name if small else builder.emit("broadcast", shape, name, dimensions=())
    name = builder.leaf(shape)
    if kind == "reverse" and "reverse" in builder.opcodes and shape.rank:
        return builder.emit("reverse", shape, name, dimensions=(shape.rank - 1,))
    return name


def folded_instruction(builder: Builder, shape: ArrayShape) -> str:
    """Draw an instruction with any opcode on constants, for constant folding, and perhaps another
    on its result."""
    opcode = builder.choice(FOLDED)
    builder.drew(f"folded {opcode}")
    return changed(builder, shape, builder.folded(opcode, shape))


FOLDED = (
    *ALIKE,
    *("abs", "bitcast-convert", "broadcast", "clamp", "compare", "complex", "concatenate"),
    *("convert", "convolution", "dot", "dynamic-slice", "dynamic-update-slice", "gather", "imag"),
    *("iota", "is-finite", "map", "pad", "real", "reduce", "reduce-precision", "reduce-window"),
    *("reshape", "reverse", "scatter", "select", "select-and-scatter", "slice", "sort"),
    *("transpose", "while", "conditional", "call"),
)


def _is_small(shape: ArrayShape) -> bool:
    return shape.elements <= 8 * MOST_CONSTANT_ELEMENTS


PATTERNS: Patterns = {
    "converted there and back": Pattern(there_and_back, ("convert",)),
    "converted several times": Pattern(several, ("convert",)),
    "narrow arithmetic": Pattern(
        narrow_arithmetic,
        ("convert",),
        lambda shape: shape.element_type.is_float or shape.element_type.is_integer,
    ),
    "narrow precision": Pattern(
        narrow_precision, ("reduce-precision",), lambda shape: shape.element_type.is_float
    ),
    "bits there and back": Pattern(
        bits_there_and_back, ("bitcast-convert",), lambda shape: _has_plain_bits(shape.element_type)
    ),
    "bits narrowed": Pattern(bits_narrowed, ("bitcast-convert",), _can_split),
    "compared after conversion": Pattern(
        compared_after_conversion,
        ("broadcast", "compare", "convert"),
        lambda shape: shape.element_type is PRED,
    ),
    "compared in total order": Pattern(
        total_order, ("broadcast", "compare"), lambda shape: shape.element_type is PRED
    ),
    "folded instruction": Pattern(folded_instruction, (), _is_small),
}
