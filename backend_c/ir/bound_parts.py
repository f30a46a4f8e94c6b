"""Rewrite expressions whose parts are bound before the statement that holds them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from backend_c.ir.loop_ir import Expr, Let, Statement, Variable
from backend_c.ir.loop_rewriting import with_blocks, with_expressions

Bind = Callable[[Expr], Variable]


def with_bound_parts(
    body: Sequence[Statement], rewritten: Callable[[Expr, Bind], Expr], prefix: str
) -> tuple[Statement, ...]:
    """Replace the whole expressions of statements by ``rewritten(expression, bind)``.

    ``bind(part)`` returns the variable that holds ``part``, which is evaluated right before the
    statement, whatever the expression does under a condition; equal parts are bound once. Names
    are ``prefix`` and a number.
    """
    return _Binding(rewritten, prefix).block(body)


class _Binding:
    """Rewrite the statements of one kernel; a counter makes new names unique."""

    def __init__(self, rewritten: Callable[[Expr, Bind], Expr], prefix: str) -> None:
        self._rewritten = rewritten
        self._prefix = prefix
        self._numbers = itertools.count(1)
        self._bound: dict[Expr, Variable] = {}  # before the statement at hand

    def block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rewrite statements."""
        statements: list[Statement] = []
        for statement in body:
            self._bound = {}
            statement = with_expressions(statement, lambda it: self._rewritten(it, self._bind))
            statements += (Let(variable, part) for part, variable in self._bound.items())
            statements.append(with_blocks(statement, self.block))
        return tuple(statements)

    def _bind(self, part: Expr) -> Variable:
        if part not in self._bound:
            self._bound[part] = Variable(part.type, f"{self._prefix}{next(self._numbers)}")
        return self._bound[part]
