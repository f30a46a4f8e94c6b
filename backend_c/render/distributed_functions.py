"""Compute long elementary functions out of their loops, a block of elements at a time.

Functions of f64 are sequences of a thousand operations. A compiler that has several of them in one
loop runs out of registers, and takes minutes to find that out. So a loop in lanes is distributed
(loop distribution, strip-mined) over the calls in it:

    for block:  for lane: x[lane] = …;  hlo_log_f64_lanes(x, y, lanes);  for lane: … = y[lane]

The values that cross from one of the inner loops to a later one are in arrays, which the first
level of the cache holds. The function itself is compiled once for a unit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Assign,
    Call,
    Expr,
    Kernel,
    Let,
    Load,
    LocalArray,
    Loop,
    Pointer,
    Statement,
    Store,
    Variable,
    expressions,
    subexpressions,
    variables,
)
from backend_c.ir.loop_rewriting import with_loops
from backend_c.ir.settings import Numerics
from backend_c.render.c_types import is_narrow
from backend_c.render.elementary_functions import is_long
from backend_c.render.operations import f64_function
from hlo.types import F32, F64, ElementType

_BLOCK = 64  # elements: dozens of arrays of them stay in the cache
_GROUP = 8  # elements that a function computes at a time: arrays have whole groups
_LANES = ("lanes", "parallel lanes")
_TOGETHER = frozenset(("cosine_f64", "sine_f64"))


def with_distributed_functions(kernel: Kernel) -> Kernel:
    """Return a kernel whose loops in lanes call long functions for blocks of elements."""
    return replace(kernel, body=_Loops(kernel.numerics).block(kernel.body))


@dataclass(frozen=True, slots=True)
class _Point:
    """Represent a call in the loop that is distributed: a result of each function."""

    functions: tuple[str, ...]
    arguments: tuple[Expr, ...]
    results: tuple[Variable, ...]

    @property
    def procedure(self) -> str:
        """Return the name of what computes the functions of many elements."""
        return f"hlo_{'_and_'.join(self.functions)}_lanes"


_Item = Let | Store | Assign | _Point


class _Loops:
    """Rewrite the loops of one kernel, with names that no other variable has."""

    def __init__(self, numerics: Numerics) -> None:
        self._numerics = numerics
        self._numbers = itertools.count(1)

    def block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rewrite statements."""
        return with_loops(body, self._loop)

    def _loop(self, loop: Loop) -> Sequence[Statement]:
        if loop.kind not in _LANES or not _is_straight(loop):
            return (loop._replace(body=self.block(loop.body)),)
        number = next(self._numbers)
        items = _Calls(self._numerics, number).items(loop.body)
        if not any(isinstance(item, _Point) for item in items):
            return (loop,)
        _, most = ix.bounds(loop.extent)
        if most <= _BLOCK:
            stages = _Stages(items, loop, number)
            return stages.statements(loop.variable, loop.extent, most)
        return (_in_blocks(loop, items, number),)


def _in_blocks(loop: Loop, items: Sequence[_Item], number: int) -> Loop:
    """Return a loop over blocks, in each of which the loops follow one another."""
    blocks = ix.divide(ix.add(loop.extent, _BLOCK - 1), _BLOCK)
    block = Variable(INDEX, f"p{number}", 0, ix.bounds(blocks)[1] - 1)
    lane = Variable(INDEX, f"q{number}", 0, _BLOCK - 1)
    start = ix.multiply(block, _BLOCK)
    rest = ix.subtract(loop.extent, start)
    size = Variable(INDEX, f"e{number}", 0, _BLOCK)
    place = Let(loop.variable, ix.add(start, lane))
    body = [
        Let(size, ix.clamp(0, rest, _BLOCK)),
        *_Stages([place, *items], loop, number).statements(lane, size, _BLOCK),
    ]
    is_parallel = loop.kind == "parallel lanes"
    # The sums of a loop in lanes belong to one thread, or OpenMP splits them over the threads.
    sums = loop.sums if is_parallel else ()
    kind = "parallel" if is_parallel else "serial"
    return Loop(block, blocks, kind, tuple(body), sums, loop.operator)


