"""Replace groups of instructions by fusions (producer-consumer fusion): the one pass that does.

Afterwards every computation that control flow reaches consists of parameters, constants, tuples and
their elements, control flow, *heroes* left alone (dot, sort, …), reshapes of arrays in memory, and
fusions. A fusion has one result. Its root is a hero that reads computed elements (a ``reduce``, a
scatter), a ``concatenate`` of many parts, or the end of a contraction's epilogue; any other fusion
is a map. Reductions inside a fusion run along the rows of its root
(:mod:`hlo.passes.row_loops.rows`), which is then computed row by row, or some neighbouring rows at
a time.

Which instructions are computed together is decided in :mod:`hlo.passes.fusion_decisions`.
"""

from __future__ import annotations

from dataclasses import replace

from hlo.attributes import Attribute
from hlo.module import Computation, Instruction, Module
from hlo.passes.fused_computation import fused_computation
from hlo.passes.fusion_decisions import Decisions, decided
from hlo.passes.fusion_reasons import Group, Groups
from hlo.passes.fusion_targets import TARGETS, Target
from hlo.passes.rewriting import Names, reachable
from hlo.passes.updates_in_place import aliasing

# Computations of these are sequences of kernels, as the entry is; those of other instructions
# (to_apply, select, …) are the insides of kernels.
_CONTROL = frozenset(("while", "conditional", "call", "scan", "async-start"))


def fusion(module: Module, target: Target = TARGETS["fusion"]) -> Module:
    """Replace groups of instructions by ``fusion`` instructions that call them as a computation."""
    return fused_with_reasons(module, target)[0]


def fused_with_reasons(module: Module, target: Target = TARGETS["fusion"]) -> tuple[Module, Groups]:
    """Fuse; also return the fusion groups of each computation that is a sequence of kernels, each
    with the reason why its result is stored in memory."""
    groups: dict[str, dict[str, Group]] = {}
    names = Names(computation.name for computation in module.computations)
    fused: list[Computation] = []
    sequences = {c.name for c in reachable(module, lambda i: i.opcode in _CONTROL)}
    for computation in module.computations:
        if computation.name in sequences:
            decisions = decided(computation, target)
            fused.extend(_fused(computation, decisions, names))
            groups[computation.name] = decisions.groups()
        else:
            fused.append(computation)
    return replace(module, computations=tuple(fused)), groups


def _fused(computation: Computation, decisions: Decisions, names: Names) -> list[Computation]:
    """Fuse within one computation; return the outlined ones, and it after them."""
    callees: list[Computation] = []
    kept: list[Instruction] = []
    for instruction in computation.instructions:
        if instruction.name in decisions.stored:
            members = decisions.members(instruction)
            if len(members) == 1 and instruction.opcode in ("reshape", "scatter", "dot"):
                kept.append(instruction)  # a reshape of an array in memory: the same memory
                continue
            opcode = instruction.opcode.replace("-", "_")
            callee, operands = fused_computation(
                names.fresh(f"fused_{opcode}"), members, decisions.by_name
            )
            callees.append(replace(callee, annotations=computation.annotations))
            attributes: dict[str, Attribute] = {"kind": "kLoop", "calls": callee.name}
            if decisions.is_updated(instruction):
                attributes |= aliasing(callee, instruction, operands)
            kept.append(
                instruction._replace(opcode="fusion", operands=operands, attributes=attributes)
            )
        elif instruction.name not in decisions.absorbed or decisions.is_needed(instruction):
            kept.append(instruction)
    return [*callees, replace(computation, instructions=tuple(kept))]
