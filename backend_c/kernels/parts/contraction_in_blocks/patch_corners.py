"""Cache the first elements (corners) of a tile's patches in shared memory.

The position of a window takes divisions of a row's number; all steps of a row share it.
"""

from __future__ import annotations

from backend_c.elemental.data_movement import all_of
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import INDEX, Array, Expr, Load
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.factors import Patches
from hlo.types import PRED, S32, S64

_LIMIT = 2**31


class PatchCorners:
    """Write the corners of a tile's patches to shared memory, and read factors relative to them."""

    def __init__(self, patches: Patches, lines: int, scope: Scope) -> None:
        self._patches, self._lines, self._scope = patches, lines, scope
        self._kept: list[Array] = []
        self._bounds: list[tuple[int, int]] = []

    def bring(self, b: Expr, first: Expr, count: int) -> None:
        """Write the corners of the tile's rows, from ``first`` of ``count`` on, to shared
        memory."""
        scope = self._scope
        with scope.undone():
            any_corner = self._corner(b, ix.clamp(0, ix.add(first, ix.constant(0)), count - 1))
        types = [S32 if _is_narrow(one) else S64 for one in any_corner]
        self._kept = [scope.shared(kind, self._lines) for kind in types]
        with scope.loop(self._lines, "threads") as own:
            corner = self._corner(b, scope.bind(ix.clamp(0, ix.add(first, own), count - 1)))
            self._bounds = list(map(ix.bounds, corner))
            for array, value in zip(self._kept, corner, strict=True):
                scope.store(array, own, apply("convert", value, type=array.element_type))

    def _corner(self, b: Expr, line: Expr) -> tuple[Expr, ...]:
        offset, index = self._patches.corner(b, line)
        return (offset, *index)

    def factor(self, b: Expr, own: Expr, step: Expr) -> tuple[Expr, tuple[Expr, ...]]:
        """Return the factor of a row of the tile at a step, and its conditions."""
        scope = self._scope
        corner = [
            scope.bounded(apply("convert", scope.load(array, own), type=INDEX), *bounds)
            for array, bounds in zip(self._kept, self._bounds, strict=True)
        ]
        offset, index, conditions = self._patches.within(b, step)
        for start, way, extent in zip(corner[1:], index, self._patches.extents, strict=True):
            at, last = ix.add(start, way), ix.constant(extent - 1)
            conditions = (*conditions, apply("within", at, ix.constant(0), last, type=PRED))
        place = ix.add(corner[0], offset)
        if not conditions:
            return Load(self._patches.array, place), ()
        counts = scope.bind(all_of(conditions))
        # The load may be done before its condition is looked at, or be a copy under way that takes
        # an address in any case: that of an element which exists.
        place = apply("select", counts, place, ix.constant(0), type=INDEX)
        return Load(self._patches.array, place), (counts,)


def _is_narrow(index: Expr) -> bool:
    low, high = ix.bounds(index)
    return low >= -_LIMIT and high < _LIMIT
