"""Which instructions do more than compute their result, so that they may not vanish or merge."""

from __future__ import annotations

from collections.abc import Callable

from hlo.module import Instruction, Module
from hlo.walk import called

# rng is here because every one that runs advances the count that seeds the next.
_EFFECTS = frozenset(
    [
        "infeed",
        "outfeed",
        "send",
        "send-done",
        "recv",
        "recv-done",
        "rng",
        "rng-get-and-update-state",
    ]
)


def effects(module: Module) -> Callable[[Instruction], bool]:
    """Says of an instruction whether it, or a computation that it calls, has effects."""
    with_effects: set[str] = set()

    def has(instruction: Instruction) -> bool:
        if instruction.opcode in _EFFECTS:
            return True
        if instruction.attributes.get("custom_call_has_side_effect"):
            return True
        return bool(with_effects) and not with_effects.isdisjoint(called(instruction))

    for computation in module.computations:
        if any(map(has, computation.instructions)):
            with_effects.add(computation.name)
    return has
