"""Divide loops in lanes by the digits of their index (strip mining).

What a reshape makes of several dimensions is read at quotients and remainders of one index: rows
that are repeated, pairs that lie beside each other, products of every element with every other one.
A division of 64 bits takes longer in lanes than what is computed of the element. So a loop is
looked at when it is written, and where its index is divided, it is written again by the digits of
the index, of which the divisions are constants or fold away:

    for i in 0 … 2n - 1: r[i] = i % 2 < 1 ? a[i / 2] : b[i / 2]
    for k in 0 … n - 1: r[2 k] = a[k]; r[2 k + 1] = b[k]

Small digits are written out, as here, so that neighbouring lanes have neighbouring quotients; of
larger ones each quotient has a loop in lanes of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from backend_c.ir import index as ix
from backend_c.ir.dead_lets import without_dead_lets
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Loop,
    Statement,
    Variable,
    expressions,
    subexpressions,
)
from backend_c.ir.scope import Scope
from backend_c.ir.segments import Write, write_segments

_LEAST = 8  # quotients: fewer are no lanes
_WRITTEN_OUT = 8  # digits
_MOST_STATEMENTS = 64  # of all digits that are written out: they take registers
_SHARED = 64  # iterations of a parallel loop, at least: several for each thread


def write_lanes(scope: Scope, extent: int, kind: str, write: Write) -> None:
    """Write a loop in lanes, by digits if that takes divisions out of it, else in segments."""
    before = scope.written()
    write_segments(scope, extent, kind, write)
    loop = scope.last_statement
    radix = _radix(loop, extent) if isinstance(loop, Loop) and scope.settings.has_lanes else 0
    if not radix:
        return
    assert isinstance(loop, Loop)
    if radix > _WRITTEN_OUT:
        scope.forget_after(before)
        outer, inner = _kinds(kind, extent // radix)
        with scope.loop(extent // radix, outer) as quotient:
            start = ix.multiply(quotient, radix)
            write_lanes(scope, radix, inner, lambda lane: write(ix.add(start, lane)))
    elif extent // radix >= _LEAST and radix * len(loop.body) <= _MOST_STATEMENTS:
        scope.forget_after(before)
        with scope.loop(extent // radix, kind) as quotient:
            start = ix.multiply(quotient, radix)
            for digit in range(radix):
                write(ix.add(start, digit))


def _kinds(kind: str, quotients: int) -> tuple[str, str]:
    """Return the kinds of a loop over so many quotients and of the one inside of it: threads share
    the outer one if that is enough for all."""
    if kind == "lanes":
        return "serial", "lanes"
    return ("parallel", "lanes") if quotients >= _SHARED else ("serial", kind)


def _radix(loop: Loop, extent: int) -> int:
    """Return the least divisor of a loop's variable, if it divides the extent; else 0."""
    if any(isinstance(statement, Loop) for statement in loop.body):
        return 0
    # An index that is divided for its parts and put together again is divided by nothing that is
    # left in the end.
    body = without_dead_lets(loop.body)
    radix = min({p for s in body for p in _periods(s, loop.variable)}, default=0)
    if not radix or ix.value_of(loop.extent) != extent:
        return 0
    return radix if extent % radix == 0 and extent > radix else 0


def _periods(statement: Statement, lane: Variable) -> Iterator[int]:
    """Yield how many lanes share a quotient, for each division of a loop's variable."""
    for expression in expressions(statement):
        for part in subexpressions(expression):
            if not (isinstance(part, Apply) and part.operation in ("divide", "modulo")):
                continue
            divisor = ix.value_of(part.operands[1]) if part.type is INDEX else None
            factor = ix.coefficients(part.operands[0]).get(lane, 0) if divisor else 0
            if divisor and factor and divisor % factor == 0 and divisor > abs(factor):
                yield divisor // abs(factor)
