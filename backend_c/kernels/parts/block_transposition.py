"""Transpose arrays through shared memory, in maps that read across rows, for blocks of threads.

A block copies a square of what lies across into shared memory, neighbouring threads neighbouring
elements of memory, and computes the results from there, neighbouring threads neighbouring results:
both ways accesses are coalesced. Rows of a square are padded by one element, so that neither way
has bank conflicts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Writer
from backend_c.ir.loop_ir import Array, Expr, Load
from backend_c.ir.scope import Scope, apply
from hlo.types import PRED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backend_c.kernels.parts.transposed_map import Access, TransposedMap

_THREADS = 256
_SIDES = 64, 32, 16  # of squares
_MOST = 34 << 10  # bytes of shared memory of a block, so that six of them run at a time


def write_in_blocks(tiled: TransposedMap, write: Writer) -> None:
    """Write the map square by square of the two dimensions, a block of threads for each."""
    scope = tiled.scope
    side = _side(tiled)
    ways = tiled.along, tiled.last
    others = [d for d in range(len(tiled.dims)) if d not in ways]
    extents = *(tiled.dims[d] for d in others), *(-(-tiled.dims[d] // side) for d in ways)
    with scope.blocks(math.prod(extents), _THREADS) as number:
        place = [scope.bind(i) for i in ix.delinearize(number, extents)]
        first = dict(zip((*others, *ways), place))
        for d in ways:
            first[d] = scope.bind(ix.multiply(first[d], side))
        counts = [ix.clamp(0, ix.subtract(tiled.dims[d], first[d]), side) for d in ways]
        square = _Square(tiled, side, tuple(first[d] for d in range(len(tiled.dims))), counts)
        copies = square.brought()
        scope.barrier()
        square.computed(copies, write)
        scope.barrier()


def _side(tiled: TransposedMap) -> int:
    """Return the side of the squares in elements: the largest whose copies fit in shared memory."""
    index = (ix.constant(0),) * len(tiled.dims)
    with tiled.scope.undone():
        accesses = tiled.accesses(index, (_SIDES[0], _SIDES[0]))
    width = sum(max(access.array.element_type.bits // 8, 1) for access in accesses)
    fitting = [s for s in _SIDES if s * (s + 1) * width <= _MOST]
    longest = max(tiled.dims[tiled.along], tiled.dims[tiled.last])
    return next((s for s in fitting if s <= longest), _SIDES[-1])


class _Square:
    """Write one square of a map, from its first index on; ``counts`` are its extents, at most
    ``side``."""

    def __init__(
        self, tiled: TransposedMap, side: int, first: Sequence[Expr], counts: Sequence[Expr]
    ) -> None:
        self._tiled, self._side, self._first = tiled, side, tuple(first)
        self._counts = counts
        self._scope: Scope = tiled.scope

    def brought(self) -> dict[Access, Array]:
        """Write the copies into shared memory of what is read across; return the array of each
        access."""
        scope, side = self._scope, self._side
        accesses = self._tiled.accesses(self._first, (side, side))
        copies = {a: scope.shared(a.array.element_type, side * (side + 1)) for a in accesses}
        with self._each("along") as (i, j):
            for access, copy in copies.items():
                place = ix.add(access.first, i, ix.multiply(j, access.pitch))
                scope.store(copy, self._place(i, j), Load(access.array, place))
        return copies

    def computed(self, copies: dict[Access, Array], write: Writer) -> None:
        """Write the loop that computes the results from the copies in shared memory."""
        scope, tiled = self._scope, self._tiled
        with self._each("last") as (i, j):
            place, values = tiled.values(self._first, (i, j), copies, self._place(i, j))
            if tiled.is_moved:  # over merged dimensions, not those of the result
                ((number,), (value,)) = tiled.numbers, values
                scope.store(write.arrays[number], ix.linearize(place, tiled.dims), value)
            else:
                write.some(tiled.numbers, place, values)

    def _place(self, i: Expr, j: Expr) -> Expr:
        return ix.add(i, ix.multiply(j, self._side + 1))

    @contextmanager
    def _each(self, near: str) -> Iterator[tuple[Expr, Expr]]:
        """Open the loop of the threads over a square; yield the place (i, j) in it.

        Neighbouring threads are neighbours along dimension ``near``.
        """
        side = self._side
        with nest.threads(self._scope, side, side, 0 if near == "along" else 1) as place:
            inside = [
                apply("compare-LT", at, count, type=PRED)
                for at, count in zip(place, self._counts)
                if ix.value_of(count) != side
            ]
            if not inside:
                yield place
                return
            with self._scope.when(apply("and", *inside) if len(inside) > 1 else inside[0]):
                yield place
