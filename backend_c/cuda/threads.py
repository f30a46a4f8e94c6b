"""Share the loops of a kernel among blocks and threads.

grid     a loop over independent iterations: each thread takes some of them, alone
single   anything else: one thread does it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backend_c.cuda.walks import every
from backend_c.ir.loop_ir import If, Kernel, Loop, Statement


def mapped(kernel: Kernel) -> Kernel:
    """Return a kernel whose loops say which threads share them, in the dialect of CUDA."""
    return replace(kernel, body=tuple(map(_by_threads, kernel.body)))


def launch_shape(kernel: Kernel) -> str:
    """Return how a kernel is launched: a ``grid`` of blocks, one ``block``, a ``single`` thread."""
    kinds = {statement.kind for statement in every(kernel.body) if isinstance(statement, Loop)}
    if any("parallel" in kind for kind in kinds):
        return "grid"
    return "block" if "lanes" in kinds else "single"


def _by_threads(statement: Statement) -> Statement:
    """Return a statement whose independent iterations are those of threads."""
    if isinstance(statement, Loop) and "parallel" in statement.kind and not statement.sums:
        return statement._replace(kind="parallel lanes", body=_alone(statement.body))
    return _alone([statement])[0]


def _alone(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return statements that one thread runs alone."""
    found: list[Statement] = []
    for statement in statements:
        match statement:
            case Loop():
                inner = _alone(statement.body)
                found.append(statement._replace(kind="serial", body=inner, sums=()))
            case If(condition, then, otherwise):
                found.append(If(condition, _alone(then), _alone(otherwise)))
            case _:
                found.append(statement)
    return tuple(found)
