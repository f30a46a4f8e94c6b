"""Tile maps that read arrays across their rows, and transpose each tile first.

Where neighbouring results need elements that lie far apart, but some other dimension of the result
runs along them, a loop over the results would read one element of each line of memory at a time.
Instead a tile of both dimensions is transposed in registers (runtime/hlo_transpose.h): into the
result, if that is all the map does, else into the first cache, where the map reads it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Apply, Array, Expr, Load, Pointer, Variable, variables
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.block_transposition import write_in_blocks
from hlo.types import ArrayShape, ElementType

# Tiles of a transposition alone: long rows of few pages (2048x2048 f32: 1.9 ms, of 256 bytes 2.4).
_BYTES, _ROWS = 4096, 128
# Results of so many bytes go around the caches, which saves reading their lines first: 16 MB in
# 0.39 to 0.67 of the time, 7.8 MB in the same, but 4 to 6 MB, which a cache keeps, in 2.3 times.
_STREAMED = 1 << 23
# Tiles that a map reads stay in the first cache.
_TILE_BYTES, _TILE_ROWS = 128, 64
_SHORT = 8  # dimensions below this are read as they lie
_FEW = 256  # arrays of fewer elements, too
# What may read an array in another order than it lies.
TRANSPOSING = frozenset(("transpose", "gather"))
_Index = tuple[Expr, ...]


class Access(NamedTuple):
    """Describe a load of a tile: its array, the offset of the first element, the pitch of rows."""

    array: Array
    first: Expr
    pitch: int


def write_transposed(
    scope: Scope, results: Sequence[Element], writer: Writer, numbers: Sequence[int]
) -> bool:
    """Write the map of the results ``numbers``, of equal dims, by transposed tiles.

    Return False, with nothing written, if it reads no array across its rows, or is small.
    """
    elements = [results[number] for number in numbers]
    if math.prod(elements[0].shape.dims) < _FEW:
        return False
    with scope.undone():
        # Reading elements writes statements: this is a trial, whose statements are discarded.
        is_across = _across(scope, elements, writer, numbers) is not None
    across = _across(scope, elements, writer, numbers) if is_across else None
    if across is not None:
        across.emit(writer)
    return is_across


def _across(
    scope: Scope, elements: Sequence[Element], writer: Writer, numbers: Sequence[int]
) -> TransposedMap | None:
    """Recognise a map that reads arrays across their rows, from its element at a symbolic index.

    None if it does not.
    """
    moved = None
    if len(elements) == 1:
        moved = _moved(scope, elements[0], writer.arrays[numbers[0]])
        elements = [moved or elements[0]]
    dims = elements[0].shape.dims
    long = [d for d, extent in enumerate(dims) if extent > 1]
    if len(long) < 2 or dims[long[-1]] < _SHORT:
        return None
    last = long[-1]
    ways: Counter[int] = Counter()
    with scope.draft(dims) as index:

        def note(load: Load) -> Load:
            pitch = _coefficient(load.offset, index[last])
            if pitch is not None and pitch > 1 and _is_in_memory(load.array):
                ways.update(
                    d
                    for d in long[:-1]
                    if dims[d] >= _SHORT and _coefficient(load.offset, index[d]) == 1
                )
            return load

        with scope.loads_through(note):
            for element in elements:
                element.at(*index)
    if not ways:
        return None
    along = ways.most_common(1)[0][0]
    return TransposedMap(scope, elements, numbers, along, last, moved is not None)


def _moved(scope: Scope, element: Element, target: Array) -> Element | None:
    """Return a map that is a strided copy of an array, over as few dimensions as possible.

    None if it computes anything, or converts.
    """
    element = _refined(scope, element)
    dims = element.shape.dims
    with scope.draft(dims) as index:
        load = scope.definition(element.at(*index), Load)
        if not isinstance(load, Load) or load.array.element_type is not target.element_type:
            return None
        strides = [_coefficient(load.offset, i) or 0 for i in index]
        first = ix.subtract(load.offset, ix.add(*map(ix.multiply, index, strides)))
        if not scope.is_invariant(first):
            return None
    array, merged = load.array, _merged(dims, strides)

    def at(*index: Expr) -> Expr:
        places = (ix.multiply(i, stride) for i, (_, stride) in zip(index, merged, strict=True))
        return scope.nearest(Load(array, ix.add(first, *places)))

    return Element(ArrayShape(target.element_type, tuple(dim for dim, _ in merged)), at)


def _refined(scope: Scope, element: Element) -> Element:
    """Split dimensions where a map's load divides their index, as a reshape does."""
    while True:
        dims = element.shape.dims
        with scope.draft(dims) as index:
            load = scope.definition(element.at(*index), Load)
            found = _division(scope, load.offset, index) if isinstance(load, Load) else None
        if found is None:
            return element
        element = _with_split(element, *found)