def _is_straight(loop: Loop) -> bool:
    """Return whether a loop only binds, stores and sums up, and may do so in several loops.

    What it stores to, no other statement of it reads.
    """
    if not all(isinstance(s, Let | Store | Assign) for s in loop.body):
        return False
    assigned = [s.variable for s in loop.body if isinstance(s, Assign)]
    if len({*assigned}) < len(assigned) or not {*assigned} <= {*loop.sums}:
        return False
    changed = {_changed(s): n for n, s in enumerate(loop.body) if not isinstance(s, Let)}
    return not any(changed.get(name, n) != n for n, s in enumerate(loop.body) for name in _read(s))


def _changed(statement: Statement) -> str:
    """Return the name of the array or variable that a statement changes."""
    assert isinstance(statement, Store | Assign)
    return statement.array.name if isinstance(statement, Store) else statement.variable.name


def _read(statement: Statement) -> Iterator[str]:
    """Yield the names of the arrays and variables that a statement reads."""
    for expression in expressions(statement):
        for part in subexpressions(expression):
            if isinstance(part, Load):
                yield part.array.name
            elif isinstance(part, Variable):
                yield part.name


class _Calls:
    """Take the calls of long functions out of the statements of a loop."""

    def __init__(self, numerics: Numerics, number: int) -> None:
        self._numerics, self._number = numerics, number
        self._items: list[_Item] = []
        self._known: dict[Apply, Expr] = {}

    def items(self, body: Sequence[Statement]) -> list[_Item]:
        """Return the statements in order, each after the calls that it needs."""
        for statement in body:
            assert isinstance(statement, Let | Store | Assign)
            value = self._without(statement.value)
            self._items.append(statement._replace(value=value))
        return self._items

    def _without(self, value: Expr) -> Expr:
        """Return an expression with variables in place of its calls, which become items."""
        match value:
            case Load(_, offset):
                return value._replace(offset=self._without(offset))
            case Apply():
                if value not in self._known:
                    operands = tuple(map(self._without, value.operands))
                    self._known[value] = self._result(value._replace(operands=operands))
                return self._known[value]
            case _:
                return value

    def _result(self, value: Apply) -> Expr:
        """Return what stands for an operation: itself if it is no long function."""
        types = [operand.type for operand in value.operands]
        name = f64_function(value.operation, types[0], self._numerics) if types else None
        if name is None or not is_long(name):
            return value
        given = tuple(o if o.type is F64 else Apply("widen", (o,), F64) for o in value.operands)
        result = Variable(F64, f"y{self._number}x{len(self._known)}")
        point = _Point((name,), given, (result,))
        places = [n for n, item in enumerate(self._items) if _is_shared(item, point)]
        for n in places:
            other = self._items[n]
            assert isinstance(other, _Point)
            both = zip((*other.functions, name), (*other.results, result), strict=True)
            functions, results = zip(*sorted(both), strict=True)
            self._items[n] = _Point(functions, given, results)
        self._items += [point] * (not places)
        return result if value.type is F64 else Apply("round", (result,), value.type)


def _is_shared(item: _Item, point: _Point) -> bool:
    """Return whether a call is that of sine for one of cosine, or the other way round: of the same
    argument, both take one reduction."""
    return (
        isinstance(item, _Point)
        and item.arguments == point.arguments
        and {*item.functions, *point.functions} == _TOGETHER
    )


