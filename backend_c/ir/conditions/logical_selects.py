"""Write selects of preds as logic.

    p ? a : b   is   (p & a) | (!p & b)

Compilers keep preds in lanes as masks, one for each width of number that was compared, and gcc 12
has no vector for a choice between masks of two widths (of floats compared, of bytes read): the loop
around it is not in lanes at all. Of ``and``, ``or`` and ``not`` it has.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from backend_c.ir.loop_ir import Apply, Constant, Expr, Let, Statement, Variable, subexpressions
from backend_c.ir.loop_rewriting import with_blocks, with_expressions, with_operands
from hlo.types import PRED


def with_logical_selects(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Replace the selects of preds in statements; conditions are bound before their statement."""
    return _Logical().block(body)


class _Logical:
    """Rewrite the statements of one kernel; a counter makes new names unique."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._bound: list[Let] = []  # before the statement at hand

    def block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rewrite statements."""
        rewritten: list[Statement] = []
        for statement in body:
            self._bound = []
            statement = with_expressions(statement, self._whole)
            rewritten += self._bound
            rewritten.append(with_blocks(statement, self.block))
        return tuple(rewritten)

    def _whole(self, value: Expr) -> Expr:
        """Rewrite an expression of a statement, if there is something to rewrite."""
        return self._logical(value) if any(map(_is_choice, subexpressions(value))) else value

    def _logical(self, value: Expr) -> Expr:
        value = with_operands(value, self._logical)
        if not _is_choice(value):
            return value
        assert isinstance(value, Apply)
        condition, one, other = value.operands
        condition = self._named(condition)
        taken = Apply("and", (condition, one), PRED)
        return Apply("or", (taken, Apply("and", (_negated(condition), other), PRED)), PRED)

    def _named(self, condition: Expr) -> Expr:
        """Return a condition that may be written twice."""
        if isinstance(condition, Variable | Constant):
            return condition
        variable = Variable(PRED, f"is{next(self._numbers)}")
        self._bound.append(Let(variable, condition))
        return variable


def _is_choice(value: Expr) -> bool:
    return isinstance(value, Apply) and value.operation == "select" and value.type is PRED


def _negated(condition: Expr) -> Expr:
    return Apply("not", (condition,), PRED)
