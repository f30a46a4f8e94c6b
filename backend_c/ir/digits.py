"""Strip-mine loops in lanes by the divisors of their index (mixed-radix digits).

What a reshape makes of several dimensions is read at quotients and remainders of one index: rows
that are repeated, pairs that lie beside each other, products of every element with every other one.
A division of 64 bits takes longer in lanes than what is computed of the element. So a loop is
looked at when it is written, and where its index is divided, it is written again by the digits of
the index, of which the divisions are constants or fold away:

    for i in 0 … 2n - 1: r[i] = i % 2 < 1 ? a[i / 2] : b[i / 2]

    for k in 0 … n - 1: r[2 k] = a[k]; r[2 k + 1] = b[k]

Small digits are unrolled, as here, so that neighbouring lanes have neighbouring quotients; of
larger ones each quotient has a loop in lanes of its own, unrolled where they are few and decide
what is computed. Elements of a last quotient that is not whole have a loop after those.
"""

from __future__ import annotations

from collections.abc import Iterator

from backend_c.ir import index as ix
from backend_c.ir.block import Written
from backend_c.ir.dead_lets import without_dead_lets
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Expr,
    Let,
    Loop,
    Statement,
    Variable,
    expressions,
    subexpressions,
    variables,
)
from backend_c.ir.scope import Scope
from backend_c.ir.segments import Write, after, write_segments

_LEAST = 8  # quotients: fewer are no lanes
_WRITTEN_OUT = 4  # digits: compilers shuffle the stores of so many into vectors
_FEW = 8  # quotients
_MOST_STATEMENTS = 80  # of all digits that are written out: they take registers
_SHARED = 8  # iterations of a parallel loop, at least


def write_lanes(scope: Scope, extent: int, kind: str, write: Write) -> None:
    """Write a loop in lanes, in segments, each strip-mined if that removes divisions."""

    def improve(before: Written, length: int, write: Write) -> None:
        _strip_mine(scope, before, (length, kind), write)

    write_segments(scope, extent, kind, write, improve)


def _strip_mine(scope: Scope, before: Written, shape: tuple[int, str], write: Write) -> None:
    """Write the last loop, of an extent and a kind, again by the digits of a divided index."""
    (extent, kind), loop = shape, scope.last_statement
    radix = _radix(loop, extent) if isinstance(loop, Loop) and scope.settings.has_lanes else 0
    if not radix:
        return
    assert isinstance(loop, Loop)
    (quotients, rest), most = divmod(extent, radix), _MOST_STATEMENTS // len(loop.body)
    # Parts that were concatenated, say: with a loop over the quotients outside, the conditions on
    # them would stay in the lanes, which takes 1.6 times as long.
    if quotients <= min(_FEW, most) and _chooses(loop):
        scope.forget_after(before)
        for place in range(0, quotients * radix, radix):
            write_lanes(scope, radix, kind, after(ix.constant(place), write))
    elif radix > _WRITTEN_OUT:
        scope.forget_after(before)
        outer, inner = _kinds(kind, quotients)
        with scope.loop(quotients, outer) as quotient:
            write_lanes(scope, radix, inner, after(ix.multiply(quotient, radix), write))
    elif quotients >= _LEAST and radix <= most:
        scope.forget_after(before)
        with scope.loop(quotients, kind) as quotient:
            start = ix.multiply(quotient, radix)
            for digit in range(radix):
                write(ix.add(start, digit))
    else:
        return
    if rest:
        write_lanes(scope, rest, "lanes", after(ix.constant(quotients * radix), write))


def _kinds(kind: str, quotients: int) -> tuple[str, str]:
    """Return the kinds of the loop over quotients and of the loop inside it.

    Threads share the outer one if it has iterations enough for all.
    """
    if kind == "lanes":
        return "serial", "lanes"
    return ("parallel", "lanes") if quotients >= _SHARED else ("serial", kind)


def _radix(loop: Loop, extent: int) -> int:
    """Return the least divisor of a loop's variable; 0 if there is none below the extent."""
    if any(isinstance(statement, Loop) for statement in loop.body):
        return 0
    # An index that is divided for its parts and put together again is divided by nothing that is
    # left in the end.
    body = without_dead_lets(loop.body)
    radix = min({p for s in body for p in _periods(s, loop.variable)}, default=0)
    if not radix or ix.value_of(loop.extent) != extent:
        return 0
    return radix if extent > radix else 0


def divides(loop: Loop, extent: int) -> bool:
    """Return whether an index of a loop is divided, but to go round its ``extent`` or more."""
    divisions = (
        part
        for statement in without_dead_lets(loop.body)
        for expression in expressions(statement)
        for part in subexpressions(expression)
        if isinstance(part, Apply) and part.operation in ("divide", "modulo")
    )
    return any(
        part.type is INDEX
        and loop.variable.name in variables(part)
        and (part.operation == "divide" or (ix.value_of(part.operands[1]) or 0) < extent)
        for part in divisions
    )


def _chooses(loop: Loop) -> bool:
    """Return whether a comparison depends on a quotient of a loop's variable."""
    quotients = {
        s.variable.name for s in loop.body if isinstance(s, Let) and {*_periods(s, loop.variable)}
    }
    return any(
        isinstance(part, Apply)
        and part.operation.startswith("compare-")
        and not (quotients.isdisjoint(variables(part)) and not {*_divided(part, loop.variable)})
        for statement in loop.body
        for expression in expressions(statement)
        for part in subexpressions(expression)
    )


def _periods(statement: Statement, lane: Variable) -> Iterator[int]:
    """Yield, for each division of the lane's index in a statement, how many lanes share a
    quotient."""
    for expression in expressions(statement):
        yield from _divided(expression, lane)


def _divided(expression: Expr, lane: Variable) -> Iterator[int]:
    """Yield, for each division of the lane's index in an expression, how many lanes share a
    quotient."""
    for part in subexpressions(expression):
        if not (isinstance(part, Apply) and part.operation in ("divide", "modulo")):
            continue
        # (4 i + j) / 12 has another value at every third i; (5 i + j) / 12 has runs of two
        # and of three, which no digits of i give.
        divisor = ix.value_of(part.operands[1]) if part.type is INDEX else None
        factor = ix.coefficients(part.operands[0]).get(lane, 0) if divisor else 0
        if divisor and factor and divisor % factor == 0 and divisor > abs(factor):
            yield divisor // abs(factor)