def _division(scope: Scope, offset: Expr, index: Sequence[Expr]) -> tuple[int, int] | None:
    """Return (dimension, divisor) of an index that is divided and whose extent is a multiple.

    None if there is none.
    """
    waiting = list(ix.coefficients(offset))
    while waiting:
        atom = scope.definition(waiting.pop())
        if not isinstance(atom, Apply) or atom.operation not in ("divide", "modulo"):
            continue
        place, divisor = atom.operands[0], ix.value_of(atom.operands[1])
        if place in index and divisor:
            d = index.index(place)
            if (ix.bounds(place)[1] + 1) % divisor == 0:
                return d, divisor
        waiting += ix.coefficients(place)
    return None


def _with_split(element: Element, d: int, divisor: int) -> Element:
    """Split dimension ``d`` of a map in two, the second of ``divisor`` elements."""
    dims = element.shape.dims
    parts = dims[d] // divisor, divisor

    def at(*index: Expr) -> Expr:
        return element.at(*index[:d], ix.linearize(index[d : d + 2], parts), *index[d + 2 :])

    return Element(ArrayShape(element.shape.element_type, (*dims[:d], *parts, *dims[d + 1 :])), at)


def _merged(dims: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Collapse dimensions that are contiguous in memory; return (extent, stride) of each left."""
    merged: list[tuple[int, int]] = []
    for dim, stride in zip(dims, strides, strict=True):
        if dim == 1:
            continue
        if merged and merged[-1][1] == stride * dim:
            merged[-1] = (merged[-1][0] * dim, stride)
        else:
            merged.append((dim, stride))
    return merged


@dataclass(frozen=True)
class TransposedMap:
    """Write a map of which some loads are contiguous along dimension ``along``, not ``last``.

    ``is_moved``: there is one result, and it is what is loaded.
    """

    scope: Scope
    elements: Sequence[Element]
    numbers: Sequence[int]  # of the results
    along: int
    last: int
    is_moved: bool

    @property
    def dims(self) -> tuple[int, ...]:
        """Return the dims of the map."""
        return self.elements[0].shape.dims

    def emit(self, write: Writer) -> None:
        """Write the tiles."""
        if self.scope.settings.has_blocks:
            write_in_blocks(self, write)
            return
        bytes_, most = (_BYTES, _ROWS) if self.is_moved else (_TILE_BYTES, _TILE_ROWS)
        width = max(_width(element.shape.element_type) for element in self.elements)
        rows = min(self.dims[self.last], most)
        tile = rows, min(self.dims[self.along], bytes_ // width)
        with self._tiles(tile) as (index, counts):
            if self.is_moved:
                (number,) = self.numbers
                pitch = math.prod(self.dims[self.along + 1 :])
                (access,) = self.accesses(index, tile)
                target = Pointer(write.arrays[number], ix.linearize(index, self.dims))
                streams = ix.constant(int(math.prod(self.dims) * width >= _STREAMED))
                self._transpose("", access, target, pitch, (*counts, streams))
            else:
                self._map(index, counts, tile, write)

    @contextmanager
    def _tiles(self, tile: tuple[int, int]) -> Iterator[tuple[_Index, tuple[Expr, Expr]]]:
        """Open loops over tiles; yield the index of the first element, and (rows, columns)."""
        scope, ways = self.scope, (self.last, self.along)
        blocks = {d: -(-self.dims[d] // size) for d, size in zip(ways, tile)}
        others = [d for d in range(len(self.dims)) if d not in ways]
        order = (*others, self.along, self.last)
        extents = tuple(blocks.get(d, self.dims[d]) for d in order)
        with nest.outer(scope, extents, 2 * tile[0] * tile[1]) as numbers:
            first = dict(zip(order, numbers))
            for d, size in zip(ways, tile):
                first[d] = scope.bind(ix.multiply(first[d], size))
            rows, columns = (
                scope.bind(ix.clamp(0, ix.subtract(self.dims[d], first[d]), size))
                for d, size in zip(ways, tile)
            )
            yield tuple(first[d] for d in range(len(self.dims))), (rows, columns)

    def _map(
        self,
        index: _Index,
        counts: tuple[Expr, Expr],
        tile: tuple[int, int],
        write: Writer,
    ) -> None:
        """Write one tile: transpose the accesses into local arrays, then compute the map from
        these."""
        scope = self.scope
        copies: dict[Access, Array] = {}
        for access in self.accesses(index, tile):
            copy = scope.local(access.array.element_type, tile[0] * tile[1])
            self._transpose("tile_", access, Pointer(copy, ix.constant(0)), tile[0], counts)
            copies[access] = copy
        with scope.loop(counts[1]) as i, scope.loop(counts[0], "lanes") as j:
            offset = ix.add(ix.multiply(i, tile[0]), j)
            place, values = self.values(index, (i, j), copies, offset)
            write.some(self.numbers, place, values)

    def _transpose(
        self, kind: str, access: Access, target: Pointer, pitch: int, rest: tuple[Expr, ...]
    ) -> None:
        """Call the runtime to transpose an access into ``target``."""
        self.scope.call(
            f"hlo_transpose_{kind}{_width(access.array.element_type)}",
            Pointer(access.array, access.first),
            ix.constant(access.pitch),
            target,
            ix.constant(pitch),
            *rest,
        )

    def accesses(self, index: _Index, tile: tuple[int, int]) -> list[Access]:
        """Return the distinct loads of a tile that are to be transposed."""
        found: dict[Access, None] = {}
        with self.scope.draft((tile[1], tile[0])) as (i, j):

            def note(load: Load) -> Load:
                access = self._access(load, i, j)
                # What is bound for each element is not known where the tile starts.
                if access is not None and self.scope.is_invariant(access.first):
                    found[access] = None
                return load

            with self.scope.loads_through(note):
                for element in self.elements:
                    element.at(*self._place(index, i, j))
        return list(found)

    def values(
        self, index: _Index, own: tuple[Expr, Expr], copies: Mapping[Access, Array], offset: Expr
    ) -> tuple[_Index, tuple[Expr, ...]]:
        """Return the index and the values of element ``own`` of the tile at ``index``.

        Loads that have been transposed read their copy, at ``offset``.
        """

        def copied(load: Load) -> Load:
            access = self._access(load, *own)
            copy = copies.get(access) if access is not None else None
            return load if copy is None else Load(copy, offset)

        with self.scope.loads_through(copied):
            place = self._place(index, *own)
            return place, tuple(element.at(*place) for element in self.elements)

    def _place(self, index: _Index, i: Expr, j: Expr) -> _Index:
        """Return the index of element (i, j) of the tile that starts at ``index``."""
        by = {self.along: i, self.last: j}
        return tuple(ix.add(first, by[d]) if d in by else first for d, first in enumerate(index))

    def _access(self, load: Load, i: Expr, j: Expr) -> Access | None:
        """Return a load as an access, contiguous along ``i`` and strided along ``j``; else None."""
        pitch = _coefficient(load.offset, j)
        if _coefficient(load.offset, i) != 1 or pitch is None or pitch < 2:
            return None
        if not _is_in_memory(load.array):
            return None
        first = ix.subtract(load.offset, ix.add(i, ix.multiply(j, pitch)))
        return Access(load.array, first, pitch)


def _coefficient(offset: Expr, variable: Expr) -> int | None:
    """Return the coefficient of a variable in an affine offset; None if it is not affine in it."""
    assert isinstance(variable, Variable)
    terms = ix.coefficients(offset)
    hidden = (name for atom in terms if atom != variable for name in variables(atom))
    return None if variable.name in hidden else terms.get(variable, 0)


def _is_in_memory(array: Array) -> bool:
    """Return whether an array is immutable memory of its element type, no view."""
    return array.memory is None and not array.mutable


def _width(element_type: ElementType) -> int:
    """Return the size in bytes of an element in memory."""
    return max(element_type.bits // 8, 1)
