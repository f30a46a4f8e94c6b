"""Choose at compile time what the ranges of integers decide.

Sequences of slices are written out as selects by their index, and indices are normalised as in
NumPy, ``i < 0 ? i + n : i``: often enough it is known which it is. An integer of which one number
is left is a constant: a compiler does not see it where it is computed outside of a parallel loop,
and divides by it.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir.dead_lets import without_dead_lets
from backend_c.ir.floored_remainders import with_floored_remainder
from backend_c.ir.integer_ranges import IntegerRanges, is_whole
from backend_c.ir.loop_ir import INDICES, Apply, Constant, Expr, Let, Statement, Variable
from backend_c.ir.loop_rewriting import with_blocks, with_expressions, with_operands
from hlo.types import PRED


def with_decided_selects(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return statements without selects of which the condition holds always, or never."""
    selects = _Selects()
    decided = selects.block(body)
    return without_dead_lets(decided) if selects.is_changed else decided


class _Selects:
    """Walk the statements of a kernel in order, keeping the ranges of variables."""

    def __init__(self) -> None:
        self._ranges = IntegerRanges()
        self.is_changed = False

    def block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rewrite statements."""
        return tuple(map(self._statement, body))

    def _statement(self, statement: Statement) -> Statement:
        statement = with_expressions(statement, self._decided)
        if isinstance(statement, Let):
            self._ranges.bind(statement.variable, statement.value)
        return with_blocks(statement, self.block)

    def _decided(self, value: Expr) -> Expr:
        """Return an expression with what its selects are known to choose, and the numbers that it
        is known to have."""
        if isinstance(value, Apply | Variable) and value.type not in INDICES:
            least, most = self._ranges.of(value) if is_whole(value.type) else (0, 1)
            if least == most:
                self.is_changed = True
                return Constant(value.type, bool(least) if value.type is PRED else least)
        if isinstance(value, Apply) and value.operation == "select":
            condition, one, other = value.operands
            least, most = self._ranges.of(condition)
            if least == most:
                self.is_changed = True
                return self._decided(one if least else other)
        return with_floored_remainder(with_operands(value, self._decided), self._ranges)
