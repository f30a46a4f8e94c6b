"""Check how computations call each other, and find those whose evaluation has effects."""

from __future__ import annotations

from collections.abc import Mapping

from hlo.errors import Unsupported, VerifyError
from hlo.module import Instruction, Module
from hlo.walk import called, has_own_effect

# A level of calls takes six Python frames, and Python allows a thousand.
_DEEPEST_CALLS = 80


def is_effect(instruction: Instruction, effects: Mapping[str, bool]) -> bool:
    """Test whether an instruction has a side effect, itself or in a computation that it calls."""
    return has_own_effect(instruction) or any(effects[name] for name in called(instruction))


def checked_calls(module: Module) -> Mapping[str, bool]:
    """Map each computation's name to whether it has side effects. Raises Unsupported for calls
    nested too deep for Python's stack, VerifyError for a call of a later computation
    (recursion)."""
    depths: dict[str, int] = {}
    effects: dict[str, bool] = {}
    for computation in module.computations:
        callees = {name for i in computation.instructions for name in called(i)}
        if unknown := sorted(callees - depths.keys()):
            raise VerifyError(f"{computation.name} calls {unknown[0]}, which is not above it")
        depths[computation.name] = 1 + max((depths[name] for name in callees), default=0)
        if depths[computation.name] > _DEEPEST_CALLS:
            raise Unsupported(f"calls nest deeper than {_DEEPEST_CALLS} in {computation.name}")
        effects[computation.name] = any(is_effect(i, effects) for i in computation.instructions)
    return effects
