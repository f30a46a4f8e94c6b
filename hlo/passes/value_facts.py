"""What a rule of :mod:`hlo.passes.simplify` may ask about the values before an instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from hlo.dynamic_sizes import has_bounds
from hlo.literal import Literal
from hlo.module import Instruction
from hlo.passes.rewriting import array
from hlo.types import ArrayShape, Shape

Answer = Instruction | str | None


class Known:
    """The instructions before the one at hand, already simplified, by name."""

    def __init__(self, definitions: Mapping[str, Instruction]) -> None:
        self._definitions = definitions

    def operand(self, instruction: Instruction, number: int = 0) -> Instruction:
        return self._definitions[instruction.operands[number]]

    def shape(self, instruction: Instruction, number: int = 0) -> Shape:
        return self._definitions[instruction.operands[number]].shape

    def array(self, instruction: Instruction, number: int = 0) -> ArrayShape:
        return array(self.shape(instruction, number))

    def is_static(self, instruction: Instruction) -> bool:
        """Whether nothing has bounded dimensions: not the result, no operand, no operand of one."""
        operands = [self._definitions[name] for name in instruction.operands]
        before = [self._definitions[name] for operand in operands for name in operand.operands]
        return not any(has_bounds(i.shape) for i in (instruction, *operands, *before))

    def splat(self, name: str) -> np.generic | None:
        """The number of which every element is, where a constant shows it."""
        definition = self._definitions[name]
        if definition.opcode == "broadcast":
            definition = self._definitions[definition.operands[0]]
        literal = definition.attributes.get("literal")
        if not isinstance(literal, Literal) or not isinstance(literal.value, np.ndarray):
            return None
        return literal.value.reshape(-1)[0] if literal.value.size == 1 else None


Rule = Callable[[Known, Instruction], Answer]
