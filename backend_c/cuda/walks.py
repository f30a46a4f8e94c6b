"""Ask statements of a kernel what they name and change, and give them other names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from backend_c.ir.loop_ir import (
    Address,
    Apply,
    Array,
    Assign,
    Call,
    Expr,
    If,
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
    """Yield the variables and arrays on the stack that a statement and those inside it use."""
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
    """Yield the variables that a statement and those inside it may set after their declaration."""
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
    """Return an expression with other variables in the place of some."""
    match expression:
        case Variable():
            return names.get(expression.name, expression)
        case Address(variable):
            return Address(names.get(variable.name, variable))
        case Apply(_, operands, _):
            return expression._replace(operands=tuple(renamed_value(o, names) for o in operands))
        case Load(_, offset):
            return expression._replace(offset=renamed_value(offset, names))
        case _:
            return expression


def renamed(statement: Statement, names: Mapping[str, Variable]) -> Statement:
    """Return a statement with other variables in the place of some."""
    match statement:
        case Let(_, value) | Assign(_, value):
            statement = statement._replace(value=renamed_value(value, names))
            return statement._replace(variable=_other(statement.variable, names))
        case Mutable(variable, initial) if initial is not None:
            return Mutable(variable, renamed_value(initial, names))
        case Store(array, offset, value):
            return Store(array, renamed_value(offset, names), renamed_value(value, names))
        case Call(function, arguments):
            return Call(function, tuple(_renamed_argument(a, names) for a in arguments))
        case If(condition, then, otherwise):
            branches = (tuple(renamed(s, names) for s in one) for one in (then, otherwise))
            return If(renamed_value(condition, names), *branches)
        case Loop():
            return statement._replace(
                extent=renamed_value(statement.extent, names),
                body=tuple(renamed(s, names) for s in statement.body),
                sums=tuple(_other(one, names) for one in statement.sums),
            )
        case _:
            return statement


def _other(variable: Variable, names: Mapping[str, Variable]) -> Variable:
    return names.get(variable.name, variable)


def _renamed_argument(argument: Expr | Pointer, names: Mapping[str, Variable]) -> Expr | Pointer:
    if isinstance(argument, Pointer):
        return argument._replace(offset=renamed_value(argument.offset, names))
    return renamed_value(argument, names)
