"""Rewrite the loops of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backend_c.ir.loop_ir import If, Loop, Statement


def with_loops(
    body: Sequence[Statement], change: Callable[[Loop], Sequence[Statement]]
) -> tuple[Statement, ...]:
    """Return statements with each loop, also in branches, replaced by what ``change`` makes of it;
    of the loops inside a loop it is for ``change`` to say."""
    rewritten: list[Statement] = []
    for statement in body:
        match statement:
            case Loop():
                rewritten.extend(change(statement))
            case If(_, then, otherwise):
                blocks = with_loops(then, change), with_loops(otherwise, change)
                rewritten.append(statement._replace(then=blocks[0], otherwise=blocks[1]))
            case _:
                rewritten.append(statement)
    return tuple(rewritten)
