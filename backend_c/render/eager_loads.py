"""Hoist loads out of the operands of selects.

An operand of C's ``?:`` is evaluated only if it is chosen, so that a load in it is one under a
condition. gcc 12 makes a *masked* load of that in lanes, with AVX2, and takes one mask for those of
neighbouring elements (`tests/regressions/masked_rows_of_two.hlo`). All indices of the loop IR are
within their arrays, so that a load may be executed speculatively.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from backend_c.ir.bound_parts import Bind, with_bound_parts
from backend_c.ir.loop_ir import Apply, Expr, Kernel, Load, subexpressions
from backend_c.ir.loop_rewriting import with_operands


def with_eager_loads(kernel: Kernel) -> Kernel:
    """Return a kernel in which no load is under a select: each is bound before its statement."""
    return replace(kernel, body=with_bound_parts(kernel.body, _whole, "w"))


def chosen(expression: Expr) -> Iterator[Expr]:
    """Yield the second and third operands of the selects in an expression."""
    for part in subexpressions(expression):
        if isinstance(part, Apply) and part.operation == "select":
            yield from part.operands[1:]


def _whole(value: Expr, bind: Bind) -> Expr:
    """Rewrite a statement's whole expression, which is evaluated unconditionally."""
    if not any(isinstance(part, Load) for one in chosen(value) for part in subexpressions(one)):
        return value
    return _without(value, bind, is_chosen=False)


def _without(value: Expr, bind: Bind, *, is_chosen: bool) -> Expr:
    """Replace loads under selects by variables; ``is_chosen``: the expression is under one."""
    match value:
        case Apply("select", (condition, *choices), _):
            kept = _without(condition, bind, is_chosen=is_chosen)
            given = (_without(choice, bind, is_chosen=True) for choice in choices)
            return value._replace(operands=(kept, *given))
        case _:
            value = with_operands(value, lambda one: _without(one, bind, is_chosen=is_chosen))
            return bind(value) if is_chosen and isinstance(value, Load) else value
