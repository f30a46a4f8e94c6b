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


def weights(
    instructions: Iterable[Instruction], by_name: Mapping[str, Instruction]
) -> dict[str, float]:
    """Bound the operations per element of each elemental instruction, operands first, with all its
    operands among them recomputed; scalars are computed once."""
    found: dict[str, float] = {}
    for instruction in instructions:
        single = array(instruction.shape).elements == 1
        inner = sum(
            found.get(name, 0.0)
            for name in set(instruction.operands)
            if single or array(by_name[name].shape).elements != 1
        )
        # Capped, as weights double at each link of a chain of add(f(y), g(y)): infinity times no
        # repetition would be NaN.
        found[instruction.name] = min(1e9, COST[instruction.opcode] + inner)
    return found
