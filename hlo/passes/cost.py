"""Estimate what one element of each elemental instruction costs, in additions of its type.

The estimates need to be right within a factor of two only: they tell apart what is free (an index),
what memory traffic hides (a few operations), and what is worth materialising.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hlo.module import Instruction
from hlo.opcodes import ELEMENTARY, having
from hlo.passes.rewriting import array

FUNCTION = 20  # an elementary function in exact mode: 20 to 40 operations in f64

_ROWS: dict[int, str] = {
    0: "constant iota broadcast reshape transpose reverse slice bitcast-convert real imag complex",
    1: (
        "abs add and ceil clamp compare convert dynamic-slice floor is-finite maximum minimum"
        " multiply negate not or pad concatenate select shift-left shift-right-arithmetic"
        " shift-right-logical sign subtract xor"
    ),
    2: "count-leading-zeros dynamic-update-slice mulhi popcnt round-nearest-afz round-nearest-even",
    4: "divide gather reduce-precision sqrt stochastic-convert",
    8: "map remainder",
}

# Opcode → cost. These are the elemental instructions: each element of the result is an expression
# of elements of the operands.
COST: dict[str, int] = {
    **{name: cost for cost, names in _ROWS.items() for name in names.split()},
    **dict.fromkeys(having(ELEMENTARY), FUNCTION),
}


def operations_of(instruction: Instruction) -> int:
    """Return the operations that an instruction adds to a loop body: at least 1, for its code."""
    return max(1, COST.get(instruction.opcode, 1))


# Storing an element and loading it again costs about as much as this many operations.
STORED = 4

# An operand of a broadcast is recomputed for each copy if it is as cheap as this: the loop around
# it is bound by memory anyway.
CHEAP = 4

# Recomputing so few operations in all costs less than another kernel.
FEW = 64


def is_worth_storing(elements: int, computed: float, weight: float) -> bool:
    """Return whether computing ``computed`` elements where ``elements`` are different, at
    ``weight`` operations each, costs more than storing and loading them once."""
    return (computed - elements) * weight > max(FEW, STORED * elements)


def is_stored_before(broadcast: Instruction, operand: Instruction, weight: float) -> bool:
    """Return whether a broadcast copies an operand of that weight so often that it is stored first:
    whoever computes the broadcast loads it."""
    if broadcast.opcode != "broadcast":
        return False
    elements = array(operand.shape).elements
    return is_worth_storing(elements, array(broadcast.shape).elements, weight)


def weights(
    instructions: Iterable[Instruction], by_name: Mapping[str, Instruction]
) -> dict[str, float]:
    """Bound the operations per element of each elemental instruction, operands first, with all its
    operands among them recomputed but those stored before a broadcast; scalars are computed once.
    """
    found: dict[str, float] = {}
    for instruction in instructions:
        single = array(instruction.shape).elements == 1
        inner = 0.0
        for name in set(instruction.operands):
            operand, weight = by_name[name], found.get(name, 0.0)
            if single or array(operand.shape).elements != 1:
                inner += 0.0 if is_stored_before(instruction, operand, weight) else weight
        # Capped, as weights double at each link of a chain of add(f(y), g(y)): infinity times no
        # repetition would be NaN.
        found[instruction.name] = min(1e9, COST[instruction.opcode] + inner)
    return found
