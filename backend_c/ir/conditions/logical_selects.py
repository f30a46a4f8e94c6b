"""Write selects of preds as logic.

    p ? a : b   is   (p & a) | (!p & b)

Compilers keep preds in lanes as masks, one for each width of number that was compared, and gcc 12
has no vector for a choice between masks of two widths (of floats compared, of bytes read): the loop
around it is not in lanes at all. Of ``and``, ``or`` and ``not`` it has.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir.bound_parts import Bind, with_bound_parts
from backend_c.ir.loop_ir import Apply, Constant, Expr, Statement, Variable, subexpressions
from backend_c.ir.loop_rewriting import with_operands
from hlo.types import PRED


def with_logical_selects(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Replace the selects of preds in statements; conditions are bound before their statement."""
    return with_bound_parts(body, _whole, "is")


def _whole(value: Expr, bind: Bind) -> Expr:
    """Rewrite an expression of a statement, if there is something to rewrite."""
    return _logical(value, bind) if any(map(_is_choice, subexpressions(value))) else value


def _logical(value: Expr, bind: Bind) -> Expr:
    value = with_operands(value, lambda operand: _logical(operand, bind))
    if not _is_choice(value):
        return value
    assert isinstance(value, Apply)
    condition, one, other = value.operands
    if not isinstance(condition, Variable | Constant):  # it is written twice
        condition = bind(condition)
    taken = Apply("and", (condition, one), PRED)
    return Apply("or", (taken, Apply("and", (_negated(condition), other), PRED)), PRED)


def _is_choice(value: Expr) -> bool:
    return isinstance(value, Apply) and value.operation == "select" and value.type is PRED


def _negated(condition: Expr) -> Expr:
    return Apply("not", (condition,), PRED)
