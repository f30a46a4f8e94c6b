"""Generate elementwise subgraphs that fuse, cancel, or fold to constants."""

from __future__ import annotations

from fuzz.draw.builder import Builder
from fuzz.draw.generators.elementwise import DIRECTIONS
from fuzz.draw.patterns.pattern import Pattern, Patterns, applied, chained, changed, ranked
from hlo.types import PRED, ArrayShape


def chain(builder: Builder, shape: ArrayShape) -> str:
    """Draw a chain of elementwise instructions on one value; other operands are values and
    numbers."""
    return chained(builder, shape, builder.value(shape), lambda: _side(builder, shape))


def _side(builder: Builder, shape: ArrayShape) -> str:
    """Draw a value, or a broadcast number that simplifications match: 0, 1 or 2."""
    if builder.boolean() or "broadcast" not in builder.opcodes:
        return builder.value(shape)
    most = 2 if shape.element_type.bits > 2 else 1  # s2 has no 2
    number = builder.number(ArrayShape(shape.element_type), builder.integer(0, most))
    return builder.emit("broadcast", shape, number, dimensions=())


def beside_a_number(builder: Builder, shape: ArrayShape) -> str:
    """Draw a function of an operation whose other operand is one number everywhere: what compilers
    know of it, as that it is NaN, infinite, −1 or a power of two, they use in what follows."""
    number = builder.constant(ArrayShape(shape.element_type))
    spread = builder.emit("broadcast", shape, number, dimensions=())
    operands = builder.permutation((builder.value(shape), spread))
    name = applied(builder, shape, *operands)
    if not builder.boolean() or "compare" not in builder.opcodes or shape.element_type.is_complex:
        return applied(builder, shape, name)
    predicate = ArrayShape(PRED, shape.dims)
    direction = builder.choice(DIRECTIONS)
    mask = builder.emit("compare", predicate, name, spread, direction=direction)
    return builder.emit("convert", shape, mask) if "convert" in builder.opcodes else name


def diamond(builder: Builder, shape: ArrayShape) -> str:
    """Draw two chains from one value, joined again."""
    top = builder.value(shape)
    ways = [changed(builder, shape, top) for _ in range(2)]
    return applied(builder, shape, *ways)


def repeated(builder: Builder, shape: ArrayShape) -> str:
    """Draw a common subexpression: the same computation twice."""
    one, other = builder.value(shape), builder.value(shape)
    first = applied(builder, shape, one, other)
    opcode = builder.opcode(first)
    if first in (one, other):
        return first
    operands = builder.permutation((one, other))
    return applied(builder, shape, first, builder.emit(opcode, shape, *operands))


def folded(builder: Builder, shape: ArrayShape) -> str:
    """Draw an elementwise chain on constants, for constant folding."""
    if shape.elements > 8:
        return builder.leaf(shape)
    start = builder.constant(shape)
    return chained(builder, shape, start, lambda: builder.constant(shape))


def scalars_spread(builder: Builder, shape: ArrayShape) -> str:
    """Draw an operation on two broadcasts, which may be sunk below it: broadcast(a) + broadcast(b)
    = broadcast(a + b)."""
    kept = tuple(d for d in range(shape.rank) if builder.boolean())
    small = ArrayShape(shape.element_type, tuple(shape.dims[d] for d in kept))
    spread = [
        builder.emit(
            "broadcast", shape, changed(builder, small, builder.value(small)), dimensions=kept
        )
        for _ in range(2)
    ]
    return applied(builder, shape, *spread)


def compared(builder: Builder, shape: ArrayShape) -> str:
    """Draw a select between two values by their comparison: a maximum, a clamp, a mask."""
    one, other = builder.value(shape), builder.value(shape)
    directions = DIRECTIONS[:2] if shape.element_type.is_complex else DIRECTIONS
    predicate = ArrayShape(PRED, shape.dims)
    sides = [builder.choice((one, other)) for _ in range(2)]
    mask = builder.emit("compare", predicate, *sides, direction=builder.choice(directions))
    if builder.boolean() and "not" in builder.opcodes:
        mask = builder.emit("not", predicate, mask)
    return builder.emit("select", shape, mask, *builder.permutation((one, other)))


def masked(builder: Builder, shape: ArrayShape) -> str:
    """Draw a mask of zeros by comparing indices (iota), like triangular masks and padding masks."""
    places = ArrayShape(builder.element_type(lambda t: t.is_integer and t.bits > 8), shape.dims)
    rows, columns = (
        builder.emit("iota", places, iota_dimension=builder.integer(0, shape.rank - 1))
        for _ in range(2)
    )
    mask = builder.emit(
        "compare",
        ArrayShape(PRED, shape.dims),
        rows,
        columns,
        direction=builder.choice(DIRECTIONS),
    )
    zero = builder.number(ArrayShape(shape.element_type), 0)
    zeros = builder.emit("broadcast", shape, zero, dimensions=())
    return builder.emit("select", shape, mask, *builder.permutation((builder.value(shape), zeros)))


PATTERNS: Patterns = {
    "chain": Pattern(chain),
    "beside a number": Pattern(beside_a_number, ("broadcast",)),
    "diamond": Pattern(diamond),
    "repeated": Pattern(repeated),
    "folded": Pattern(folded),
    "scalars spread": Pattern(scalars_spread, ("broadcast",)),
    "compared": Pattern(compared, ("compare", "select")),
    "masked": Pattern(masked, ("broadcast", "compare", "iota", "select"), ranked),
}
