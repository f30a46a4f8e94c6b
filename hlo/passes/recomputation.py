"""Compute the cone of an instruction: the instructions to evaluate for one element if no operand is
materialised (recomputation)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hlo.module import Instruction
from hlo.passes.cost import COST, is_stored_before
from hlo.passes.rewriting import array

# An array of so many bytes leaves the caches between its kernels: storing and loading it costs as
# much as so many operations that take one instruction of vector lanes each (rounds of threefry on
# a million numbers: two kernels of 28 operations take a third of the time of eight).
_LARGE = 1 << 20
_STORED_FAR = 32

# Loads of an array with at most so small a part of a loop's elements stay in the caches.
_SMALL_LOAD = 16

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


def is_far(
    instruction: Instruction, cone: Cone, by_name: Mapping[str, Instruction], loops: int
) -> bool:
    """Return whether recomputing cheap operations in several loops beats sharing an array larger
    than the caches: each element is used once per loop, and its cone loads at most two large
    arrays, as many accesses as storing and loading it."""
    shape = array(instruction.shape)
    if shape.elements * shape.element_type.bits // 8 < _LARGE:
        return False
    loads = [array(by_name[name].shape).elements for name in cone.loads]
    if sum(1 for elements in loads if elements * _SMALL_LOAD > shape.elements) > 2:
        return False
    weight = sum(COST[by_name[name].opcode] for name in cone.members)
    return (loops - 1) * weight <= _STORED_FAR
