"""Detect programs that jaxlib's conversion to StableHLO changes: it gives them other types."""

from __future__ import annotations

from hlo.module import Instruction, Module
from hlo.types import PRED, leaves


def converted_otherwise(module: Module) -> str | None:
    """Return why a module's StableHLO is another program, None if no such case is known."""
    instructions = (i for computation in module.computations for i in computation.instructions)
    return next((why for one in instructions if (why := _why(one)) is not None), None)


def _why(instruction: Instruction) -> str | None:
    for leaf in leaves(instruction.shape):
        kind = leaf.element_type
        if kind.is_integer and kind.bits == 1 and kind is not PRED:
            return f"StableHLO has no {kind}: jaxlib makes pred of it"
        is_random = instruction.opcode == "rng-bit-generator"
        if is_random and kind.is_array and kind.kind != "unsigned":
            return f"jaxlib makes unsigned integers of random bits of {kind}"
    return None
