"""A strategy of whole programs."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from fuzz.builder import Builder, Generator
from fuzz.generators import (
    asynchronous,
    batch_norm,
    collective,
    contraction,
    control,
    custom_call,
    data_movement,
    dynamic,
    elementwise,
    grouped,
    indexing,
    linear_algebra,
    random,
    reduction,
    scan,
    sort,
    window,
)
from fuzz.shapes import ALL_TYPES, MOST_ELEMENTS, TYPES, Accepts, shapes
from hlo.module import Module
from hlo.types import ElementType

_FAMILIES = (
    *(elementwise, data_movement, control, reduction, window, contraction, indexing, sort),
    *(linear_algebra, random, collective, asynchronous, dynamic),
    *(batch_norm, grouped, scan, custom_call),
)

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


@st.composite
def single_op(
    draw: st.DrawFn,
    opcode: str,
    *,
    element_types: Sequence[ElementType] = ALL_TYPES,
    constants: bool = False,
    max_elements: int = MOST_ELEMENTS,
) -> Module:
    """Programs of one instruction: its operands are parameters (or, if ``constants``, perhaps small
    constants), its result, of one of ``element_types``, is the program's. All that the verifier
    takes is drawn: types, ranks 0 to 5, dimensions without elements, values of the attributes."""
    generator, accepts = GENERATORS[opcode]
    shape = draw(shapes(element_types, accepts, max_elements))
    chosen = {opcode: GENERATORS[opcode]}
    builder = Builder(draw, chosen, ALL_TYPES, 0, constants=constants)
    result = generator(builder, shape)
    if opcode.endswith(("-start", "-update")):  # what is started must be done
        return builder.module([result])
    return builder.module_of(opcode)
