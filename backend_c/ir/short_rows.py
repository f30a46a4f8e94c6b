"""Compute short rows that lie one after the other side by side: a row in each lane.

A row of some eight elements fills no vectors, and its reductions end in steps from lane to lane. So
the rows of a strip are transposed into an array with a line for each place in a row, as if they lay
across memory (:mod:`backend_c.ir.strip`), and results of whole rows are transposed back:

    for strip:
        t = transposed x[first …, :];  for place in a row:  for lane: state[lane] += t[place, lane]
        for place in a row:  for lane: u[place, lane] = t[place, lane] / state[lane]
        r[first …, :] = transposed u
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir import index as ix
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Array, Expr, Pointer
from backend_c.ir.scope import apply
from backend_c.ir.strip import Strip
from hlo.types import F32, S32, ElementType

# Elements of a short row: compilers shuffle shorter ones. Of longer ones the last elements, which
# fill no vector, take longer than two transpositions.
_SHORTEST, _LONGEST = 4, 127
_VECTOR = 16
_BYTES = 64  # of a vector
_ROWS = 64  # in a strip; of rows of several vectors half as many, for the first cache
_INTERLEAVED = (4, 8)  # bytes of the elements that runtime/hlo_interleaved.h moves


def rows_of_strip(length: int, widest: int) -> int:
    """Return how many rows of a length are computed side by side; 0 for rows that fill vectors, or
    are so long or so short that they are computed one by one. ``widest``: bytes of an element."""
    if length <= _VECTOR:
        return _ROWS if length >= _SHORTEST else 0
    vector = min(_BYTES // widest, _VECTOR)
    return _ROWS // 2 if length <= _LONGEST and length % vector else 0


class ShortRows(Strip):
    """Write the loops over strips of ``width`` rows that follow each other in memory.

    A strip is a part of ``columns`` rows, which divides their number.
    """

    def _groups(self) -> tuple[int, ...]:
        return (self.rows.number // self._columns,)

    def whole_index(self, dims: Sequence[int], place: Expr) -> tuple[Expr, ...]:
        """Return the index of a place of the current row in an array of whole rows."""
        sizes = *self._groups(), self._columns, self.rows.length
        return self._index(dims, sizes, self._above, (place,))

    def transposed(self, element: Element) -> Element:
        """Return a reader of an array in memory that reads the strip's rows of it transposed."""
        if element.array is None or element.sizes:
            return element
        array = element.array
        tiles: list[Array] = []

        def fill() -> None:
            tiles.append(self._tile(array))
            self._transpose(self._memory(array), tiles[-1], is_back=False)

        self._fills.append(fill)

        def at(*index: Expr) -> Expr:
            carried = self.scope.bind(self.scope.load(tiles[-1], self._offset))
            return _as_type(carried, array.element_type)

        return Element(element.shape, at)

    def write_whole(
        self, elements: Sequence[Element], numbers: Sequence[int], writer: Writer
    ) -> None:
        """Write the loops of results that have whole rows."""
        is_plain = writer.epilogue is None and not (writer.firsts or writer.within)
        if not is_plain:
            super().write_whole(elements, numbers, writer)
            return
        tiles = [self._tile(writer.arrays[number]) for number in numbers]
        with self.places() as place, self.lanes():
            values = [self.scope.bind(self.whole(elements[n], place)) for n in numbers]
            for tile, value in zip(tiles, values, strict=True):
                self.scope.store(tile, self._offset, _as_type(value, tile.element_type))
        for tile, number in zip(tiles, numbers, strict=True):
            self._transpose(self._memory(writer.arrays[number]), tile, is_back=True)

    @property
    def _offset(self) -> Expr:
        return ix.add(ix.multiply(self._place, self.width), self.lane)

    def _tile(self, array: Array) -> Array:
        """Declare a strip's rows, as their transposition carries them."""
        carrier = _carrier(array.element_type)
        elements = self.rows.length * self.width
        return self.scope.local(carrier, elements, is_opaque=not _is_held_as_f32(carrier))

    def _memory(self, array: Array) -> Pointer:
        row = ix.linearize((*self._above, self._first), (*self._groups(), self._columns))
        return Pointer(array, ix.multiply(row, self.rows.length))

    def _transpose(self, memory: Pointer, tile: Array, *, is_back: bool) -> None:
        """Write the transposition of the rows of a strip to or from their array.

        What is narrow is widened before, and narrowed behind it: rows that are shorter than a
        vector of such elements have no squares.
        """
        array, carrier = memory.array, tile.element_type
        if carrier is array.element_type and not _is_held_as_f32(carrier):
            self._call(memory, tile, is_back=is_back)
            return
        scope, rows = self.scope, self._tile(array)
        elements = ix.multiply(self.count, self.rows.length)
        if is_back:
            self._call(Pointer(rows, ix.constant(0)), tile, is_back=True)
        with scope.loop(elements, "lanes") as place:
            there = ix.add(memory.offset, place)
            if is_back:
                value = scope.bind(scope.load(rows, place))
                scope.store(array, there, _as_type(value, array.element_type))
            else:
                value = scope.bind(scope.load(array, there))
                scope.store(rows, place, _as_type(value, carrier))
        if not is_back:
            self._call(Pointer(rows, ix.constant(0)), tile, is_back=False)

    def _call(self, memory: Pointer, tile: Array, *, is_back: bool) -> None:
        """Call the runtime to transpose rows to or from a tile."""
        width = 4 if _is_held_as_f32(tile.element_type) else tile.element_type.bits // 8
        length, pitch = ix.constant(self.rows.length), ix.constant(self.width)
        there = Pointer(tile, ix.constant(0))
        # Longer rows by a procedure that is compiled once: the other one is written out, and would
        # take gcc 0.2 s more.
        if width in _INTERLEAVED and self.rows.length <= _VECTOR:
            name = f"hlo_interleaved_{'join' if is_back else 'split'}_{width}"
            self.scope.call(name, memory, length, self.count, there, pitch)
            return
        given = [(memory, length, self.count), (there, pitch, length)]
        source, target = reversed(given) if is_back else given
        self.scope.call(
            f"hlo_transpose_tile_{width}", *source[:2], *target[:2], source[2], target[2]
        )


def _carrier(element_type: ElementType) -> ElementType:
    """Return the type whose elements are transposed in place of a type's: one of 4 bytes for
    narrower ones, narrow floats as registers hold them."""
    is_narrow = not element_type.is_inexact and element_type.bits < S32.bits
    return S32 if is_narrow else element_type


def _is_held_as_f32(element_type: ElementType) -> bool:
    """Test for a type whose elements registers hold as f32."""
    return element_type.is_float and element_type.bits < F32.bits


def _as_type(value: Expr, element_type: ElementType) -> Expr:
    """Convert between a type and its carrier, which loses nothing."""
    return value if value.type is element_type else apply("convert", value, type=element_type)
