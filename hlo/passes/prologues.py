"""Find prologues: computed operands of a contraction that its kernel reads about once each.

A matrix times a few vectors takes as long as the matrix takes to come from memory. Where that is
computed, as weights that are kept in 8 or 4 bits and scaled, computing it where it is multiplied
saves storing it, in four times as many bytes, and loading it again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from hlo.module import Computation, Instruction
from hlo.opcodes import ELEMENTWISE, of_family
from hlo.passes.cost import COST
from hlo.passes.rewriting import array, integers
from hlo.passes.updates_in_place import is_static_array

FEW_VECTORS = 4  # at most; a tile has more rows, and packing the matrix pays
_ELEMENTWISE = of_family(ELEMENTWISE)

# The name of a contraction, and the number of an operand.
Factor = tuple[str, int]


def prologues(computation: Computation) -> set[Factor]:
    """Return the factors of contractions that their kernels may compute: the matrix of a product
    with few vectors."""
    by_name = {i.name: i for i in computation.instructions}
    return {
        (instruction.name, number)
        for instruction in computation.instructions
        if instruction.opcode == "dot" and _is_plain(instruction, by_name)
        for number in (0, 1)
        if _is_matrix(instruction, number, by_name)
        and _is_computed(by_name[instruction.operands[number]], by_name)
    }


def _is_plain(dot: Instruction, by_name: Mapping[str, Instruction]) -> bool:
    """Return whether a dot is of two static arrays that are not complex."""
    shapes = [dot.shape, *(by_name[name].shape for name in dot.operands)]
    return len(dot.operands) == 2 and all(
        is_static_array(shape) and not array(shape).element_type.is_complex for shape in shapes
    )


def _is_matrix(dot: Instruction, number: int, by_name: Mapping[str, Instruction]) -> bool:
    """Return whether an operand of a dot has more than a few lines, and the other one has not."""
    lines = [_lines(dot, side, by_name) for side in (0, 1)]
    return 0 < lines[1 - number] <= FEW_VECTORS < lines[number]


def _lines(dot: Instruction, number: int, by_name: Mapping[str, Instruction]) -> int:
    """Return the number of lines of a dot's operand: the product of its free dimensions."""
    side = ("lhs", "rhs")[number]
    taken = {
        *integers(dot, f"{side}_contracting_dims"),
        *integers(dot, f"{side}_batch_dims"),
    }
    dims = array(by_name[dot.operands[number]].shape).dims
    return math.prod(extent for d, extent in enumerate(dims) if d not in taken)


def _is_computed(instruction: Instruction, by_name: Mapping[str, Instruction]) -> bool:
    """Return whether arithmetic is between an array and those in memory that it is made of; what
    was only moved is read where it is."""
    while instruction.opcode in COST and instruction.opcode not in _ELEMENTWISE:
        if not instruction.operands:
            return False
        instruction = by_name[instruction.operands[0]]
    return instruction.opcode in _ELEMENTWISE and bool(instruction.operands)
