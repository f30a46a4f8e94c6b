"""Walk a kernel with the ranges of its integers, to rewrite expressions by them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from backend_c.ir.dead_lets import without_dead_lets
from backend_c.ir.integer_ranges import IntegerRanges
from backend_c.ir.loop_ir import Expr, Let, Statement
from backend_c.ir.loop_rewriting import with_blocks, with_expressions


class RangedRewriting(ABC):
    """Rewrite the statements of a kernel in order, with the ranges of variables known so far."""

    def __init__(self) -> None:
        self.ranges = IntegerRanges()

    @abstractmethod
    def rewritten(self, value: Expr) -> Expr:
        """Return the expression that replaces an expression of a statement."""

    def body(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rewrite the statements of a kernel, and eliminate dead lets."""
        return without_dead_lets(self._block(statements))

    def _block(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        return tuple(map(self._statement, statements))

    def _statement(self, statement: Statement) -> Statement:
        statement = with_expressions(statement, self.rewritten)
        if isinstance(statement, Let):
            self.ranges.bind(statement.variable, statement.value)
        return with_blocks(statement, self._block)
