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
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Assign,
    Expr,
    Let,
    Load,
    LocalArray,
    Loop,
    Statement,
    Store,
    Variable,
    expressions,
    subexpressions,
    variables,
)
from backend_c.ir.loop_rewriting import with_loops, with_operands
from backend_c.render.c_types import is_narrow
from hlo.types import F32, ElementType

_GROUP = 8  # elements that a point may compute at a time: arrays have whole groups
_LANES = ("lanes", "parallel lanes")


class Lanes(NamedTuple):
    """Describe a block: the loop variable's value in its first lane, and its number of lanes."""

    start: Expr
    size: Expr


class Point(ABC):
    """Represent an operation on a block: arrays of arguments to arrays of results, or to memory."""

    arguments: tuple[Expr, ...]
    results: tuple[Variable, ...]

    @property
    @abstractmethod
    def argument_type(self) -> ElementType:
        """The element type of the arrays of arguments."""

    def result_type(self, result: Variable) -> ElementType:
        """Return the element type of the array of a result."""
        return _held_type(result.type)

    @abstractmethod
    def statement(
        self, arguments: Sequence[Array], results: Sequence[Array], lanes: Lanes
    ) -> Statement:
        """Return the statement that runs the operation for the lanes of a block."""


Item = Let | Store | Assign | Point


class Points(ABC):
    """Extract the points from the statements of one loop, into ``items`` in order."""

    def __init__(self, loop: Loop, number: str) -> None:
        self.loop, self._number = loop, number
        self.items: list[Item] = []
        self._known: dict[Expr, Expr] = {}

    @abstractmethod
    def taken(self, value: Apply | Load) -> Expr:
        """Replace an operation or a load by the result of a new point; unchanged if it is none."""

    def stored(self, store: Store) -> Store | Point:
        """Replace a store by a point; return it unchanged if it is none."""
        return store

    def result(self, element_type: ElementType) -> Variable:
        """Return a new variable for a point's result."""
        return Variable(element_type, f"y{self._number}x{len(self._known)}")

    def found(self) -> list[Item]:
        """Return statements and points in order, each point before the first use of its result."""
        for statement in self.loop.body:
            assert isinstance(statement, Let | Store | Assign)
            item = statement._replace(value=self._without(statement.value))
            self.items.append(self.stored(item) if isinstance(item, Store) else item)
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
            stages = _Stages(items, loop, number)
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
        *_Stages([place, *items], loop, number).statements(lane, Lanes(start, size), most),
    ]
    is_parallel = loop.kind == "parallel lanes"
    # The sums of a loop in lanes belong to one thread, or OpenMP splits them over the threads.
    sums = loop.sums if is_parallel else ()
    kind = "parallel" if is_parallel else "serial"
    return Loop(block, blocks, kind, tuple(body), sums, loop.operator)


def _is_straight(loop: Loop) -> bool:
    """Return whether a loop may be distributed: straight-line lets, stores and sums without
    conflicts.

    No other statement may read what one stores, but for the same element before it is stored.
    """
    if not all(isinstance(s, Let | Store | Assign) for s in loop.body):
        return False
    assigned = [s.variable for s in loop.body if isinstance(s, Assign)]
    if len({*assigned}) < len(assigned) or not {*assigned} <= {*loop.sums}:
        return False
    changed = {_changed(s): n for n, s in enumerate(loop.body) if not isinstance(s, Let)}
    for n, statement in enumerate(loop.body):
        for name, offset in read_places(statement):
            place = changed.get(name, n)
            if place < n or (place > n and not _is_stored_at(offset, loop.body[place])):
                return False
    return True


def _changed(statement: Statement) -> str:
    """Return the name of the array or variable that a statement changes."""
    assert isinstance(statement, Store | Assign)
    return statement.array.name if isinstance(statement, Store) else statement.variable.name


def _is_stored_at(offset: Expr | None, statement: Statement) -> bool:
    """Return whether a statement stores to an offset."""
    return offset is not None and isinstance(statement, Store) and statement.offset == offset


