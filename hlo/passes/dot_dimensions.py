"""Name the dimensions of a dot's operands: contracting, batch, and free ones."""

from __future__ import annotations

from hlo.module import Instruction
from hlo.passes.rewriting import integers

SIDES = ("lhs", "rhs")
KINDS = ("contracting", "batch")
DIMENSIONS = frozenset(f"{side}_{kind}_dims" for side in SIDES for kind in KINDS)


def free(dot: Instruction, number: int, rank: int) -> list[int]:
    """Return the free dimensions of an operand by its number: neither contracting nor batch."""
    taken = {d for kind in KINDS for d in integers(dot, f"{SIDES[number]}_{kind}_dims")}
    return [d for d in range(rank) if d not in taken]
