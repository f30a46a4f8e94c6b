"""Recognise floored remainders, those of Python's ``%`` and NumPy, and shorten them.

HLO's remainder has the sign of the dividend, so ``x % c`` is written as its correction:

    r = remainder(x, c);  select(and(ne(lt(r, 0), lt(c, 0)), ne(r, 0)), r + c, r)

By a constant c > 0 that is ``x & (c - 1)`` for a power of two, else ``r < 0 ? r + c : r``.
"""

from __future__ import annotations

from backend_c.ir.integer_ranges import IntegerRanges
from backend_c.ir.loop_ir import Apply, Constant, Expr
from hlo.types import PRED


def with_floored_remainder(value: Expr, ranges: IntegerRanges) -> Expr:
    """Shorten a select that floors a remainder by a positive constant; return others unchanged."""
    if not isinstance(value, Apply) or value.operation != "select":
        return value
    condition, corrected, rest = value.operands
    match ranges.definition(corrected):
        case Apply("add", (one, Constant(kind, number)), _) if one == rest:
            divisor = int(number)  # type: ignore[arg-type]
        case _:
            return value
    dividend, zero = _dividend(rest, divisor, ranges), Constant(kind, 0)
    is_negative = Apply("compare-LT", (rest, zero), PRED)
    is_corrected = {is_negative, Apply("compare-NE", (rest, zero), PRED)}
    if dividend is None or _conjuncts(condition, ranges) != is_corrected:
        return value
    # Two's complement: the low bits are the floored remainder of negative numbers, too.
    if divisor & (divisor - 1) == 0:
        return Apply("and", (dividend, Constant(kind, divisor - 1)), value.type)
    return Apply("select", (is_negative, corrected, rest), value.type)


def _dividend(rest: Expr, divisor: int, ranges: IntegerRanges) -> Expr | None:
    """Return the dividend of a remainder by a positive divisor; None if the value is no such
    one."""
    match ranges.definition(rest):
        case Apply("remainder", (dividend, Constant(_, number)), element_type):
            is_same = number == divisor and element_type.kind == "signed"
            return dividend if is_same and divisor > 0 else None
    return None


def _conjuncts(condition: Expr, ranges: IntegerRanges) -> set[Expr]:
    """Return the conjuncts of a condition."""
    match ranges.definition(condition):
        case Apply("and", (one, other), _):
            return _conjuncts(one, ranges) | _conjuncts(other, ranges)
        # What is left of ne(lt(r, 0), lt(c, 0)): `decided_selects` folds lt(c, 0) first.
        case Apply("compare-NE", (one, Constant(element_type, False)), _) if element_type is PRED:
            return _conjuncts(one, ranges)
        case found:
            return {found}
