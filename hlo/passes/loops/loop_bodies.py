"""Rewrite the bodies of loops, where invariants will be hoisted out of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hlo.module import Computation, Instruction, Module
from hlo.passes.effects import effects
from hlo.passes.loops.loop_invariants import Loop, invariants, rebuildable_loop
from hlo.work import trips

Rewrite = Callable[[Computation, Mapping[str, Instruction], int], Computation]


def with_bodies(module: Module, rewrite: Rewrite) -> Module:
    """Rewrite the bodies of all loops that :mod:`hlo.passes.loops.loop_invariants` can rebuild.

    ``rewrite`` takes a body, its invariant instructions by name, and the least trip count of the
    loops that have this body, 1 where it is not known.
    """
    computations = {c.name: c for c in module.computations}
    found = _loops(module, computations)
    if not found:
        return module
    has_effect = effects(module)
    for body, loops in found.items():
        loop, _ = loops[0]
        count = min(n for _, n in loops)
        computations[body] = rewrite(loop.body, invariants(loop, has_effect), count)
    return replace(module, computations=tuple(computations.values()))


def _loops(
    module: Module, computations: Mapping[str, Computation]
) -> Mapping[str, list[tuple[Loop, int]]]:
    """Return the loops of each body, with their trip counts, if all of them can be rebuilt."""
    found: dict[str, list[tuple[Loop, int]]] = {}
    refused = set[str]()
    for computation in module.computations:
        for instruction in computation.instructions:
            loop = rebuildable_loop(instruction, computations)
            if loop is not None:
                count = trips(instruction, computation, computations)
                found.setdefault(loop.body.name, []).append((loop, count))
            elif instruction.opcode == "while":
                refused.add(str(instruction.attributes["body"]))
    return {name: loops for name, loops in found.items() if name not in refused}
