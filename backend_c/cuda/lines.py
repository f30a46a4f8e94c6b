"""Vectorise memory accesses: each thread takes neighbouring elements, loaded and stored as lines.

Neighbouring threads of a loop take neighbouring elements. With one element each, a thread waits for
four bytes at a time, too few to keep the memory of a GPU busy: with lines of 16 bytes four times as
many are on their way, by a quarter of the instructions (runtime/hlo_lines.h).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from backend_c.cuda.walks import LINE
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Assign,
    Call,
    Expr,
    Let,
    Load,
    LocalArray,
    Loop,
    Pointer,
    Statement,
    Store,
    Variable,
    expressions,
    operands,
    parts,
    variables,
)
from backend_c.ir.loop_rewriting import with_expressions, with_operands
from backend_c.ir.renaming import Renaming

_BYTES = 16  # of a line of the widest elements
_LEAST = 4  # bytes of a line of others
_FEWEST = 32  # lines, so that no warp is idle
_MOST_PARTS = 160  # subexpressions of an element: as many times as a line has elements are written


class _Line(NamedTuple):
    """Describe the unit-stride accesses to an array: the offset of the loop's element 0."""

    array: Array
    base: Expr


def in_lines(loop: Loop) -> tuple[Loop, ...]:
    """Rewrite a shared loop as one over lines of elements, and one over the remaining elements.

    Return the loop alone if it has no unit-stride accesses, or too few lines.
    """
    if not all(isinstance(s, Let | Store | Assign) for s in loop.body):
        return (loop,)
    if sum(1 for _ in parts(loop.body)) > _MOST_PARTS:
        return (loop,)
    loads, stores = _lines(loop)
    # Neighbouring threads read neighbouring elements only if each has one at a time.
    if not loads and any(isinstance(part, Load) for part in parts(loop.body)):
        return (loop,)
    widths = [_width(line.array) for line in (*loads, *stores)]
    lanes = _BYTES // max(widths, default=_BYTES)
    most = ix.bounds(loop.extent)[1] // lanes
    # One lane: no access has unit stride, or its elements are of 16 bytes. f64 beside pred would
    # take lines of two bytes, of which runtime/hlo_lines.h has none.
    if lanes < 2 or min(widths) * lanes < _LEAST or most < _FEWEST:
        return (loop,)
    written = _Lines(loop, lanes, loads, stores)
    whole = ix.divide(loop.extent, lanes)
    number = Variable(INDEX, f"{loop.variable.name}l", 0, most - 1)
    lines = loop._replace(variable=number, extent=whole, body=tuple(written.body(number)))
    rest = ix.modulo(loop.extent, lanes)
    if ix.value_of(rest) == 0:
        return (lines,)
    left = Variable(INDEX, f"{loop.variable.name}r", 0, lanes - 2)
    place = ix.add(left, ix.multiply(whole, lanes))
    body = tuple(_renamed(loop, loop.body, "_r", place))
    return lines, loop._replace(variable=left, extent=rest, body=body)


def _own_names(loop: Loop) -> set[str]:
    """Return the names that each iteration binds anew."""
    return {s.variable.name for s in loop.body if isinstance(s, Let)} | {loop.variable.name}


def _renamed(
    loop: Loop, body: Sequence[Statement], ending: str, place: Expr
) -> Iterator[Statement]:
    """Instantiate a loop's statements for the iteration at ``place``; names get an ending."""
    used = {part.name for part in parts(loop.body) if isinstance(part, Variable)}
    kept = used - _own_names(loop)
    names = Renaming(lambda array: array, Load, ending, {loop.variable: place}, kept=kept)
    for statement in body:
        if isinstance(statement, Assign):  # of a sum, which has one name
            yield statement._replace(value=names.expression(statement.value))
        else:
            yield names.statement(statement)


def _lines(loop: Loop) -> tuple[list[_Line], list[_Line]]:
    """Return the lines that a loop loads, and those that it stores, without duplicates."""
    own = _own_names(loop)
    written = Counter(s.array.name for s in loop.body if isinstance(s, Store))
    loads: dict[_Line, None] = {}
    for load, is_certain in _loads(loop.body):
        line = _line(load.array, load.offset, loop, own)
        # Elements of an array that changes are read when it is their turn.
        if line is None or load.array.name in written:
            continue
        # What is read under a condition may lie beyond the array.
        if is_certain or ix.is_inside(load):
            loads[line] = None
    stores = [
        line
        for s in loop.body
        if isinstance(s, Store) and (line := _line(s.array, s.offset, loop, own)) is not None
    ]
    read = {part.array.name for part in parts(loop.body) if isinstance(part, Load)}
    # A line is stored when all its elements are computed: too late for other accesses to its array.
    kept = [s for s in stores if written[s.array.name] == 1 and s.array.name not in read]
    return list(loads), kept


