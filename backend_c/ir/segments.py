"""Split loops in lanes where an index leaves its bounds (index-set splitting).

What is read at the edge of an array, as of a stencil or of padding, is a choice at each element:
a clamped index, and a condition that says whether the element counts. Neither has an effect in most
of a row. So a loop is looked at when it is written, and where a clamp or a condition changes inside
of it, it is written again in segments: bounds of its variable then fold both away.

    for i in 0 … 127: r[i] = 0 <= i - 1 ? a[clamp(0, i - 1, 126)] : 0

    r[0] = 0;  for i in 0 … 126: r[i + 1] = a[i]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from backend_c.ir import index as ix
from backend_c.ir.block import Written
from backend_c.ir.loop_ir import (
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
    places = _places(scope, extent)
    if not places:
        improve(before, extent, write)
        return
    scope.forget_after(before)
    for first, end in pairwise([0, *places, extent]):
        before, of_segment = scope.written(), after(ix.constant(first), write)
        with scope.loop(end - first, kind) as lane:
            of_segment(lane)
        improve(before, end - first, of_segment)


def _places(scope: Scope, extent: int) -> list[int]:
    """Return the split points of the loop written last, in order; none if splitting does not
    pay."""
    loop = scope.last_statement
    if extent < DIVIDED or not scope.settings.has_lanes:
        return []
    if not isinstance(loop, Loop) or any(isinstance(s, Loop) for s in loop.body):
        return []
    found = {p for s in loop.body for p in _changes(s, loop.variable) if 0 < p < extent}
    count = len(found) + 1
    is_short = count <= _MOST and count * len(loop.body) <= _MOST_STATEMENTS
    return sorted(found) if is_short else []


def _changes(statement: Statement, lane: Variable) -> Iterator[int]:
    """Yield the values of a loop's variable at which a clamp or a condition changes."""
    for expression in expressions(statement):
        for part in subexpressions(expression):
            if isinstance(part, Apply) and part.operation in ("clamp", "within"):
                yield from _crossed(part, lane)


def _crossed(choice: Apply, lane: Variable) -> Iterator[int]:
    """Yield the loop variable's values at which a clamped index enters and has left its bounds."""
    if choice.operation == "clamp":
        least, value, greatest = choice.operands
    else:
        value, least, greatest = choice.operands
    low, high = ix.value_of(least), ix.value_of(greatest)
    if low is None or high is None or ix.coefficients(value) != {lane: 1}:
        return
    # The value is lane + offset, whose least is at the loop's first lane.
    offset = ix.bounds(value)[0] - lane.low
    yield from (low - offset, high + 1 - offset)
