"""Split loops that sum where an index leaves its bounds, as :mod:`backend_c.ir.segments` does maps.

A sum over what a rotation reads divides in every lane, and over padding it chooses. The loop is in
a finished kernel, and each segment is a copy of it with names of its own:

    for i in 0 … 49: m += a[(i + 1) % 50]

    for i in 0 … 48: m += a[i + 1];  m += a[0]
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import INDEX, Apply, Assign, Expr, Let, Loop, Statement, Variable
from backend_c.ir.loop_rewriting import with_blocks, with_expressions, with_operands
from backend_c.ir.segments import segments_of


def with_segmented_sums(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Split the innermost loops of lets and sums in which a clamp, a remainder or a condition of
    an index changes."""
    found: list[Statement] = []
    for statement in body:
        if isinstance(statement, Loop) and _sums_only(statement):
            found += _segmented(statement)
        else:
            found.append(with_blocks(statement, with_segmented_sums))
    return tuple(found)


def _sums_only(loop: Loop) -> bool:
    """Return whether a loop of one thread has lets and sums only, and sums anything."""
    is_straight = all(isinstance(statement, Let | Assign) for statement in loop.body)
    return is_straight and bool(loop.sums) and loop.kind in ("lanes", "serial")


def _segmented(loop: Loop) -> list[Statement]:
    """Return the segments of a loop in order; the loop itself if it is not split."""
    segments = segments_of(loop, ix.value_of(loop.extent) or 0)
    if len(segments) < 2:
        return [loop]
    # The widest keeps the names, by which kernels are explained.
    widest = max(end - first for first, end, _ in segments)
    found: list[Statement] = []
    for first, end, is_folded in segments:
        ending = "" if end - first == widest else f"_at{first}"
        widest = 0 if not ending else widest
        kind = loop.kind if is_folded else "serial"
        found += _Segment(loop.variable, first, end - first, ending).of(loop, kind)
    return found


class _Segment:
    """Copy the statements of a loop for the ``extent`` values of its variable from ``first`` on."""

    def __init__(self, variable: Variable, first: int, extent: int, ending: str) -> None:
        self._extent, self._ending = extent, ending
        self._variable = variable._replace(name=variable.name + ending, low=0, high=extent - 1)
        place = ix.constant(0) if extent == 1 else self._variable
        self._values: dict[str, Expr] = {variable.name: ix.add(place, first)}

    def of(self, loop: Loop, kind: str) -> list[Statement]:
        """Return the segment of a loop: one of one element is no loop."""
        body = tuple(s for statement in loop.body if (s := self._statement(statement)))
        if self._extent == 1:
            return list(body)
        extent = ix.constant(self._extent)
        return [loop._replace(variable=self._variable, extent=extent, kind=kind, body=body)]

    def _statement(self, statement: Statement) -> Statement | None:
        """Return the copy of a statement; None of a let whose value stands for its variable."""
        statement = with_expressions(statement, self._expression)
        if not isinstance(statement, Let):
            return statement
        variable, value = statement
        low, high = variable.low, variable.high
        if variable.type is INDEX:
            if all(isinstance(atom, Variable) for atom in ix.coefficients(value)):
                self._values[variable.name] = value
                return None
            least, most = ix.bounds(value)
            low, high = max(low, least), min(high, most)
        own = variable._replace(name=variable.name + self._ending, low=low, high=high)
        self._values[variable.name] = own
        return statement._replace(variable=own)

    def _expression(self, value: Expr) -> Expr:
        """Return the copy of an expression, with its indices folded."""
        if isinstance(value, Variable):
            return self._values.get(value.name, value)
        again = with_operands(value, self._expression)
        if isinstance(again, Apply) and again.type is INDEX:
            return ix.refolded(again)
        return again