def read_places(statement: Statement) -> Iterator[tuple[str, Expr | None]]:
    """Yield the names of arrays (with the offset) and variables that a statement reads; with offset
    None where it binds an index, which is recomputed in each stage that uses it."""
    is_index = isinstance(statement, Let) and statement.variable.type is INDEX
    for expression in expressions(statement):
        for part in subexpressions(expression):
            if isinstance(part, Load):
                yield part.array.name, None if is_index else part.offset
            elif isinstance(part, Variable):
                yield part.name, None


@dataclass(slots=True)
class _Stages:
    """Partition the items of a loop into stages, separated by points, and write the distributed
    loop.

    A point belongs to the stage in which its arguments are known; its result is known in the next.
    A value is computed in the latest stage that is early enough for its uses, so that few are live
    across stages; an index is recomputed wherever it is used.
    """

    items: Sequence[Item]
    loop: Loop
    number: str
    _placed: list[int] = field(default_factory=list)  # the stage of each item
    _arrays: dict[str, Array] = field(default_factory=dict)  # of values that cross, by name
    _bound: dict[Variable, int] = field(default_factory=dict)  # the item that binds a variable

    def statements(self, lane: Variable, lanes: Lanes, most: int) -> list[Statement]:
        """Return arrays, loops over ``lane`` and points, for blocks of at most ``most`` lanes."""
        self._place()
        elements = max(-(-most // _GROUP), 1) * _GROUP
        needed = [self._needed(stage) for stage in range(max(self._placed) + 1)]
        arrays = self._of_values(needed, elements)
        given = self._of_arguments(elements)
        unique = dict.fromkeys([*arrays, *given.values()])
        written: list[Statement] = [LocalArray(array) for array in unique]
        for stage, names in enumerate(needed):
            written += self._stage(stage, names, given, lane, lanes)
        return written

    def _of_values(self, needed: Sequence[AbstractSet[str]], elements: int) -> list[Array]:
        """Allocate arrays for values that are live across stages, reused after their last reads.

        Stage s reads values at time 2·s, and its points write theirs at 2·s + 1.
        """
        crossing = [
            (2 * self._placed[item] + isinstance(self.items[item], Point), variable, item)
            for variable, item in self._bound.items()
            if self._crosses(item, needed, variable.name)
        ]
        arrays: list[Array] = []
        read_last: list[int] = []  # the time at which the value in each array is read last
        for time, variable, item in sorted(crossing, key=lambda one: one[0]):
            element_type = self._type(item, variable)
            reads = [2 * stage for stage, names in enumerate(needed) if variable.name in names]
            # A result that no stage reads is written, too: it needs an array at that time.
            last = max(time + 1, *reads[-1:])
            for n, array in enumerate(arrays):
                if array.element_type is element_type and read_last[n] < time:
                    break
            else:
                n = len(arrays)
                name = f"d{self.number}x{n}"
                arrays.append(Array(name, element_type, elements, True, True))
                read_last.append(0)
            read_last[n] = last
            self._arrays[variable.name] = arrays[n]
        return arrays

    def _of_arguments(self, elements: int) -> dict[tuple[int, int], Array]:
        """Return the array of each argument of a point by (item, position); stages share arrays."""
        taken = Counter[tuple[int, ElementType]]()
        given: dict[tuple[int, int], Array] = {}
        for n, item in enumerate(self.items):
            for k in range(len(item.arguments) if isinstance(item, Point) else 0):
                assert isinstance(item, Point)
                element_type = item.argument_type
                place = self._placed[n], element_type
                name = f"x{self.number}x{element_type.name}x{taken[place]}"
                given[n, k] = Array(name, element_type, elements, True, True)
                taken[place] += 1
        return given

    def _place(self) -> None:
        """Assign each item its stage: the earliest, but a let's is the earliest of its uses."""
        known: dict[str, int] = {}
        last = 0
        for n, item in enumerate(self.items):
            stage = max((known.get(name, 0) for name in _names(item)), default=0)
            for variable in _results(item):
                self._bound[variable] = n
                known[variable.name] = stage + isinstance(item, Point)
            if not _results(item):
                stage = last = max(stage, last)  # stores keep their order
            self._placed.append(stage)
        uses: dict[str, int] = {}
        for n in range(len(self.items) - 1, -1, -1):
            item = self.items[n]
            if isinstance(item, Let):
                self._placed[n] = uses.get(item.variable.name, self._placed[n])
            for name in _names(item):
                uses[name] = min(uses.get(name, self._placed[n]), self._placed[n])

    def _type(self, item: int, variable: Variable) -> ElementType:
        """Return the element type of the array of a value that is live across stages."""
        bound = self.items[item]
        return (
            bound.result_type(variable) if isinstance(bound, Point) else _held_type(variable.type)
        )

    def _is_everywhere(self, item: int) -> bool:
        """Return whether an item is an index, rematerialised in every stage that needs it."""
        bound = self.items[item]
        return isinstance(bound, Let) and bound.variable.type is INDEX

    def _needed(self, stage: int) -> set[str]:
        """Return the names that the items of a stage use, directly or through indices."""
        names = set[str]()
        for n in range(len(self.items) - 1, -1, -1):
            item = self.items[n]
            is_used = any(variable.name in names for variable in _results(item))
            if is_used if self._is_everywhere(n) else self._placed[n] == stage:
                names.update(_names(item))
        return names

    def _crosses(self, item: int, needed: Sequence[AbstractSet[str]], name: str) -> bool:
        """Return whether a value needs an array: a point's result, or live after its stage."""
        if self._is_everywhere(item):
            return False
        is_result = isinstance(self.items[item], Point)
        return is_result or any(name in names for names in needed[self._placed[item] + 1 :])

    def _stage(
        self,
        stage: int,
        needed: set[str],
        given: Mapping[tuple[int, int], Array],
        lane: Variable,
        lanes: Lanes,
    ) -> Iterator[Statement]:
        """Yield the loop of a stage and the points after it."""
        body: list[Statement] = []
        points: list[Statement] = []
        for n, item in enumerate(self.items):
            here = self._placed[n] == stage
            if self._is_everywhere(n):
                here = _results(item)[0].name in needed
            if not (here and isinstance(item, Let)):
                known = [v for v in _results(item) if v.name in self._arrays and v.name in needed]
                body += [Let(v, Load(self._arrays[v.name], lane)) for v in known]
            if not here:
                continue
            if not isinstance(item, Point):
                body.append(item)
                kept = [v for v in _results(item) if v.name in self._arrays]
                body += [Store(self._arrays[v.name], lane, v) for v in kept]
                continue
            own = [given[n, k] for k in range(len(item.arguments))]
            body += [Store(a, lane, e) for a, e in zip(own, item.arguments, strict=True)]
            results = [self._arrays[variable.name] for variable in item.results]
            points.append(item.statement(own, results, lanes))
        assigned = {s.variable for s in body if isinstance(s, Assign)}
        sums = tuple(one for one in self.loop.sums if one in assigned)
        if body:
            yield Loop(lane, lanes.size, "lanes", tuple(body), sums, self.loop.operator)
        yield from points


def _results(item: Item) -> tuple[Variable, ...]:
    """Return the variables that an item binds."""
    match item:
        case Let(variable, _):
            return (variable,)
        case Point():
            return item.results
        case _:
            return ()


def _names(item: Item) -> Iterator[str]:
    """Yield the names of the variables that an item uses."""
    used = item.arguments if isinstance(item, Point) else expressions(item)
    return (name for expression in used for name in variables(expression))


def _held_type(element_type: ElementType) -> ElementType:
    """Return the type in which an array holds values as registers do: narrow floats as f32."""
    return F32 if is_narrow(element_type) else element_type
