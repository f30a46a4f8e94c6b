"""Compute the cone of an instruction: the instructions to evaluate for one element if no operand is
materialised (recomputation)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hlo.module import Instruction
from hlo.passes.cost import COST, is_stored_before
from hlo.passes.rewriting import array

# Cones of more instructions than this are not looked at.
_MOST = 64


class Cone(NamedTuple):
    """Hold the names of a cone's instructions, each once, and of the arrays that they load."""

    members: frozenset[str]
    loads: frozenset[str]


def cones(
    instructions: Sequence[Instruction],
    by_name: Mapping[str, Instruction],
    inside: Mapping[str, float],
) -> dict[str, Cone]:
    """Return the cones of those instructions ``inside`` (their weights by name) that cost at most
    one operation per element, as do all their members.

    Other instructions and those with more than ``_MOST`` members are missing. Scalars count neither
    as members nor as loads; what is stored before a broadcast is a load.
    """
    found: dict[str, Cone] = {}
    for instruction in instructions:
        if instruction.name not in inside or COST[instruction.opcode] > 1:
            continue
        operands = [o for o in instruction.operands if array(by_name[o].shape).elements != 1]
        computed = [
            o
            for o in operands
            if o in inside and not is_stored_before(instruction, by_name[o], inside[o])
        ]
        if any(o not in found for o in computed):
            continue
        parts = [found[o] for o in computed]
        members = frozenset((instruction.name,)).union(*(part.members for part in parts))
        loaded = frozenset(o for o in operands if o not in computed)
        if len(members) <= _MOST:
            found[instruction.name] = Cone(members, loaded.union(*(p.loads for p in parts)))
    return found
