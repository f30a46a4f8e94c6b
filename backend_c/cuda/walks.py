"""Collect the names and arrays that statements read, declare and change, and rename variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from backend_c.ir.loop_ir import (
    Address,
    Array,
    Assign,
    Call,
    Expr,
    Let,
    Load,
    LocalArray,
    Loop,
    Mutable,
    Pointer,
    Statement,
    Store,
    Variable,
    every,
    expressions,
    inside,
    subexpressions,
)
from backend_c.ir.loop_rewriting import with_blocks, with_expressions, with_operands

LINE = "hlo_line_"  # begins the names of the functions of runtime/hlo_lines.h


def reads(statement: Statement) -> Iterator[tuple[Array, Expr]]:
    """Yield the loads of a statement itself: the array and the offset."""
    for expression in expressions(statement):
        for part in subexpressions(expression):
            if isinstance(part, Load):
                yield part.array, part.offset


def pointers(statement: Statement) -> Iterator[Pointer]:
    """Yield the addresses that a statement itself gives to a runtime function."""
    if isinstance(statement, Call):
        yield from (a for a in statement.arguments if isinstance(a, Pointer))


def pointed(statement: Statement) -> Iterator[tuple[Pointer, bool]]:
    """Yield (pointer, whether it is written through) of a call.

    A pointer through which a function may read and write comes twice.
    """
    for number, pointer in enumerate(pointers(statement)):
        is_line = isinstance(statement, Call) and statement.function.startswith(LINE)
        if is_line:  # to the first address, from the second
            yield pointer, number == 0
        else:
            yield from ((pointer, write) for write in (False, True))


def declared(statement: Statement) -> str | None:
    """Return the name of the variable or array that a statement declares."""
    match statement:
        case Let(variable, _) | Mutable(variable, _):
            return variable.name
        case LocalArray(array):
            return array.name
        case _:
            return None


def named(statement: Statement) -> Iterator[str]:
    """Yield the names of variables and local arrays that a statement and those inside it use."""
    for expression in expressions(statement):
        for part in subexpressions(expression):
            if isinstance(part, Variable):
                yield part.name
            elif isinstance(part, Address):
                yield part.variable.name
    yield from (array.name for array, _ in reads(statement) if array.is_local)
    yield from (pointer.array.name for pointer in pointers(statement))
    match statement:
        case Assign(variable, _):
            yield variable.name
        case Store(array, _, _):
            yield array.name
        case Loop():
            yield from (variable.name for variable in statement.sums)
        case _:
            pass
    for one in inside(statement):
        yield from named(one)


def changed(statement: Statement) -> Iterator[str]:
    """Yield the variables that a statement and those inside it assign after their declaration."""
    for one in every([statement]):
        match one:
            case Assign(variable, _):
                yield variable.name
            case Loop():
                yield from (variable.name for variable in one.sums)
            case _:
                pass
        for expression in expressions(one):
            for part in subexpressions(expression):
                if isinstance(part, Address):
                    yield part.variable.name


def renamed_value(expression: Expr, names: Mapping[str, Variable]) -> Expr:
    """Substitute variables in an expression by name."""
    match expression:
        case Variable():
            return names.get(expression.name, expression)
        case Address(variable):
            return Address(names.get(variable.name, variable))
        case _:
            return with_operands(expression, lambda part: renamed_value(part, names))


def renamed(statement: Statement, names: Mapping[str, Variable]) -> Statement:
    """Substitute variables in a statement by name."""
    statement = with_expressions(statement, lambda value: renamed_value(value, names))
    statement = with_blocks(statement, lambda block: tuple(renamed(one, names) for one in block))
    match statement:
        case Let() | Assign():
            return statement._replace(variable=_other(statement.variable, names))
        case Loop():
            return statement._replace(sums=tuple(_other(one, names) for one in statement.sums))
        case _:
            return statement


def _other(variable: Variable, names: Mapping[str, Variable]) -> Variable:
    return names.get(variable.name, variable)
