"""Make drawn programs readable: eliminate dead code and name values by their position."""

from __future__ import annotations

from dataclasses import replace

from hlo.module import Computation, Instruction, Module
from hlo.walk import called, live, renamed


def tidied(module: Module) -> Module:
    """Remove dead instructions (unused entry parameters among them) and uncalled computations, and
    rename what is left in text order."""
    kept: dict[str, Computation] = {}
    # Callers stand below what they call: backwards, all that call a computation are known.
    for computation in reversed(module.computations):
        wanted = {name for one in kept.values() for i in one.instructions for name in called(i)}
        if computation.name == module.entry_name or computation.name in wanted:
            kept[computation.name] = _alive(computation, computation.name == module.entry_name)
    names = {name: f"computation.{n}" for n, name in enumerate(reversed(kept))}
    names[module.entry_name] = module.entry_name
    ordered = (
        renamed(one, names.__getitem__, _by_place(one).__getitem__)
        for one in reversed(kept.values())
    )
    return replace(module, computations=tuple(ordered))


def _by_place(computation: Computation) -> dict[str, str]:
    return {i.name: f"{i.opcode}.{n}" for n, i in enumerate(computation.instructions)}


def _alive(computation: Computation, is_entry: bool) -> Computation:
    # Callers pass what they did: a called computation keeps its parameters.
    needed = live(computation, lambda i: i.opcode == "parameter" and not is_entry)
    instructions, parameters = list[Instruction](), 0
    for instruction in computation.instructions:
        if instruction.name not in needed:
            continue
        if instruction.opcode == "parameter" and is_entry:
            instruction = instruction._replace(attributes={"parameter_number": parameters})
            parameters += 1
        instructions.append(instruction)
    return replace(computation, instructions=tuple(instructions))
