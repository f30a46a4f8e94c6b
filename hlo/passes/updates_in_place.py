"""Recognise updates in place: dynamic-update-slices that only write a small part of an array."""

from __future__ import annotations

from collections.abc import Sequence

from hlo.aliasing import Alias
from hlo.attributes import Attribute
from hlo.module import Computation, Instruction
from hlo.passes.cost import COST
from hlo.passes.rewriting import array
from hlo.types import ArrayShape

# An update is done in place if the array has SMALL_PART times its elements, and _FEW more:
SMALL_PART = 4
# otherwise a loop that writes the whole result fuses with its producers.
_FEW = 64
# Instead of SMALL_PART where memory is scarce: there a second array costs more than a lost fusion.
ANY_PART = 0


def updated_operand(fusion: Instruction, callee: Computation) -> int | None:
    """Return the number of the operand that a fusion updates in place; None if there is none."""
    root = callee.root_instruction
    if "output_to_operand_aliasing" not in fusion.attributes:
        return None
    if root.opcode != "dynamic-update-slice" or not is_static_array(root.shape):
        return None
    names = [p.name for p in callee.parameters]
    reads = sum(i.operands.count(root.operands[0]) for i in callee.instructions)
    return names.index(root.operands[0]) if root.operands[0] in names and reads == 1 else None


def aliasing(
    callee: Computation, update: Instruction, operands: Sequence[str]
) -> dict[str, Attribute]:
    """Return ``output_to_operand_aliasing`` of a fusion whose root is an update in place.

    It is empty if the fusion reads the array elsewhere, too: an element may be overwritten before
    it is read.
    """
    number = operands.index(update.operands[0])
    parameter = callee.root_instruction.operands[0]
    reads = sum(i.operands.count(parameter) for i in callee.instructions)
    return {"output_to_operand_aliasing": (Alias((), number, ()),)} if reads == 1 else {}


def updates_in_place(computation: Computation, small_part: int = SMALL_PART) -> set[str]:
    """Return the names of a computation's updates in place: of an array in memory that has more
    than ``small_part`` times the elements of the update (any part with ``ANY_PART``)."""
    by_name = {i.name: i for i in computation.instructions}
    found: set[str] = set()
    for instruction in computation.instructions:
        if instruction.opcode != "dynamic-update-slice" or not is_static_array(instruction.shape):
            continue
        operand, update = (by_name[name] for name in instruction.operands[:2])
        if operand.opcode in COST and operand.name not in found:
            continue  # it is computed, and may be in the same loop
        if array(operand.shape).elements >= _FEW + small_part * array(update.shape).elements:
            found.add(instruction.name)
    return found


def is_static_array(shape: object) -> bool:
    """Return whether a shape is an array without bounded dimensions."""
    return isinstance(shape, ArrayShape) and shape.element_type.is_array and not shape.dynamic
