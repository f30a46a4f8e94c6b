"""Fold divisions of indices across lets.

What computing an index takes is bound where its loop is, so that 8 * (i / 8) + i % 8 may be a sum
of two variables: neighbours in memory, which would be read one by one. In a finished kernel,
variables are substituted by their definitions in each index, and the result is kept if fewer
divisions are left.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir import index as ix
from backend_c.ir.bound_divisions import folded, with_definitions
from backend_c.ir.dead_lets import without_dead_lets
from backend_c.ir.loop_ir import INDEX, Expr, Let, Statement
from backend_c.ir.loop_rewriting import with_blocks, with_expressions, with_operands


def with_folded_divisions(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Fold offsets into affine forms without divisions, where definitions allow it."""
    folding = _Folding()
    folded = folding.block(body)
    return without_dead_lets(folded) if folding.is_changed else tuple(body)


class _Folding:
    """Fold the offsets of one kernel, whose variables are each bound once."""

    def __init__(self) -> None:
        self._definitions: dict[str, Expr] = {}  # of quotients and remainders by name
        self.is_changed = False

    def block(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """Fold the offsets in statements."""
        return tuple(map(self._statement, statements))

    def _statement(self, statement: Statement) -> Statement:
        statement = with_expressions(statement, self._folded)
        if isinstance(statement, Let):
            variable, value = statement
            if variable.type is INDEX and ix.is_quotient(value):
                self._definitions[variable.name] = with_definitions(value, self._definitions)
        return with_blocks(statement, self.block)

    def _folded(self, value: Expr) -> Expr:
        """Return an expression whose indices are folded."""
        if value.type is not INDEX:
            return with_operands(value, self._folded)
        found = folded(value, self._definitions)
        self.is_changed |= found is not value
        return found
