"""Whole programs."""

from __future__ import annotations

from collections.abc import Sequence

from fuzz.builder import Builder, Generator
from fuzz.choices import Choices
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
from fuzz.shapes import ALL_TYPES, MOST_ELEMENTS, TYPES, Accepts, shape
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


def program(
    choices: Choices,
    *,
    max_instructions: int = 12,
    element_types: Sequence[ElementType] = TYPES,
    opcodes: Sequence[str] = tuple(GENERATORS),
) -> Module:
    """A valid program of at most about ``max_instructions`` besides parameters and constants."""
    budget = choices.integer(1, max_instructions)
    chosen = {opcode: GENERATORS[opcode] for opcode in opcodes}
    builder = Builder(choices, chosen, element_types, budget)
    count = choices.integer(1, 3)
    return builder.module([builder.value(shape(choices, element_types)) for _ in range(count)])


def single_op(
    choices: Choices,
    opcode: str,
    *,
    element_types: Sequence[ElementType] = ALL_TYPES,
    constants: bool = False,
    max_elements: int = MOST_ELEMENTS,
) -> Module:
    """A program of one instruction: its operands are parameters (or, if ``constants``, perhaps
    small constants), its result, of one of ``element_types``, is the program's. All that
    the verifier takes is drawn: types, ranks 0 to 5, dimensions without elements, values of the
    attributes."""
    generator, accepts = GENERATORS[opcode]
    wanted = shape(choices, element_types, accepts, max_elements)
    builder = Builder(choices, {opcode: GENERATORS[opcode]}, ALL_TYPES, 0, constants=constants)
    result = generator(builder, wanted)
    if opcode.endswith(("-start", "-update")):  # what is started must be done
        return builder.module([result])
    return builder.module_of(opcode)
