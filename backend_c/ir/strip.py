"""Compute neighbouring rows that lie across memory side by side: a strip of them, in lanes.

    for strip:
        for place in a row:  for lane: state[lane] = max(state[lane], x[place, first + lane])
        for place in a row:  for lane: r[place, first + lane] = x[place, first + lane] - state[lane]

What a strip reads stays in a cache from one loop to the next. A value of a whole row that is in
an array of the strip (:meth:`Strip.kept_single`) is read at the lane that the loop around has; so
is an element of the row (:meth:`Strip.kept_whole`), which the first loop over the rows computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Array, Expr
from backend_c.ir.scope import Scope
from hlo.passes.row_loops.rows import Rows
from hlo.types import ArrayShape


class Strip:
    """Write the loops over strips of ``width`` neighbouring rows of ``columns`` ones.

    The columns of an array are ``columns`` at a time, which divides those of ``rows``.
    """

    def __init__(self, scope: Scope, rows: Rows, columns: int, width: int) -> None:
        self.scope, self.rows, self.width = scope, rows, width
        self._columns = columns
        self._fills: list[Callable[[], None]] = []
        self._passes = 0  # over the rows, so far
        self._above: tuple[Expr, ...] = ()
        self._first: Expr = ix.constant(0)
        self.count: Expr = ix.constant(width)
        self.lane: Expr = ix.constant(0)
        self._place: Expr = ix.constant(0)

    @contextmanager
    def each(self, cost: int) -> Iterator[None]:
        """Open the loop over all strips, and fill their arrays; ``cost`` is that of an element."""
        groups, columns = self._groups(), self._columns
        strips = nest.strips(
            self.scope, (*groups, columns), self.width, self.rows.length * self.width * cost
        )
        with strips as (self._above, self._first, self.count):
            for fill in self._fills:
                self._passes += 1
                fill()
            self._passes += 1
            yield

    def _groups(self) -> tuple[int, ...]:
        """Return the numbers of groups of neighbouring rows that strips are parts of."""
        return self.rows.number // self.rows.columns, self.rows.columns // self._columns

    @contextmanager
    def lanes(self, *, is_straight: bool = True) -> Iterator[None]:
        """Open a loop over the rows of the strip, in lanes if its body is straight-line code."""
        with self.scope.loop(self.count, "lanes" if is_straight else "serial") as self.lane:
            yield

    @contextmanager
    def places(self, number: int | None = None) -> Iterator[Expr]:
        """Open a loop over the places in a row, or over ``number`` steps."""
        with self.scope.loop(self.rows.length if number is None else number) as place:
            yield place

    def single(self, element: Element) -> Expr:
        """Return the only element of the current row."""
        return element.at(*self.single_index(element.shape.dims))

    def whole(self, element: Element, place: Expr) -> Expr:
        """Return the element at a place of the current row."""
        self._place = place
        return element.at(*self.whole_index(element.shape.dims, place))

    def single_index(self, dims: Sequence[int]) -> tuple[Expr, ...]:
        """Return the index of the current row in an array with an element for each."""
        return self._index(dims, (*self._groups(), self._columns), self._above)

    def whole_index(self, dims: Sequence[int], place: Expr) -> tuple[Expr, ...]:
        """Return the index of a place of the current row in an array of whole rows."""
        (outer, above), (groups, parts) = self._above, self._groups()
        sizes = groups, self.rows.length, parts, self._columns
        return self._index(dims, sizes, (outer, place, above))

    def _index(
        self,
        dims: Sequence[int],
        sizes: Sequence[int],
        above: Sequence[Expr],
        below: Sequence[Expr] = (),
    ) -> tuple[Expr, ...]:
        """Delinearise the index (*above, column, *below) in an array of ``sizes`` to one of its
        dims."""
        position = (*above, ix.add(self._first, self.lane), *below)
        index: list[Expr] = []
        left = list(dims)
        for size, value in zip(sizes, position, strict=True):
            group: list[int] = []
            product = 1
            while product < size and left:
                group.append(left.pop(0))
                product *= group[-1]
            if product != size:  # a reshape across rows
                return tuple(ix.delinearize(ix.linearize(position, sizes), dims))
            index += ix.delinearize(value, group)
        return (*index, *(ix.constant(0) for _ in left))

    def write_whole(
        self, elements: Sequence[Element], numbers: Sequence[int], writer: Writer
    ) -> None:
        """Write the loops of results that have whole rows."""
        with self.places() as place, self.lanes():
            for number in numbers:
                index = self.whole_index(elements[number].shape.dims, place)
                writer.some([number], index, (self.whole(elements[number], place),))

    def kept_single(self, element: Element) -> Element:
        """Return a reader of an array of the strip, which is filled with an element of each row."""

        def values() -> Array:
            array = self.scope.local(element.shape.element_type, self.width, is_opaque=False)
            with self.lanes():
                self.scope.store(array, self.lane, self.single(element))
            return array

        return self.filled(element.shape, values)

    def filled(self, shape: ArrayShape, values: Callable[[], Array]) -> Element:
        """Return a reader of an array of the strip that ``values`` writes, in the order of
        calls."""
        arrays: list[Array] = []
        names = self.scope.names
        computing = names.current

        def fill() -> None:
            outside = names.current
            names.leave(computing)
            arrays.append(values())
            names.leave(outside)

        self._fills.append(fill)
        return Element(shape, lambda *_: self.scope.load(arrays[-1], self.lane))

    def kept_whole(self, element: Element, memory: Array | None) -> Element:
        """Return a reader that keeps the elements of the strip's rows: the first pass over the
        places that reads them, which reads all, computes and stores them.

        They are kept in ``memory`` in row-major order, or on the stack.
        """
        arrays: list[Array] = [] if memory is None else [memory]
        first = 0

        def declare() -> None:
            size = self.rows.length * self.width
            arrays.append(self.scope.local(element.shape.element_type, size, is_opaque=False))

        def at(*index: Expr) -> Expr:
            nonlocal first
            first = first or self._passes
            (array,) = arrays
            offset = ix.linearize(index, element.shape.dims)
            if memory is None:
                offset = ix.add(ix.multiply(self._place, self.width), self.lane)
            if first != self._passes:
                return self.scope.load(array, offset)
            value = self.scope.bind(element.at(*index))
            self.scope.store(array, offset, value)
            return value

        if memory is None:
            self._fills.append(declare)
        return Element(element.shape, at)
