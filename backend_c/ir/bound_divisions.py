"""Put together an index whose quotients and remainders are bound to names.

What computing an index takes is bound where its loop is, so that 8 * (i / 8) + i % 8 may be a sum
of two variables. With their definitions in their place it is i.
"""

from __future__ import annotations

from collections.abc import Mapping

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Constant,
    Expr,
    Variable,
    subexpressions,
    variables,
)


def with_definitions(expression: Expr, definitions: Mapping[str, Expr]) -> Expr:
    """Substitute variables by their definitions, and fold quotients with their remainders."""
    if definitions.keys().isdisjoint(variables(expression)):
        return expression
    terms, offset = ix.affine_form(expression)
    parts = [ix.multiply(_defined(atom, definitions), factor) for atom, factor in terms.items()]
    return ix.add(*parts, offset)


def _defined(atom: Expr, definitions: Mapping[str, Expr]) -> Expr:
    """Substitute variables in an atom, also in what it divides."""
    match atom:
        case Variable() if atom.name in definitions:
            return with_definitions(definitions[atom.name], definitions)
        case Apply("divide", (dividend, Constant(_, divisor)), _):
            return ix.divide(with_definitions(dividend, definitions), int(divisor))  # type: ignore[arg-type]
        case Apply("modulo", (dividend, Constant(_, divisor)), _):
            return ix.modulo(with_definitions(dividend, definitions), int(divisor))  # type: ignore[arg-type]
    return atom


def folded(index: Expr, definitions: Mapping[str, Expr]) -> Expr:
    """Return an index with variables that are quotients and remainders put together, all of them
    if that leaves no division, else those of one dividend that it leaves fewer of."""
    if not definitions:  # as in most kernels: for speed
        return index
    own = [name for name in dict.fromkeys(variables(index)) if name in definitions]
    if not own:
        return index
    expanded = with_definitions(index, definitions)
    if not ix.has_division(expanded):
        return expanded
    dividends = {name: frozenset(variables(definitions[name])) for name in own}
    for dividend in dict.fromkeys(dividends.values()):
        some = {name: definitions[name] for name in own if dividends[name] == dividend}
        # A quotient folds only together with its remainder: one name alone stays a division.
        if len(some) > 1:
            expanded = with_definitions(index, some)
            index = expanded if _divisions(expanded) < len(some) else index
    return index


def _divisions(expression: Expr) -> int:
    """Count the divisions of indices in an expression."""
    return sum(
        type(part) is Apply and part.operation in ("divide", "modulo") and part.type is INDEX
        for part in subexpressions(expression)
    )
