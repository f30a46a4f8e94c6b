"""Admit the reassociation of additions of constants: (x + c) + d as x + (c + d)."""

from __future__ import annotations

from hlo.module import Computation, Instruction
from hlo.opcodes import EFFECT, SUM, having
from interp.envelope import budget
from interp.envelope.enclosure import Enclosure, outward

_SUMS = having(SUM)
_EFFECTS = having(EFFECT)


def _constants(computation: Computation) -> frozenset[str]:
    """Constants, and instructions whose operands are all constants: constant folding evaluates
    those before sums are reassociated."""
    found: set[str] = set()
    for instruction in computation.instructions:
        folded = instruction.operands and found.issuperset(instruction.operands)
        if instruction.opcode == "constant" or (folded and instruction.opcode not in _EFFECTS):
            found.add(instruction.name)
    return frozenset(found)


def met_by_another(computation: Computation) -> frozenset[str]:
    """Names of sums with a constant that are operands of another such sum."""
    constants = _constants(computation)
    sums = [i for i in computation.instructions if _is_with_constant(i, constants)]
    names = {i.name for i in sums}
    return frozenset(name for i in sums for name in i.operands if name in names)


def _is_with_constant(instruction: Instruction, constants: frozenset[str]) -> bool:
    return instruction.opcode in _SUMS and not constants.isdisjoint(instruction.operands)


def unrounded(result: Enclosure) -> Enclosure:
    """Admit a result without its rounding and overflow, since it may never be computed."""
    if not result.element_type.is_float or not budget.current().reassociates:
        return result
    return Enclosure(*outward(result.low, result.high, 1), result.nan)
