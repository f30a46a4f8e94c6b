"""Eliminate common subexpressions of straight code (value numbering: expressions are keys).

:class:`backend_c.ir.scope.Scope` does so while a kernel is written; this is for statements of
several kernels that become one.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir.loop_ir import Apply, Expr, Let, Load, Store, Variable, is_mutable, subexpressions
from backend_c.ir.loop_rewriting import with_operands


def with_common_values(
    body: Sequence[Let | Store],
) -> tuple[tuple[Let | Store, ...], dict[str, Variable]]:
    """Eliminate common subexpressions; return the statements, and what replaced each removed
    variable, by its name: it may have other bounds where it is used.

    No store may change what is loaded, but for mutable arrays, whose loads are kept.
    """
    kept: list[Let | Store] = []
    known: dict[Expr, Variable] = {}  # variables by what they are bound to
    same: dict[str, Variable] = {}  # variables by the names of others of the same value
    for statement in body:
        value = _renamed(statement.value, same)
        if isinstance(statement, Let) and not any(map(is_mutable, subexpressions(value))):
            other = value if isinstance(value, Variable) else known.get(value)
            if other is not None:
                same[statement.variable.name] = other
                continue
            known[value] = statement.variable
        if isinstance(statement, Store):
            statement = statement._replace(offset=_renamed(statement.offset, same))
        kept.append(statement._replace(value=value))
    return tuple(kept), same


def _renamed(value: Expr, same: dict[str, Variable]) -> Expr:
    """Substitute removed variables by the kept ones of the same value."""
    if isinstance(value, Load | Apply):
        return with_operands(value, lambda one: _renamed(one, same))
    return same.get(value.name, value) if isinstance(value, Variable) else value
