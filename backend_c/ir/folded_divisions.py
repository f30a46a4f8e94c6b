"""Fold divisions of indices across lets.

What computing an index takes is bound where its loop is, so that 8 * (i / 8) + i % 8 may be a sum
of two variables: neighbours in memory, which would be read one by one. In a finished kernel,
variables are substituted by their definitions in each index, and the result is kept if it divides
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir import index as ix
from backend_c.ir.dead_lets import without_dead_lets
from backend_c.ir.loop_ir import INDEX, Expr, Let, Statement, variables
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
                self._definitions[variable.name] = value
        return with_blocks(statement, self.block)

    def _folded(self, value: Expr) -> Expr:
        """Return an expression whose indices are folded."""
        if value.type is not INDEX:
            return with_operands(value, self._folded)
        own = [name for name in dict.fromkeys(variables(value)) if name in self._definitions]
        divided = dict.fromkeys(map(self._of, own))
        # A quotient folds only together with its remainder: one name alone stays a division.
        for dividend in divided if len(own) > 1 else ():
            some = {n: self._definitions[n] for n in own if self._of(n) == dividend}
            expanded = ix.with_definitions(value, some)
            if len(some) > 1 and not ix.has_division(expanded):
                self.is_changed = True
                value = expanded
        return value

    def _of(self, name: str) -> frozenset[str]:
        """Return the variables that a quotient or remainder is computed from."""
        return frozenset(variables(self._definitions[name]))
