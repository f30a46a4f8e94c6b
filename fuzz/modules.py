"""A strategy of whole programs."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from fuzz.builder import Accepts, Builder, Generator
from fuzz.generators import contraction, data_movement, elementwise, indexing, reduction
from fuzz.shapes import TYPES, shapes
from hlo.module import Module
from hlo.types import ElementType

_FAMILIES = (elementwise, data_movement, reduction, contraction, indexing)

GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    opcode: entry for family in _FAMILIES for opcode, entry in family.GENERATORS.items()
}


@st.composite
def modules(
    draw: st.DrawFn,
    *,
    max_instructions: int = 12,
    element_types: Sequence[ElementType] = TYPES,
    opcodes: Sequence[str] = tuple(GENERATORS),
) -> Module:
    """Valid programs of about ``max_instructions`` besides parameters and constants."""
    budget = draw(st.integers(1, max_instructions))
    chosen = {opcode: GENERATORS[opcode] for opcode in opcodes}
    builder = Builder(draw, chosen, element_types, budget)
    count = draw(st.integers(1, 3))
    results = [builder.value(draw(shapes(element_types))) for _ in range(count)]
    return builder.module(results)
