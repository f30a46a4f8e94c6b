"""Find the instructions with side effects, which may be neither eliminated nor merged."""

from __future__ import annotations

from collections.abc import Callable

from hlo.module import Instruction, Module
from hlo.opcodes import EFFECT, having
from hlo.walk import called

_EFFECTS = having(EFFECT)


def has_own_effect(instruction: Instruction) -> bool:
    """Return whether an instruction has side effects, whatever those that it calls do."""
    is_declared = instruction.attributes.get("custom_call_has_side_effect")
    return bool(is_declared) or instruction.opcode in _EFFECTS


def effects(module: Module) -> Callable[[Instruction], bool]:
    """Return a predicate: whether an instruction, or what it calls, has side effects."""
    with_effects: set[str] = set()

    def has(instruction: Instruction) -> bool:
        if has_own_effect(instruction):
            return True
        return bool(with_effects) and not with_effects.isdisjoint(called(instruction))

    # Callees stand before their callers in a module, so one sweep reaches transitive calls.
    for computation in module.computations:
        if any(map(has, computation.instructions)):
            with_effects.add(computation.name)
    return has
