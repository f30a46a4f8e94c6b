"""Eliminate dead lets: values that no statement needs cost time, and compilers warn of them."""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir.loop_ir import If, Let, Loop, Statement, expressions, variables


def without_dead_lets(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return the statements without lets of unused variables and blocks that are then empty."""
    return _live(body, set())


def _live(body: Sequence[Statement], used: set[str]) -> tuple[Statement, ...]:
    """Keep live statements, from last to first, adding the names that they use to ``used``."""
    kept: list[Statement] = []
    # Uses come after definitions, so backwards one pass finds all live names.
    for statement in reversed(body):
        match statement:
            case Let(variable, _) if variable.name not in used:
                continue
            case Loop(_, _, _, inside, _):
                statement = statement._replace(body=_live(inside, used))
                if not statement.body:
                    continue
            case If(_, then, otherwise):
                branches = _live(then, used), _live(otherwise, used)
                statement = statement._replace(then=branches[0], otherwise=branches[1])
                if not any(branches):
                    continue
            case _:
                pass
        used.update(name for e in expressions(statement) for name in variables(e))
        kept.append(statement)
    return tuple(reversed(kept))
