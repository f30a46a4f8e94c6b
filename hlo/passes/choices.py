"""Find conditionals that may be if-converted to selects: those of scalars in computations that are
applied to single elements."""

from __future__ import annotations

from collections.abc import Mapping

from hlo.module import Computation, Instruction, Module
from hlo.opcodes import COLLECTIVE, INDEXING, REDUCTION, of_family
from hlo.types import ArrayShape
from hlo.walk import called, has_own_effect

# A decision: what applies computations to single elements (of scan they take slices).
_APPLY = (of_family(REDUCTION) | of_family(INDEXING) | of_family(COLLECTIVE) | {"map"}) - {"scan"}


def applied_by_element(module: Module) -> frozenset[str]:
    """Return the names of the computations that are applied to single elements (``to_apply`` of
    reductions, maps, scatters, …), and of their transitive callees."""
    found: set[str] = set()
    for computation in reversed(module.computations):  # callers stand behind their callees
        for instruction in computation.instructions:
            if computation.name in found or instruction.opcode in _APPLY:
                found.update(called(instruction))
    return frozenset(found)


def branches(conditional: Instruction) -> tuple[str, ...]:
    """Return the names of the branches in operand order, whatever the order of the attributes."""
    given = conditional.attributes
    if "true_computation" in given:
        return str(given["true_computation"]), str(given["false_computation"])
    return called(conditional)


def is_choice(instruction: Instruction, computations: Mapping[str, Computation]) -> bool:
    """Return whether a conditional may be if-converted: its result is a scalar, and no branch has
    effects, loops or conditionals, so that all branches may be evaluated."""
    shape = instruction.shape
    if instruction.opcode != "conditional" or not isinstance(shape, ArrayShape) or shape.rank:
        return False
    inner = [i for name in called(instruction) for i in computations[name].instructions]
    return not any(has_own_effect(i) or i.opcode in ("while", "conditional") for i in inner)
