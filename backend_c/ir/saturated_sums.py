"""Recognise sums and differences that are clamped to a narrow type, and compute them in it.

Programs widen bytes, add, clamp to the range of bytes, and narrow again. No sum overflows whose
first operand was clamped before by what the second one leaves of the range:

    min(max(a + b, -128), 127) = max(min(a, 127 - max(b, 0)), -128 - min(b, 0)) + b

Processors have minima and maxima of bytes, so that a vector of them is all that is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from backend_c.ir.integer_ranges import IntegerRanges, range_of
from backend_c.ir.loop_ir import Apply, Constant, Expr
from hlo.types import ElementType


class ClampedSum(NamedTuple):
    """Hold ``min(max(one + other, low), high)``, of a difference if not ``is_sum``."""

    one: Expr
    other: Expr
    is_sum: bool
    low: int
    high: int


def clamped_sum(
    value: Expr,
    narrow: ElementType,
    definition: Callable[[Expr], Expr],
    ranges: IntegerRanges,
) -> ClampedSum | None:
    """Return the sum or difference whose maximum and minimum with numbers a value is, if these
    leave numbers of a narrow type; None for others.

    ``definition`` returns what a variable stands for.
    """
    ends: list[tuple[str, int]] = []  # from the outermost operation on
    while True:
        value = definition(value)
        match value:
            case Apply("maximum" | "minimum", (Constant(_, number), inner), _):
                ends.append((value.operation, int(number)))  # type: ignore[arg-type]
            case Apply("maximum" | "minimum", (inner, Constant(_, number)), _):
                ends.append((value.operation, int(number)))  # type: ignore[arg-type]
            case _:
                break
        value = inner
    if not (ends and isinstance(value, Apply) and value.operation in ("add", "subtract")):
        return None
    if not ranges.fits(value):
        return None  # it wraps around before it is clamped
    low, high = ranges.of(value)
    for end, number in reversed(ends):
        choose = max if end == "maximum" else min
        low, high = choose(low, number), choose(high, number)
    least, most = range_of(narrow)
    if not least <= low <= high <= most:
        return None
    one, other = value.operands
    is_sum = value.operation == "add"
    if is_sum and isinstance(one, Constant):
        one, other = other, one
    match other:
        case Constant(kind, int(number)) if is_sum and number < 0 <= least:
            other, is_sum = Constant(kind, -number), False
    return ClampedSum(one, other, is_sum, low, high)


def saturated(clamped: ClampedSum, one: Expr, other: Expr) -> Expr:
    """Return a clamped sum of operands that have been narrowed."""
    narrow, (least, most) = one.type, range_of(one.type)

    def applied(operation: str, value: Expr, number: int) -> Expr:
        return Apply(operation, (value, Constant(narrow, number)), narrow)

    zero: Expr = Constant(narrow, 0)
    if narrow.kind == "signed":
        positive, negative = (applied(end, other, 0) for end in ("maximum", "minimum"))
    else:
        positive, negative = other, zero
    operation, opposite = ("add", "subtract") if clamped.is_sum else ("subtract", "add")
    up, down = (positive, negative) if clamped.is_sum else (negative, positive)
    for end, number, by in (("minimum", most, up), ("maximum", least, down)):
        if by is not zero:
            limit = Apply(opposite, (Constant(narrow, number), by), narrow)
            one = Apply(end, (one, limit), narrow)
    result: Expr = Apply(operation, (one, other), narrow)
    if clamped.low > least:
        result = applied("maximum", result, clamped.low)
    return result if clamped.high == most else applied("minimum", result, clamped.high)
