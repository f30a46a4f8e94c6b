"""Record what a program decides of floats when it is evaluated exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hlo.module import Computation, Instruction, Module
from hlo.opcodes import MOVES, having
from hlo.types import ArrayShape
from hlo.values import Array
from hlo.walk import Op
from interp.evaluator import Evaluation, checked
from interp.values import Value

_MOVES = having(MOVES)


def exact_decisions(module: Module, arrays: Sequence[Any], seed: int = 0) -> Mapping[str, Array]:
    """Map the instructions of the entry computation that make truth values and integers of floats,
    and those that move such values, to their values."""
    found: dict[str, Array] = {}
    names = _decisions(module.entry)

    def recording(computation: Computation, instruction: Instruction, op: Op) -> Op:
        if computation is not module.entry or instruction.name not in names:
            return op

        def function(*operands: Value, **given: object) -> Value:
            result = op.function(*operands, **given)
            found[instruction.name] = np.asarray(result)
            return result

        return replace(op, function=function)

    evaluation = Evaluation(module, None, instead=recording)
    evaluation.result(checked(module.entry, arrays), seed)
    return found


def _decisions(computation: Computation) -> set[str]:
    shapes = {i.name: i.shape for i in computation.instructions}
    found: set[str] = set()
    for instruction in computation.instructions:
        shape = instruction.shape
        if not isinstance(shape, ArrayShape) or shape.element_type.is_inexact:
            continue
        operands = [shapes[name] for name in instruction.operands]
        is_made = any(isinstance(x, ArrayShape) and x.element_type.is_inexact for x in operands)
        is_moved = instruction.opcode in _MOVES and instruction.operands[0] in found
        if is_made or is_moved:
            found.add(instruction.name)
    return found
