"""Recognise floored remainders, those of Python's ``%`` and NumPy, and shorten them.

HLO's remainder has the sign of the dividend, so ``x % c`` is written as its correction:

    r = remainder(x, c);  select(and(ne(lt(r, 0), lt(c, 0)), ne(r, 0)), r + c, r)

By a constant c > 0 that is ``x & (c - 1)`` for a power of two, else ``r < 0 ? r + c : r``.
"""

from __future__ import annotations

from backend_c.ir.integer_ranges import IntegerRanges
from backend_c.ir.loop_ir import Apply, Constant, Expr, Variable
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
    is_corrected: set[Expr] = {is_negative, Apply("compare-NE", (rest, zero), PRED)}
    if dividend is None or not _is_conjunction(condition, is_corrected, ranges):
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


def _is_conjunction(condition: Expr, conjuncts: set[Expr], ranges: IntegerRanges) -> bool:
    """Return whether a condition is the conjunction of some conditions and no other."""
    found: set[Expr] = set()
    seen: set[Expr] = set()  # variables: a chain of c = and(c, c) has two paths for each link
    left = [condition]
    while left:
        one = left.pop()
        if isinstance(one, Variable):
            if one in seen:
                continue
            seen.add(one)
        match ranges.definition(one):
            case Apply("and", operands, _):
                left += operands
            # What is left of ne(lt(r, 0), lt(c, 0)): `decided_selects` folds lt(c, 0) first.
            case Apply("compare-NE", (other, Constant(kind, False)), _) if kind is PRED:
                left.append(other)
            case conjunct if conjunct in conjuncts:
                found.add(conjunct)
            case _:
                return False
    return found == conjuncts
