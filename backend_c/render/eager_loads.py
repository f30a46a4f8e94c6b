"""Hoist loads out of the operands of selects.

An operand of C's ``?:`` is evaluated only if it is chosen, so that a load in it is one under a
condition. gcc 12 makes a *masked* load of that in lanes, with AVX2, and takes one mask for those of
neighbouring elements (`tests/regressions/masked_rows_of_two.hlo`). All indices of the loop IR are
within their arrays, so that a load may be executed speculatively.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from backend_c.ir.loop_ir import (
    Apply,
    Expr,
    Kernel,
    Let,
    Load,
    Statement,
    Variable,
    subexpressions,
)
from backend_c.ir.loop_rewriting import with_blocks, with_expressions, with_operands


def with_eager_loads(kernel: Kernel) -> Kernel:
    """Return a kernel in which no load is under a select: each is bound before its statement."""
    return replace(kernel, body=_Eager().block(kernel.body))


def chosen(expression: Expr) -> Iterator[Expr]:
    """Yield the second and third operands of the selects in an expression."""
    for part in subexpressions(expression):
        if isinstance(part, Apply) and part.operation == "select":
            yield from part.operands[1:]


class _Eager:
    """Rewrite the statements of one kernel; a counter makes new names unique."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._loads: dict[Load, Variable] = {}  # bound before the statement at hand

    def block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rewrite statements; the loads hoisted from each are bound right before it."""
        rewritten: list[Statement] = []
        for statement in body:
            self._loads = {}
            statement = with_expressions(statement, self._whole)
            lets = [Let(variable, load) for load, variable in self._loads.items()]
            rewritten += [*lets, with_blocks(statement, self.block)]
        return tuple(rewritten)

    def _whole(self, value: Expr) -> Expr:
        """Rewrite a statement's whole expression, which is evaluated unconditionally."""
        if not any(isinstance(part, Load) for one in chosen(value) for part in subexpressions(one)):
            return value
        return self._without(value, is_chosen=False)

    def _without(self, value: Expr, *, is_chosen: bool) -> Expr:
        """Replace loads under selects by variables; ``is_chosen``: the expression is under one."""
        match value:
            case Apply("select", (condition, *choices), _):
                kept = self._without(condition, is_chosen=is_chosen)
                given = (self._without(choice, is_chosen=True) for choice in choices)
                return value._replace(operands=(kept, *given))
            case _:
                value = with_operands(value, lambda one: self._without(one, is_chosen=is_chosen))
                return self._bound(value) if is_chosen and isinstance(value, Load) else value

    def _bound(self, load: Load) -> Variable:
        """Return the variable that a load is bound to before the statement at hand."""
        if load not in self._loads:
            self._loads[load] = Variable(load.type, f"w{next(self._numbers)}")
        return self._loads[load]
