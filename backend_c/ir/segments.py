"""Split loops in lanes where an index leaves its bounds (index-set splitting).

What is read at the edge of an array, as of a stencil or of padding, is a choice at each element:
a clamped index, one that goes round (a remainder), and a condition that says whether the element
counts. None has an effect in most of a row. So a loop is looked at when it is written, and where a
clamp, a remainder or a condition changes inside of it, it is written again in segments: bounds of
its variable then fold them away. Of many segments, as a wide stencil has them at both ends, the
widest is written in lanes, and what is before and after it element by element.

    for i in 0 … 127: r[i] = 0 <= i - 1 ? a[clamp(0, i - 1, 126)] : 0

    r[0] = 0;  for i in 0 … 126: r[i + 1] = a[i]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from backend_c.ir import index as ix
from backend_c.ir.block import Written
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Expr,
    Loop,
    Statement,
    Variable,
    expressions,
    subexpressions,
)
from backend_c.ir.scope import Scope
from hlo.passes.index_paths import DIVIDED

_MOST = 5  # segments of a loop
_ENDS = 3  # segments, where what is before and after the widest is not split
_MOST_STATEMENTS = 400  # of all segments: they take the compiler time

Write = Callable[[Expr], None]


def after(start: Expr, write: Write) -> Write:
    """Return a writer of the elements from ``start`` on."""
    return lambda lane: write(ix.add(start, lane))


def write_segments(
    scope: Scope,
    extent: int,
    kind: str,
    write: Write,
    improve: Callable[[Written, int, Write], None],
) -> None:
    """Write a loop of any kind, split into segments if that removes clamps and conditions.

    ``improve`` is called after each segment with what was written before it, its extent and the
    writer of its elements.
    """
    before = scope.written()
    with scope.loop(extent, kind) as lane:
        write(lane)
    segments = _segments(scope, extent)
    if len(segments) == 1:
        improve(before, extent, write)
        return
    scope.forget_after(before)
    for first, end, is_folded in segments:
        before, of_segment = scope.written(), after(ix.constant(first), write)
        with scope.loop(end - first, kind if is_folded else "serial") as lane:
            of_segment(lane)
        if is_folded:
            improve(before, end - first, of_segment)


def _segments(scope: Scope, extent: int) -> list[tuple[int, int, bool]]:
    """Return the segments [first, end) of the loop written last, in order, and whether nothing
    changes inside of each; one if splitting does not pay."""
    loop = scope.last_statement
    if not scope.settings.has_lanes or not isinstance(loop, Loop):
        return [(0, extent, True)]
    return segments_of(loop, extent)


def segments_of(loop: Loop, extent: int) -> list[tuple[int, int, bool]]:
    """Return the segments [first, end) of a loop as :func:`write_segments` has them."""
    whole = [(0, extent, True)]
    if extent < DIVIDED or any(isinstance(s, Loop) for s in loop.body):
        return whole
    found = {p for s in loop.body for p in _changes(s, loop.variable) if 0 < p < extent}
    most = min(_MOST, _MOST_STATEMENTS // max(len(loop.body), 1))
    segments = [(first, end, True) for first, end in pairwise([0, *sorted(found), extent])]
    if len(segments) <= most:
        return segments
    first, end, _ = max(segments, key=lambda s: s[1] - s[0])
    if most < _ENDS or 2 * (end - first) < extent:
        return whole
    ends = [(0, first, False), (first, end, True), (end, extent, False)]
    return [segment for segment in ends if segment[0] < segment[1]]


def _changes(statement: Statement, lane: Variable) -> Iterator[int]:
    """Yield the values of a loop's variable at which a clamp, a remainder or a condition
    changes."""
    for expression in expressions(statement):
        for part in subexpressions(expression):
            if not isinstance(part, Apply):
                continue
            if part.operation in ("clamp", "within"):
                yield from _crossed(part, lane)
            elif part.operation == "modulo" and part.type is INDEX:
                yield from _rounds(part, lane)


def _rounds(remainder: Apply, lane: Variable) -> Iterator[int]:
    """Yield the loop variable's value from which on an index has gone round. One that goes round
    more often has digits (:mod:`backend_c.ir.digits`)."""
    value, divisor = remainder.operands[0], ix.value_of(remainder.operands[1])
    if not divisor or divisor <= lane.high - lane.low or ix.coefficients(value) != {lane: 1}:
        return
    least, greatest = ix.bounds(value)
    if least // divisor < greatest // divisor:
        yield lane.low + greatest // divisor * divisor - least


def _crossed(choice: Apply, lane: Variable) -> Iterator[int]:
    """Yield the loop variable's values at which a clamped index enters and has left its bounds."""
    if choice.operation == "clamp":
        least, value, greatest = choice.operands
    else:
        value, least, greatest = choice.operands
    low, high = ix.value_of(least), ix.value_of(greatest)
    coefficients = ix.coefficients(value)
    step = coefficients.get(lane, 0)
    if low is None or high is None or not step or len(coefficients) > 1:
        return
    # Of rising values lane * step + offset; falling ones are negative rising ones.
    at_first = ix.bounds(value)[0 if step > 0 else 1]
    if step < 0:
        at_first, low, high, step = -at_first, -high, -low, -step
    offset = at_first - lane.low * step
    yield from (-((offset - low) // step), (high - offset) // step + 1)