def _loads(body: Sequence[Statement]) -> Iterator[tuple[Load, bool]]:
    """Yield (load, whether it is unconditional) of statements."""
    for statement in body:
        for expression in expressions(statement):
            waiting = [(expression, True)]
            while waiting:
                part, is_certain = waiting.pop()
                if isinstance(part, Load):
                    yield part, is_certain
                is_chosen = isinstance(part, Apply) and part.operation == "select"
                for number, one in enumerate(operands(part)):
                    waiting.append((one, is_certain and not (is_chosen and number)))


def _line(array: Array, offset: Expr, loop: Loop, own: set[str]) -> _Line | None:
    """Return the line of a unit-stride access with a loop-invariant base; None for others."""
    if array.memory is not None or array.is_wide:
        return None
    terms = ix.coefficients(offset)
    if terms.get(loop.variable) != 1:
        return None
    others = (name for atom in terms if atom != loop.variable for name in variables(atom))
    if not own.isdisjoint(others):
        return None
    return _Line(array, ix.subtract(offset, loop.variable))


def _width(array: Array) -> int:
    """Return the bytes of an element in memory."""
    return max(array.element_type.bits // 8, 1)


class _Lines:
    """Write the body of a loop over lines of ``lanes`` elements each."""

    def __init__(
        self, loop: Loop, lanes: int, loads: Sequence[_Line], stores: Sequence[_Line]
    ) -> None:
        self._loop, self._lanes = loop, lanes
        self._loads = {line: self._held("x", n, line) for n, line in enumerate(loads)}
        self._stores = {line: self._held("y", n, line) for n, line in enumerate(stores)}
        self._own = _own_names(loop)

    def _held(self, letter: str, number: int, line: _Line) -> Array:
        """Return the local array that holds a line."""
        name = f"{letter}{number}_{self._loop.variable.name}"
        return Array(name, line.array.element_type, self._lanes, mutable=True, is_local=True)

    def body(self, number: Variable) -> Iterator[Statement]:
        """Yield the statements of line number ``number``: loads, its elements unrolled, stores."""
        first = ix.multiply(number, self._lanes)
        start = ix.constant(0)
        for line, held in self._loads.items():
            yield LocalArray(held)
            source = Pointer(line.array, ix.add(line.base, first))
            yield self._moved("load", line, (Pointer(held, start), source))
        yield from map(LocalArray, self._stores.values())
        for lane in range(self._lanes):
            yield from self._element(lane, ix.add(first, lane))
        for line, held in self._stores.items():
            target = Pointer(line.array, ix.add(line.base, first))
            yield self._moved("store", line, (target, Pointer(held, start)))

    def _moved(self, way: str, line: _Line, pointers: tuple[Pointer, Pointer]) -> Call:
        size = _width(line.array)
        return Call(f"{LINE}{way}_{size * self._lanes}_{size}", pointers)

    def _element(self, lane: int, place: Expr) -> Iterator[Statement]:
        """Yield the statements of one element of a line."""
        where = ix.constant(lane)
        body = [self._from_lines(statement, where) for statement in self._loop.body]
        yield from _renamed(self._loop, body, f"_{lane}", place)

    def _from_lines(self, statement: Statement, where: Expr) -> Statement:
        """Redirect a statement's loads and stores to the local copies of lines."""

        def changed(value: Expr) -> Expr:
            if isinstance(value, Load):
                line = _line(value.array, value.offset, self._loop, self._own)
                held = self._loads.get(line) if line is not None else None
                return value if held is None else Load(held, where)
            return with_operands(value, changed)

        statement = with_expressions(statement, changed)
        if isinstance(statement, Store):
            line = _line(statement.array, statement.offset, self._loop, self._own)
            held = self._stores.get(line) if line is not None else None
            if held is not None:
                return statement._replace(array=held, offset=where)
        return statement
