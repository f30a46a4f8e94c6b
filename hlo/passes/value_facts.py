"""Look up facts about operands for simplification rules: definitions, shapes, splat constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from hlo.dynamic_sizes import has_bounds
from hlo.module import Instruction
from hlo.passes.rewriting import Answer, array, constant_value
from hlo.types import ArrayShape, Shape


class ValueFacts:
    """Look up the definitions of operands: earlier instructions, simplified already."""

    def __init__(self, definitions: Mapping[str, Instruction]) -> None:
        self._definitions = definitions

    def operand(self, instruction: Instruction, number: int = 0) -> Instruction:
        """Return the instruction that defines an operand, by its number."""
        return self._definitions[instruction.operands[number]]

    def shape(self, instruction: Instruction, number: int = 0) -> Shape:
        """Return an operand's shape."""
        return self._definitions[instruction.operands[number]].shape

    def array(self, instruction: Instruction, number: int = 0) -> ArrayShape:
        """Return the shape of an operand that must be an array."""
        return array(self.shape(instruction, number))

    def is_static(self, instruction: Instruction) -> bool:
        """Return whether result, operands and their operands have no bounded dimension."""
        operands = [self._definitions[name] for name in instruction.operands]
        # No rule looks further: slice(concatenate(x, …)) reads the shapes of the parts.
        before = [self._definitions[name] for operand in operands for name in operand.operands]
        return not any(has_bounds(i.shape) for i in (instruction, *operands, *before))

    def splat(self, name: str) -> np.generic | None:
        """Return the value of all elements of a splat constant; None if it is none."""
        definition = self._definitions[name]
        if definition.opcode == "broadcast":
            definition = self._definitions[definition.operands[0]]
        value = constant_value(definition)
        return value.reshape(-1)[0] if value is not None and value.size == 1 else None


Rule = Callable[[ValueFacts, Instruction], Answer]
