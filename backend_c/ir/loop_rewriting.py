"""Map functions over the operands of expressions, and over the expressions and blocks of
statements.

What :func:`~backend_c.ir.loop_ir.operands`, :func:`~backend_c.ir.loop_ir.expressions` and
:func:`~backend_c.ir.loop_ir.inside` read, these replace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from backend_c.ir.loop_ir import (
    Apply,
    Assign,
    Call,
    Expr,
    If,
    Let,
    Load,
    Loop,
    Mutable,
    Pointer,
    Statement,
    Store,
    Variable,
)


def with_operands(value: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Map ``change`` over the direct subexpressions of an expression, in order."""
    match value:
        case Load(_, offset):
            return value._replace(offset=change(offset))
        case Apply(_, operands, _):
            return value._replace(operands=tuple(map(change, operands)))
        case _:
            return value


def with_instead(value: Expr, instead: Mapping[Variable | Load, Expr]) -> Expr:
    """Substitute variables and loads in an expression."""
    if isinstance(value, Variable | Load) and value in instead:
        return instead[value]
    return with_operands(value, lambda operand: with_instead(operand, instead))


def with_expressions(statement: Statement, change: Callable[[Expr], Expr]) -> Statement:
    """Map ``change`` over the expressions of a statement itself, not of statements inside it."""
    match statement:
        case Let(_, value) | Assign(_, value):
            return statement._replace(value=change(value))
        case Mutable(_, initial) if initial is not None:
            return statement._replace(initial=change(initial))
        case Store(_, offset, value):
            return statement._replace(offset=change(offset), value=change(value))
        case Loop():
            return statement._replace(extent=change(statement.extent))
        case If(condition, _, _):
            return statement._replace(condition=change(condition))
        case Call(_, arguments):
            return statement._replace(arguments=tuple(_argument(a, change) for a in arguments))
        case _:
            return statement


def _argument(argument: Expr | Pointer, change: Callable[[Expr], Expr]) -> Expr | Pointer:
    """Map ``change`` over the expression in an argument of a runtime function."""
    if isinstance(argument, Pointer):
        return argument._replace(offset=change(argument.offset))
    return change(argument)


def with_blocks(
    statement: Statement, change: Callable[[Sequence[Statement]], tuple[Statement, ...]]
) -> Statement:
    """Map ``change`` over the body of a loop, or the branches of an ``if``."""
    match statement:
        case Loop():
            return statement._replace(body=change(statement.body))
        case If(_, then, otherwise):
            return statement._replace(then=change(then), otherwise=change(otherwise))
        case _:
            return statement


def with_loops(
    body: Sequence[Statement], change: Callable[[Loop], Sequence[Statement]]
) -> tuple[Statement, ...]:
    """Replace the outermost loops in statements, those in branches, too, by ``change(loop)``."""
    rewritten: list[Statement] = []
    for statement in body:
        if isinstance(statement, Loop):
            rewritten.extend(change(statement))
        else:
            rewritten.append(with_blocks(statement, lambda block: with_loops(block, change)))
    return tuple(rewritten)
