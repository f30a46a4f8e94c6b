"""Partition the statements of a loop into stages around operations on whole blocks.

:mod:`backend_c.render.loop_distribution` says which loops, and what for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from backend_c.ir.loop_ir import (
    INDEX,
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
from backend_c.render.c_types import is_narrow
from hlo.types import F32, ElementType

_GROUP = 8  # elements that a point may compute at a time: arrays have whole groups


class Lanes(NamedTuple):
    """Describe a block: the loop variable's value in its first lane, and its number of lanes."""

    start: Expr
    size: Expr


class Point(ABC):
    """Represent an operation on a block: arrays of arguments to arrays of results, or to memory.

    ``memory`` is the array of the loop that it reads, or changes if it has no results.
    """

    memory: Array | None
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


@dataclass(slots=True)
class Stages:
    """Partition the items of a loop into stages, separated by points, and write the distributed
    loop.

    A point belongs to the stage in which its arguments are known; its result is known in the next.
    A value is computed in the latest stage that is early enough for its uses, so that few are live
    across stages; an index is recomputed wherever it is used. What reads an array comes no later
    than what changes it: a stage runs its own items in order, then its points.
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
            last = max([time + 1, *reads[-1:]])
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
        """Assign each item its stage: the earliest, but a let's is the earliest of its uses and of
        the stores to what it loads."""
        known: dict[str, int] = {}
        read: dict[str, int] = {}  # the first stage that may change an array by a store
        last = 0
        for n, item in enumerate(self.items):
            stage = max((known.get(name, 0) for name in _names(item)), default=0)
            for variable in _results(item):
                self._bound[variable] = n
                known[variable.name] = stage + isinstance(item, Point)
            if not _results(item):
                # Stores keep their order.
                stage = last = max(stage, last, read.get(changed_by(item), 0))
            for name in _loaded(item):
                read[name] = max(read.get(name, 0), stage)
            if isinstance(item, Point) and item.memory is not None and item.results:
                # Points run behind the stores of their stage.
                read[item.memory.name] = max(read.get(item.memory.name, 0), stage + 1)
            self._placed.append(stage)
        before: dict[str, int] = {}  # the first stage that uses a variable, or changes an array
        for n in range(len(self.items) - 1, -1, -1):
            item = self.items[n]
            if isinstance(item, Let):
                names = item.variable.name, *_loaded(item)
                self._placed[n] = min(
                    (before[name] for name in names if name in before), default=self._placed[n]
                )
            for name in _names(item) if _results(item) else (*_names(item), changed_by(item)):
                before[name] = min(before.get(name, self._placed[n]), self._placed[n])

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


def _loaded(item: Item) -> Iterator[str]:
    """Yield the names of the arrays that an item loads from in its loop."""
    used = item.arguments if isinstance(item, Point) else expressions(item)
    loads = (part for one in used for part in subexpressions(one) if isinstance(part, Load))
    return (load.array.name for load in loads)


def _held_type(element_type: ElementType) -> ElementType:
    """Return the type in which an array holds values as registers do: narrow floats as f32."""
    return F32 if is_narrow(element_type) else element_type


def changed_by(item: Item) -> str:
    """Return the name of the array or variable that a store, a sum or a point changes."""
    match item:
        case Store(array, _, _) | Point(memory=Array() as array):
            return array.name
        case Assign(variable, _):
            return variable.name
    raise AssertionError(item)