@dataclass(slots=True)
class _Stages:
    """Divide the items of a loop into stages, between which functions are called.

    A call is in the stage in which its arguments are known; its result is known in the next one. A
    value is computed in the last stage that is early enough for its uses, so that few cross; an
    index is computed wherever it is used.
    """

    items: Sequence[_Item]
    loop: Loop
    number: int
    _placed: list[int] = field(default_factory=list)  # the stage of each item
    _arrays: dict[str, Array] = field(default_factory=dict)  # of values that cross, by name
    _bound: dict[Variable, int] = field(default_factory=dict)  # the item that binds a variable

    def statements(self, lane: Variable, size: Expr, most: int) -> list[Statement]:
        """Return arrays, loops and calls; ``lane`` is the variable of ``size`` up to ``most``."""
        self._place()
        elements = max(-(-most // _GROUP), 1) * _GROUP
        needed = [self._needed(stage) for stage in range(max(self._placed) + 1)]
        arrays: list[Array] = []
        for variable, item in self._bound.items():
            if self._crosses(item, needed, variable.name):
                name = f"d{self.number}x{len(arrays)}"
                arrays.append(Array(name, _held_type(variable.type), elements, True, True))
                self._arrays[variable.name] = arrays[-1]
        given = {
            (n, k): Array(f"x{self.number}x{n}x{k}", F64, elements, True, True)
            for n, item in enumerate(self.items)
            if isinstance(item, _Point)
            for k in range(len(item.arguments))
        }
        written: list[Statement] = [LocalArray(array) for array in (*arrays, *given.values())]
        for stage, names in enumerate(needed):
            written += self._stage(stage, names, given, lane, size)
        return written

    def _place(self) -> None:
        """Give each item its stage."""
        known: dict[str, int] = {}
        last = 0
        for n, item in enumerate(self.items):
            stage = max((known.get(name, 0) for name in _names(item)), default=0)
            for variable in _results(item):
                self._bound[variable] = n
                known[variable.name] = stage + isinstance(item, _Point)
            if isinstance(item, Store | Assign):
                stage = last = max(stage, last)  # stores keep their order
            self._placed.append(stage)
        uses: dict[str, int] = {}
        for n in range(len(self.items) - 1, -1, -1):
            item = self.items[n]
            if isinstance(item, Let):
                self._placed[n] = uses.get(item.variable.name, self._placed[n])
            for name in _names(item):
                uses[name] = min(uses.get(name, self._placed[n]), self._placed[n])

    def _is_everywhere(self, item: int) -> bool:
        """Return whether an item is computed in every stage that needs it."""
        bound = self.items[item]
        return isinstance(bound, Let) and bound.variable.type is INDEX

    def _needed(self, stage: int) -> set[str]:
        """Return the names that the items of a stage use, by way of indices, too."""
        names = set[str]()
        for n in range(len(self.items) - 1, -1, -1):
            item = self.items[n]
            is_used = any(variable.name in names for variable in _results(item))
            if is_used if self._is_everywhere(n) else self._placed[n] == stage:
                names.update(_names(item))
        return names

    def _crosses(self, item: int, needed: Sequence[set[str]], name: str) -> bool:
        """Return whether a value is needed after the stage that computes it, or is a result."""
        if self._is_everywhere(item):
            return False
        is_result = isinstance(self.items[item], _Point)
        return is_result or any(name in names for names in needed[self._placed[item] + 1 :])

    def _stage(
        self,
        stage: int,
        needed: set[str],
        given: Mapping[tuple[int, int], Array],
        lane: Variable,
        size: Expr,
    ) -> Iterator[Statement]:
        """Yield the loop of a stage and the calls after it."""
        body: list[Statement] = []
        calls: list[Statement] = []
        start = ix.constant(0)
        for n, item in enumerate(self.items):
            here = self._placed[n] == stage
            if self._is_everywhere(n):
                here = _results(item)[0].name in needed
            if not (here and isinstance(item, Let)):
                known = [v for v in _results(item) if v.name in self._arrays and v.name in needed]
                body += [Let(v, Load(self._arrays[v.name], lane)) for v in known]
            if not here:
                continue
            if not isinstance(item, _Point):
                body.append(item)
                kept = [v for v in _results(item) if v.name in self._arrays]
                body += [Store(self._arrays[v.name], lane, v) for v in kept]
                continue
            own = [given[n, k] for k in range(len(item.arguments))]
            body += [Store(a, lane, e) for a, e in zip(own, item.arguments, strict=True)]
            results = (self._arrays[variable.name] for variable in item.results)
            pointers = [Pointer(array, start) for array in (*own, *results)]
            calls.append(Call(item.procedure, (*pointers, size)))
        assigned = {s.variable for s in body if isinstance(s, Assign)}
        sums = tuple(one for one in self.loop.sums if one in assigned)
        yield Loop(lane, size, "lanes", tuple(body), sums, self.loop.operator)
        yield from calls


def _results(item: _Item) -> tuple[Variable, ...]:
    """Return the variables that an item binds."""
    match item:
        case Let(variable, _):
            return (variable,)
        case _Point():
            return item.results
        case _:
            return ()


def _names(item: _Item) -> Iterator[str]:
    """Yield the names of the variables that an item uses."""
    used = item.arguments if isinstance(item, _Point) else expressions(item)
    return (name for expression in used for name in variables(expression))


def _held_type(element_type: ElementType) -> ElementType:
    """Return the type of an array that holds values as registers do."""
    return F32 if is_narrow(element_type) else element_type
