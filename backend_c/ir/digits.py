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

from collections.abc import Iterator, Mapping

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
    parts,
    subexpressions,
    variables,
)
from backend_c.ir.scope import Scope
from backend_c.ir.segments import Write, after, write_segments
from hlo.passes.index_paths import WRITTEN_OUT

_LEAST = 8  # quotients: fewer are no lanes
_WRITTEN_OUT = 4  # digits: compilers shuffle the stores of so many into vectors
_FEW = 8  # quotients
_MOST_STATEMENTS = 80  # of all digits that are written out: they take registers
_MOST_OF_ROW = 512  # statements of a row whose digits share what they compute
_SHARED = 8  # iterations of a parallel loop, at least


def write_lanes(scope: Scope, extent: int, kind: str, write: Write) -> None:
    """Write a loop in lanes, in segments, each strip-mined if that removes divisions."""

    def improve(before: Written, length: int, write: Write) -> None:
        _strip_mine(scope, before, (length, kind), write)

    write_segments(scope, extent, kind, write, improve)


def _strip_mine(scope: Scope, before: Written, shape: tuple[int, str], write: Write) -> None:
    """Write the last loop, of an extent and a kind, again by the digits of a divided index."""
    (extent, kind), loop = shape, scope.last_statement
    periods = _periods_of(loop, extent) if isinstance(loop, Loop) else set()
    if not periods or not scope.settings.has_lanes:
        return
    assert isinstance(loop, Loop)
    row = _row_of_choices(loop, periods)
    if row and _write_rows(scope, before, shape, row, write):
        return
    radix = min(periods)
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
        _write_out(scope, quotients, kind, radix, write)
    else:
        return
    if rest:
        write_lanes(scope, rest, "lanes", after(ix.constant(quotients * radix), write))


def _write_out(scope: Scope, quotients: int, kind: str, radix: int, write: Write) -> None:
    """Write a loop over quotients with all digits of each one after the other."""
    with scope.loop(quotients, kind) as quotient:
        start = ix.multiply(quotient, radix)
        for digit in range(radix):
            write(ix.add(start, digit))
        scope.innermost.group_accesses()


def _row_of_choices(loop: Loop, periods: set[int]) -> int:
    """Return the length of short rows whose digits, all known, decide more than those of the least
    period: which part of a concatenation they are, or of one inside another; 0 if there are none.
    """
    short = [period for period in periods if period <= WRITTEN_OUT]
    longest = max(short, default=0)
    if any(longest % period for period in short):
        return 0
    return longest if len(short) > 1 or _chooses(loop) else 0


def _write_rows(
    scope: Scope, before: Written, shape: tuple[int, str], radix: int, write: Write
) -> bool:
    """Write the last loop again with the digits of whole rows written out; return False, with the
    loop as it was, if that is too much code."""
    (extent, kind), loop = shape, scope.last_statement
    assert isinstance(loop, Loop)
    quotients, rest = divmod(extent, radix)
    if quotients < _LEAST or len(loop.body) > _MOST_OF_ROW:
        return False
    scope.forget_after(before)
    _write_out(scope, quotients, kind, radix, write)
    written = scope.last_statement
    assert isinstance(written, Loop)
    if len(without_dead_lets(written.body)) > _MOST_OF_ROW:
        scope.forget_after(before)
        with scope.loop(extent, kind) as lane:
            write(lane)
        return False
    if rest:
        write_lanes(scope, rest, "lanes", after(ix.constant(quotients * radix), write))
    return True


def _kinds(kind: str, quotients: int) -> tuple[str, str]:
    """Return the kinds of the loop over quotients and of the loop inside it.

    Threads share the outer one if it has iterations enough for all.
    """
    if kind == "lanes":
        return "serial", "lanes"
    return ("parallel", "lanes") if quotients >= _SHARED else ("serial", kind)


def _periods_of(loop: Loop, extent: int) -> set[int]:
    """Return after how many iterations quotients and remainders of a loop's variable change or
    repeat: all such numbers below the extent, none if there is one that is not."""
    if any(isinstance(statement, Loop) for statement in loop.body):
        return set()
    # An index that is divided for its parts and put together again is divided by nothing that is
    # left in the end.
    body = without_dead_lets(loop.body)
    known: dict[str, int] = {loop.variable.name: 1}
    periods = {p for s in body for p in _periods(s, known)}
    is_whole = ix.value_of(loop.extent) == extent
    return periods if is_whole and min(periods, default=extent) < extent else set()


def divides(loop: Loop, extent: int) -> bool:
    """Return whether an index of a loop is divided, but to go round its ``extent`` or more."""
    return any(
        isinstance(part, Apply)
        and part.type is INDEX
        and part.operation in ("divide", "modulo")
        and loop.variable.name in variables(part)
        and (part.operation == "divide" or (ix.value_of(part.operands[1]) or 0) < extent)
        for part in parts(without_dead_lets(loop.body))
    )


def has_quotients(loop: Loop) -> bool:
    """Return whether a loop's variable is divided for what the loop computes."""
    known: dict[str, int] = {loop.variable.name: 1}
    return any(True for s in without_dead_lets(loop.body) for _ in _periods(s, known))


def _chooses(loop: Loop) -> bool:
    """Return whether a comparison depends on a quotient of a loop's variable."""
    known: dict[str, int] = {loop.variable.name: 1}
    quotients = {s.variable.name for s in loop.body if {*_periods(s, known)} and isinstance(s, Let)}
    return any(
        isinstance(part, Apply)
        and part.operation.startswith("compare-")
        and not (quotients.isdisjoint(variables(part)) and not {*_divided(part, known)})
        for part in parts(loop.body)
    )


def _periods(statement: Statement, known: dict[str, int]) -> Iterator[int]:
    """Yield the periods of divisions in a statement; add that of a quotient's name to ``known``,
    which has those of variables."""
    for expression in expressions(statement):
        yield from _divided(expression, known)
    if isinstance(statement, Let) and (period := _period(statement.value, known)):
        known[statement.variable.name] = period


def _divided(expression: Expr, known: Mapping[str, int]) -> Iterator[int]:
    """Yield the periods of the quotients and remainders in an expression."""
    for part in subexpressions(expression):
        if isinstance(part, Apply) and part.operation in ("divide", "modulo"):
            yield from _whole_periods(part, known)


def _whole_periods(division: Apply, known: Mapping[str, int]) -> Iterator[int]:
    """Yield, for each lane or quotient that is divided, how many iterations share its quotient."""
    # (4 i + j) / 12 has another value at every third i; (5 i + j) / 12 has runs of two and of
    # three, which no digits of i give. (i / 3) / 3 has another value at every ninth.
    divisor = ix.value_of(division.operands[1]) if division.type is INDEX else None
    for atom, factor in ix.coefficients(division.operands[0]).items() if divisor else ():
        period = _period(atom, known)
        if period and divisor and divisor % factor == 0 and divisor > abs(factor):
            yield divisor // abs(factor) * period


def _period(value: Expr, known: Mapping[str, int]) -> int:
    """Return how many iterations share a quotient, or a variable that is known; 0 for others."""
    if isinstance(value, Variable):
        return known.get(value.name, 0)
    if isinstance(value, Apply) and value.operation == "divide":
        return max(_whole_periods(value, known), default=0)
    return 0
