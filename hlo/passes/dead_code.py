"""Eliminate dead code: instructions whose results nothing uses, computations that nothing calls."""

from __future__ import annotations

from dataclasses import replace

from hlo.module import Computation, Module
from hlo.passes.effects import effects
from hlo.passes.rewriting import each, reachable
from hlo.walk import live


def dead_code(module: Module) -> Module:
    """Eliminate dead code.

    Parameters stay, as they are the signature, and so do instructions with side effects.
    """
    has_effects = effects(module)

    def pruned(computation: Computation) -> Computation:
        needed = live(computation, has_effects)
        kept = tuple(
            i for i in computation.instructions if i.name in needed or i.opcode == "parameter"
        )
        return replace(computation, instructions=kept)

    pruned_module = each(module, pruned)
    used = tuple(reachable(pruned_module, lambda instruction: True))
    return replace(pruned_module, computations=used)
