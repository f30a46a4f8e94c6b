"""Convert rows of f16 to and from f32 in loops of their own, a block of elements at a time.

Processors convert eight numbers between f16 and f32 by one instruction, of which gcc 12 makes no
vectors: it has a dozen operations for each number in a loop in lanes. So such a loop is distributed
(:mod:`backend_c.render.loop_distribution`) over its loads and stores of neighbouring elements of
f16: runtime/hlo_half.h converts a block, the rest is on f32. A sum of two arrays takes a quarter of
the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
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
)
from backend_c.render.c_types import is_converted
from backend_c.render.lane_offsets import LaneOffsets
from backend_c.render.loop_distribution import Distribution, Points
from backend_c.render.loop_stages import Lanes, Point
from hlo.types import F16, F32, ElementType

_LEAST = 16  # trips of a loop: two vectors
_MOST = 32  # points in a loop: each takes an array on the stack


def with_converted_halves(kernel: Kernel) -> Kernel:
    """Distribute a kernel's loops in lanes over their unit-stride loads and stores of f16."""
    return replace(kernel, body=_Conversions().block(kernel.body))


class _Conversions(Distribution):
    letter = "h"
    block_size = 128

    def points(self, loop: Loop, number: str) -> Points:
        return _Halves(loop, number)


@dataclass(frozen=True, slots=True)
class _Row(Point):
    """Represent the conversion of consecutive f16 elements: a load if it has a result, else a
    store.

    ``first`` is the offset where the loop's variable is 0.
    """

    memory: Array
    first: Expr
    arguments: tuple[Expr, ...]
    results: tuple[Variable, ...]

    @property
    def argument_type(self) -> ElementType:
        return F32

    def statement(
        self, arguments: Sequence[Array], results: Sequence[Array], lanes: Lanes
    ) -> Statement:
        halves = Pointer(self.memory, ix.add(self.first, lanes.start))
        values = Pointer((*arguments, *results)[0], ix.constant(0))
        if results:
            return Call("hlo_half_load", (halves, values, lanes.size))
        return Call("hlo_half_store", (values, halves, lanes.size))


class _Halves(Points):
    """Extract the unit-stride loads and stores of f16 from the statements of a loop."""

    def __init__(self, loop: Loop, number: str) -> None:
        super().__init__(loop, number)
        self._offsets = LaneOffsets(loop)
        self._stores = Counter(s.array.name for s in loop.body if isinstance(s, Store))
        self._left = _MOST if ix.bounds(loop.extent)[1] >= _LEAST else 0

    def taken(self, value: Apply | Load) -> Expr:
        """Replace a load by the result of a row's conversion; return others unchanged."""
        first = self._first(value.array, value.offset) if isinstance(value, Load) else None
        if first is None:
            return value
        assert isinstance(value, Load)
        result = self.result(F16)
        self._offsets.varying.add(result.name)
        self.items.append(_Row(value.array, first, (), (result,)))
        return result

    def stored(self, store: Store) -> Store | Point:
        """Replace a store by a row's conversion; return it unchanged if it is none.

        An array that the loop stores to twice keeps its stores, whose order matters.
        """
        is_alone = self._stores[store.array.name] == 1
        first = self._first(store.array, store.offset) if is_alone else None
        return store if first is None else _Row(store.array, first, (store.value,), ())

    def _first(self, array: Array, offset: Expr) -> Expr | None:
        """Return the offset at index 0 of a unit-stride access of f16; None for any other access.

        The rest of the offset must be loop-invariant, and computed without loads.
        """
        if array.element_type is not F16 or not is_converted(array) or not self._left:
            return None
        if array.memory is not None:
            return None
        found = self._offsets.split(offset)
        if found is None or found.stride != 1:
            return None
        self._left -= 1
        return found.first
