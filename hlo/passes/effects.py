"""Find the instructions with side effects, which may be neither eliminated nor merged."""

from __future__ import annotations

from collections.abc import Callable

from hlo.module import Instruction, Module
from hlo.walk import called, has_own_effect


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
