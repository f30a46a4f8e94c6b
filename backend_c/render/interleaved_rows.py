"""Take short rows apart and put them together in transposed tiles, a block of rows at a time.

Where each lane reads or writes a row of its own (a matrix, features of a point), the elements of
neighbouring lanes are a row apart in memory. Compilers shuffle rows of two, three or four elements;
of longer ones they insert element by element, or leave the loop scalar. So such a loop is
distributed (:mod:`backend_c.render.loop_distribution`) over its rows: runtime/hlo_interleaved.h
transposes tiles in registers, to an array for each column and back. Inverses of 3x3 matrices take
a fifth of the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Call,
    Expr,
    Kernel,
    Load,
    Loop,
    Pointer,
    Statement,
    Store,
    Variable,
    parts,
)
from backend_c.render.c_types import is_converted
from backend_c.render.lane_offsets import LaneOffsets
from backend_c.render.loop_distribution import Distribution, Points
from backend_c.render.loop_stages import Lanes, Point
from hlo.types import ElementType

_LEAST, _MOST = 5, 16  # elements of a row: compilers shuffle shorter ones into vectors
_FEWEST_ROWS = 16  # trips of a loop
_MOST_COLUMNS = 48  # of all rows in a loop: each takes an array on the stack
_BYTES = (4, 8)  # of the elements that runtime/hlo_interleaved.h moves


def with_interleaved_rows(kernel: Kernel) -> Kernel:
    """Distribute a kernel's loops in lanes over the short rows of which each lane has its own."""
    return replace(kernel, body=_Transposing().block(kernel.body))


class _Transposing(Distribution):
    letter = "i"

    def points(self, loop: Loop, number: str) -> Points:
        return _ShortRows(loop, number)


@dataclass(frozen=True, slots=True)
class _Transposition(Point):
    """Represent columns of the rows of a block: a load if it has results, else a store.

    ``first`` is the offset of the first column in lane 0.
    """

    memory: Array
    first: Expr
    stride: int
    arguments: tuple[Expr, ...]
    results: tuple[Variable, ...]

    @property
    def argument_type(self) -> ElementType:
        return self.memory.element_type

    def statement(
        self, arguments: Sequence[Array], results: Sequence[Array], lanes: Lanes
    ) -> Statement:
        what = "LOAD" if results else "STORE"
        place = Pointer(self.memory, ix.add(self.first, ix.multiply(lanes.start, self.stride)))
        columns = (Pointer(array, ix.constant(0)) for array in (*arguments, *results))
        given = place, ix.constant(self.stride), lanes.size, *columns
        return Call(f"HLO_INTERLEAVED_{what}_{self.memory.element_type.bits // 8}", given)


class _Rows(NamedTuple):
    """Identify the rows of an array: how far they are apart, and where they begin in lane 0 but for
    a constant."""

    array: Array
    stride: int
    base: Expr


@dataclass(slots=True)
class _Columns:
    """Hold the columns of rows that a loop accesses: where each is in lane 0, by its offset."""

    rows: _Rows
    places: dict[Expr, int]
    values: dict[int, Expr] = field(default_factory=dict)  # by column, of the stores so far

    @property
    def span(self) -> int:
        """Return the number of columns from the first to the last."""
        return max(self.places.values()) - min(self.places.values()) + 1

    def column(self, offset: Expr) -> int:
        """Return the number of a column, from the first on."""
        return self.places[offset] - min(self.places.values())

    def point(self, arguments: Sequence[Expr], results: Sequence[Variable] = ()) -> _Transposition:
        """Return the store of arguments, or the load of results."""
        array, stride, base = self.rows
        first = ix.add(base, min(self.places.values()))
        return _Transposition(array, first, stride, (*arguments,), (*results,))


class _ShortRows(Points):
    """Extract the rows of which each lane of a loop reads or writes several elements."""

    def __init__(self, loop: Loop, number: str) -> None:
        super().__init__(loop, number)
        self._offsets = LaneOffsets(loop)
        self._loads: dict[tuple[Array, Expr], _Columns] = {}
        self._stores: dict[tuple[Array, Expr], _Columns] = {}
        self._read: dict[tuple[Array, Expr], Variable] = {}
        if ix.bounds(loop.extent)[1] >= _FEWEST_ROWS:
            self._find()

    def _find(self) -> None:
        """Find the rows that the loop writes whole, and those of which it reads most."""
        left = _MOST_COLUMNS
        stores = [(s.array, s.offset) for s in self.loop.body if isinstance(s, Store)]
        number = Counter(array for array, _ in stores)
        for columns in self._grouped(stores):
            array, stride, _ = columns.rows
            # Of an array that the loop stores to elsewhere, too, the order of stores matters.
            if columns.span == len(columns.places) == number[array] == stride <= left:
                left -= stride
                self._stores |= {(array, offset): columns for offset in columns.places}
        loads = [p for p in parts(self.loop.body) if isinstance(p, Load) and not p.array.mutable]
        for columns in self._grouped((load.array, load.offset) for load in loads):
            array, stride, _ = columns.rows
            if columns.span <= min(stride, left, 2 * len(columns.places)) and columns.span > 1:
                left -= columns.span
                self._loads |= {(array, offset): columns for offset in columns.places}

    def _grouped(self, accesses: Iterable[tuple[Array, Expr]]) -> Iterable[_Columns]:
        """Group accesses by the rows that they are to; leave out those to no short rows."""
        found: dict[_Rows, _Columns] = {}
        for array, offset in accesses:
            if array.element_type.bits // 8 not in _BYTES or not _is_in_memory(array):
                continue
            split = self._offsets.split(offset)
            if split is None or not _LEAST <= split.stride <= _MOST:
                continue
            place = ix.affine_form(split.first)[1]
            rows = _Rows(array, split.stride, ix.subtract(split.first, place))
            found.setdefault(rows, _Columns(rows, {})).places[offset] = place
        return found.values()

    def taken(self, value: Apply | Load) -> Expr:
        """Replace a load by a column of its row; return others unchanged."""
        if isinstance(value, Apply):
            return value
        columns = self._loads.get((value.array, value.offset))
        if columns is None:
            return value
        if (value.array, value.offset) not in self._read:
            start = len(self._read)
            results = [
                Variable(value.type, f"y{self._number}x{start}x{n}") for n in range(columns.span)
            ]
            self.items.append(columns.point((), results))
            for offset in columns.places:
                self._read[value.array, offset] = results[columns.column(offset)]
        return self._read[value.array, value.offset]

    def stored(self, store: Store) -> Store | Point | None:
        """Replace the last store to a row by one of the whole row, and those before by nothing."""
        columns = self._stores.get((store.array, store.offset))
        if columns is None:
            return store
        columns.values[columns.column(store.offset)] = store.value
        if len(columns.values) < columns.span:
            return None
        return columns.point([value for _, value in sorted(columns.values.items())])


def _is_in_memory(array: Array) -> bool:
    """Return whether an array's elements lie in memory as registers hold them."""
    is_same = array.memory is None and not array.is_wide and not is_converted(array)
    return is_same and not array.is_local and array.element_type is not INDEX
