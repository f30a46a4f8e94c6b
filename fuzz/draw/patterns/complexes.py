"""Generate complex numbers that are taken apart and put together again."""

from __future__ import annotations

from fuzz.draw.builder import Builder
from fuzz.draw.generators.elementwise import WHOLES
from fuzz.draw.patterns.pattern import Pattern, Patterns, applied, changed
from hlo.types import PARTS, ArrayShape

_MOST_STEPS = 4


def _apart(builder: Builder, name: str, part: ArrayShape) -> list[str]:
    return [builder.emit(opcode, part, name) for opcode in ("real", "imag")]


def _together(builder: Builder, name: str, whole: ArrayShape, part: ArrayShape) -> str:
    """Take a complex value apart and put parts together: both, exchanged, one changed, twice one,
    or the real one alone."""
    parts = _apart(builder, name, part)
    kind = builder.choice(("changed", "conjugate", "exchanged", "converted", "both", "one"))
    if kind == "converted" and "convert" in builder.opcodes:
        return builder.emit("convert", whole, changed(builder, part, builder.choice(parts)))
    if kind == "changed":
        parts = [changed(builder, part, one) for one in parts]
    elif kind == "exchanged":
        parts.reverse()
    elif kind == "conjugate":
        place = builder.integer(0, 1)
        parts[place] = builder.emit("negate", part, parts[place])
    elif kind == "one":
        parts = [builder.choice(parts)] * 2
    return builder.emit("complex", whole, *parts)


def _product(builder: Builder, name: str, whole: ArrayShape, part: ArrayShape) -> str:
    """Write a product out, as hardware does: (a + bi)(c + di)."""
    a, b = _apart(builder, name, part)
    c, d = _apart(builder, builder.value(whole), part)
    ac, bd, ad, bc = (
        builder.emit("multiply", part, *pair) for pair in ((a, c), (b, d), (a, d), (b, c))
    )
    real = builder.emit("subtract", part, ac, bd)
    imag = builder.emit("add", part, ad, bc)
    return builder.emit("complex", whole, real, imag)


def parts_of_complex(builder: Builder, shape: ArrayShape) -> str:
    """Draw a chain of complex numbers, their parts and complex numbers of these; for a real shape
    its end is a part or the absolute value. A program without complex numbers gets the real part
    of a real one."""
    own = shape.element_type
    whole = shape if own.is_complex else ArrayShape(WHOLES[own], shape.dims)
    part = ArrayShape(PARTS[own], shape.dims) if own.is_complex else shape
    if not builder.other_types(lambda t: t is whole.element_type):
        return builder.emit("real", shape, builder.value(shape))
    name = builder.value(whole)
    for _ in range(builder.integer(1, _MOST_STEPS)):
        kind = builder.choice(("together", "together", "product", "applied"))
        if kind == "together":
            name = _together(builder, name, whole, part)
        elif kind == "product":
            name = _product(builder, name, whole, part)
        else:
            operands = (name, builder.value(whole)) if builder.boolean() else (name,)
            name = applied(builder, whole, *operands)
    if own.is_complex:
        return name
    return builder.emit(builder.choice(("real", "imag", "abs")), shape, name)


PATTERNS: Patterns = {
    "parts of complex": Pattern(
        parts_of_complex,
        ("add", "complex", "imag", "multiply", "negate", "real", "subtract"),
        lambda shape: shape.is_complex or shape.element_type in WHOLES,
    )
}
