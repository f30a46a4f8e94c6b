"""Tell how far apart the lanes of a loop are in memory, and where lane 0 is."""

from __future__ import annotations

from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir.bound_divisions import with_definitions
from backend_c.ir.loop_ir import INDEX, Expr, Let, Load, Loop, subexpressions, variables


class Strided(NamedTuple):
    """Hold an offset as ``first`` + ``stride`` times the loop's variable."""

    stride: int
    first: Expr


class LaneOffsets:
    """Split the offsets in one loop; ``varying`` names what differs between its lanes."""

    def __init__(self, loop: Loop) -> None:
        lets = [statement for statement in loop.body if isinstance(statement, Let)]
        self._lane = loop.variable
        self._definitions = {s.variable.name: s.value for s in lets if s.variable.type is INDEX}
        self.varying = {loop.variable.name, *(s.variable.name for s in lets)}

    def split(self, offset: Expr) -> Strided | None:
        """Return an offset as a stride and a first one, which is the same in all lanes and computed
        without loads; None if there is no such."""
        whole = with_definitions(offset, self._definitions)
        stride = ix.coefficients(whole).get(self._lane, 0)
        first = ix.subtract(whole, ix.multiply(self._lane, stride))
        if not self.varying.isdisjoint(variables(first)):
            return None
        if any(isinstance(part, Load) for part in subexpressions(first)):
            return None
        return Strided(stride, first)
