"""Load what a select chooses from before it, whatever it chooses.

An operand of C's ``?:`` is evaluated only if it is chosen, so that a load in it is one under a
condition. gcc 12 makes a *masked* load of that in lanes, with AVX2, and takes one mask for those of
neighbouring elements (`tests/regressions/masked_rows_of_two.hlo`). All indices of the loop IR are
within their arrays, so loads need no condition.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from backend_c.ir.loop_ir import (
    Apply,
    Assign,
    Call,
    Expr,
    If,
    Kernel,
    Let,
    Load,
    Loop,
    Mutable,
    Pointer,
    Statement,
    Store,
    Variable,
    subexpressions,
)


def with_eager_loads(kernel: Kernel) -> Kernel:
    """Return a kernel none of whose selects loads what it chooses."""
    return replace(kernel, body=_Eager().block(kernel.body))


def chosen(expression: Expr) -> Iterator[Expr]:
    """Yield the operands that the selects in an expression choose from."""
    for part in subexpressions(expression):
        if isinstance(part, Apply) and part.operation == "select":
            yield from part.operands[1:]


class _Eager:
    """Rewrite the statements of one kernel, with names that no other variable has."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._lets: list[Let] = []  # before the statement at hand

    def block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rewrite statements."""
        rewritten: list[Statement] = []
        for statement in body:
            changed = self._statement(statement)
            rewritten += [*self._lets, changed]
            self._lets = []
        return tuple(rewritten)

    def _statement(self, statement: Statement) -> Statement:
        """Rewrite a statement; the loads to bind before it are added to ``_lets``."""
        match statement:
            case Let(_, value) | Assign(_, value) | Store(_, _, value):
                return statement._replace(value=self._whole(value))
            case Mutable(_, initial) if initial is not None:
                return statement._replace(initial=self._whole(initial))
            case If(condition, then, otherwise):
                kept = self._whole(condition)
                lets, self._lets = self._lets, []
                branches = self.block(then), self.block(otherwise)
                self._lets = lets
                return If(kept, *branches)
            case Loop():
                return statement._replace(body=self.block(statement.body))
            case Call(_, arguments):
                given = (a if isinstance(a, Pointer) else self._whole(a) for a in arguments)
                return statement._replace(arguments=tuple(given))
            case _:
                return statement

    def _whole(self, value: Expr) -> Expr:
        """Rewrite an expression that is evaluated in any case."""
        if not any(isinstance(part, Load) for one in chosen(value) for part in subexpressions(one)):
            return value
        return self._without(value, is_chosen=False)

    def _without(self, value: Expr, *, is_chosen: bool) -> Expr:
        """Return an expression with variables in place of the loads that selects choose from."""
        match value:
            case Load(array, offset):
                load = Load(array, self._without(offset, is_chosen=is_chosen))
                if not is_chosen:
                    return load
                self._lets.append(Let(Variable(load.type, f"w{next(self._numbers)}"), load))
                return self._lets[-1].variable
            case Apply("select", (condition, *choices), _):
                kept = self._without(condition, is_chosen=is_chosen)
                given = (self._without(choice, is_chosen=True) for choice in choices)
                return value._replace(operands=(kept, *given))
            case Apply(_, operands, _):
                given = (self._without(operand, is_chosen=is_chosen) for operand in operands)
                return value._replace(operands=tuple(given))
            case _:
                return value
