"""Distribute loops in lanes around operations on whole blocks (strip mining and loop distribution).

A loop is strip-mined into blocks of elements, and each block becomes several loops one after the
other, with a *point* between two of them: an operation on a block that does not belong into a loop
in lanes.

    for block:  for lane: x[lane] = …;  point(x, y, lanes);  for lane: … = y[lane]

Values that are live from one of the inner loops to a later one are in arrays, which the first level
of the cache holds. What is a point is for subclasses to say:
:mod:`backend_c.render.distributed_functions`, :mod:`backend_c.render.gathered_elements`,
:mod:`backend_c.render.half_precision`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Assign,
    Expr,
    Let,
    Load,
    Loop,
    Statement,
    Store,
    Variable,
    expressions,
    subexpressions,
)
from backend_c.ir.loop_rewriting import with_loops, with_operands
from backend_c.render.loop_stages import Item, Lanes, Point, Stages, changed_by
from hlo.types import ElementType

_LANES = ("lanes", "parallel lanes")


class Points(ABC):
    """Extract the points from the statements of one loop, into ``items`` in order."""

    def __init__(self, loop: Loop, number: str) -> None:
        self.loop, self._number = loop, number
        self.items: list[Item] = []
        self._known: dict[Expr, Expr] = {}

    @abstractmethod
    def taken(self, value: Apply | Load) -> Expr:
        """Replace an operation or a load by the result of a new point; unchanged if it is none."""

    def stored(self, store: Store) -> Store | Point | None:
        """Replace a store by a point; return it unchanged if it is none, and None if a later one
        stores its value."""
        return store

    def result(self, element_type: ElementType) -> Variable:
        """Return a new variable for a point's result."""
        return Variable(element_type, f"y{self._number}x{len(self._known)}")

    def found(self) -> list[Item]:
        """Return statements and points in order, each point before the first use of its result."""
        for statement in self.loop.body:
            assert isinstance(statement, Let | Store | Assign)
            item = statement._replace(value=self._without(statement.value))
            kept = self.stored(item) if isinstance(item, Store) else item
            self.items += [] if kept is None else [kept]
        return self.items

    def _without(self, value: Expr) -> Expr:
        """Replace the points in an expression by variables, innermost first."""
        if not isinstance(value, Apply | Load):
            return value
        if value not in self._known:
            simple = with_operands(value, self._without)
            assert isinstance(simple, Apply | Load)
            self._known[value] = self.taken(simple)
        return self._known[value]


class Distribution(ABC):
    """Rewrite the loops of one kernel; ``letter`` and a counter make new names unique.

    ``block_size`` is in elements: dozens of arrays of 64 stay in the cache.
    """

    letter: str
    block_size = 64

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    @abstractmethod
    def points(self, loop: Loop, number: str) -> Points:
        """Return the extractor of a loop's points."""

    def block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rewrite statements."""
        return with_loops(body, self._loop)

    def _loop(self, loop: Loop) -> Sequence[Statement]:
        if loop.kind not in _LANES or not _is_straight(loop):
            return (loop._replace(body=self.block(loop.body)),)
        number = f"{self.letter}{next(self._numbers)}"
        items = self.points(loop, number).found()
        if not any(isinstance(item, Point) for item in items):
            return (loop,)
        _, most = ix.bounds(loop.extent)
        if most <= self.block_size:
            stages = Stages(items, loop, number)
            return stages.statements(loop.variable, Lanes(ix.constant(0), loop.extent), most)
        return (_in_blocks(loop, items, number, self.block_size),)


def _in_blocks(loop: Loop, items: Sequence[Item], number: str, most: int) -> Loop:
    """Strip-mine a loop into blocks of ``most`` lanes or fewer, and distribute each."""
    blocks = ix.divide(ix.add(loop.extent, most - 1), most)
    block = Variable(INDEX, f"p{number}", 0, ix.bounds(blocks)[1] - 1)
    lane = Variable(INDEX, f"q{number}", 0, most - 1)
    start = ix.multiply(block, most)
    rest = ix.subtract(loop.extent, start)
    size = Variable(INDEX, f"e{number}", 0, most)
    place = Let(loop.variable, ix.add(start, lane))
    body = [
        Let(size, ix.clamp(0, rest, most)),
        *Stages([place, *items], loop, number).statements(lane, Lanes(start, size), most),
    ]
    is_parallel = loop.kind == "parallel lanes"
    # The sums of a loop in lanes belong to one thread, or OpenMP splits them over the threads.
    sums = loop.sums if is_parallel else ()
    kind = "parallel" if is_parallel else "serial"
    return Loop(block, blocks, kind, tuple(body), sums, loop.operator)


def _is_straight(loop: Loop) -> bool:
    """Return whether a loop may be distributed: straight-line lets, stores and sums without
    conflicts.

    No other statement may read what one stores, but for the same element before it is stored, an
    order that stages keep.
    """
    if not all(isinstance(s, Let | Store | Assign) for s in loop.body):
        return False
    assigned = [s.variable for s in loop.body if isinstance(s, Assign)]
    if len({*assigned}) < len(assigned) or not {*assigned} <= {*loop.sums}:
        return False
    changed: dict[str, list[int]] = {}
    for n, statement in enumerate(loop.body):
        if isinstance(statement, Store | Assign):
            changed.setdefault(changed_by(statement), []).append(n)
    return all(
        place == n or (place > n and _is_stored_at(offset, loop.body[place]))
        for n, statement in enumerate(loop.body)
        for name, offset in _read_places(statement)
        for place in changed.get(name, ())
    )


def _is_stored_at(offset: Expr | None, statement: Statement) -> bool:
    """Return whether a statement stores to an offset."""
    return offset is not None and isinstance(statement, Store) and statement.offset == offset


def _read_places(statement: Statement) -> Iterator[tuple[str, Expr | None]]:
    """Yield the names of arrays (with the offset) and variables that a statement reads; with offset
    None where it binds an index, which is recomputed in each stage that uses it."""
    is_index = isinstance(statement, Let) and statement.variable.type is INDEX
    for expression in expressions(statement):
        for part in subexpressions(expression):
            if isinstance(part, Load):
                yield part.array.name, None if is_index else part.offset
            elif isinstance(part, Variable):
                yield part.name, None
