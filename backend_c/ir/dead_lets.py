"""Eliminate dead code: values that no statement uses cost time, and compilers warn of them.

These are lets that nothing uses, and variables and arrays on the stack that are only written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backend_c.ir.loop_ir import (
    Address,
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
    every,
    expressions,
    inside,
    subexpressions,
    variables,
)
from backend_c.ir.loop_rewriting import with_blocks


def without_dead_lets(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return the statements without dead lets, write-only locals, and blocks that are then empty.

    Removing a write-only local may make the values stored to it dead, too, so that is repeated.
    """
    live = _live(body, set())
    while unread := _declared(live) - _read(live):
        live = _live(_without(live, unread), set())
    return live


def _live(body: Sequence[Statement], used: set[str]) -> tuple[Statement, ...]:
    """Keep live statements, from last to first, adding the names that they use to ``used``; those
    that the statements bind are gone at their lets, as other blocks may bind the same names."""
    kept: list[Statement] = []
    behind = frozenset(used)
    # Uses come after definitions, so backwards one pass finds all live names.
    for statement in reversed(body):
        if isinstance(statement, Let):
            if statement.variable.name not in used:
                continue
            if statement.variable.name not in behind:
                used.discard(statement.variable.name)
        statement = with_blocks(statement, lambda block: _live(block, used))
        if isinstance(statement, Loop | If) and not inside(statement):
            continue
        used.update(name for e in expressions(statement) for name in variables(e))
        kept.append(statement)
    return tuple(reversed(kept))


def _declared(body: Sequence[Statement]) -> set[str]:
    """Return the names of mutable variables and local arrays."""
    found = set()
    for statement in every(body):
        match statement:
            case Mutable(variable, _):
                found.add(variable.name)
            case LocalArray(array):
                found.add(array.name)
            case _:
                pass
    return found


def _read(body: Sequence[Statement]) -> set[str]:
    """Return the names that are read, other than by a statement that updates the same name; a loop
    that combines a variable over its iterations does not read it."""
    found = set[str]()
    for statement in every(body):
        names = {name for e in expressions(statement) for name in _names(e)}
        match statement:
            case Assign(variable, _):
                names.discard(variable.name)
            case Store(array, _, _):
                names.discard(array.name)
            case Call(_, arguments):
                names.update(a.array.name for a in arguments if isinstance(a, Pointer))
            case _:
                pass
        found |= names
    return found


def _names(expression: Expr) -> Iterator[str]:
    """Yield the names of variables and arrays that an expression reads or takes the address of."""
    yield from variables(expression)
    for part in subexpressions(expression):
        if isinstance(part, Load):
            yield part.array.name
        elif isinstance(part, Address):
            yield part.variable.name


def _without(body: Sequence[Statement], names: set[str]) -> tuple[Statement, ...]:
    """Remove the declarations of names, the assignments and stores to them, and their sums."""
    kept: list[Statement] = []
    for statement in body:
        match statement:
            case Mutable(place, _) | Assign(place, _) | LocalArray(place) | Store(place, _, _) if (
                place.name in names
            ):
                continue
            case Loop(_, _, _, _, sums, _):
                summed = tuple(one for one in sums if one.name not in names)
                statement = statement._replace(sums=summed)
            case _:
                pass
        kept.append(with_blocks(statement, lambda block: _without(block, names)))
    return tuple(kept)
