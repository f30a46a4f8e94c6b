"""Compute the operand's indices that sliding windows read, and the conditions of padding."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from backend_c.elemental.data_movement import all_of
from backend_c.ir import index as ix
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import Scope, apply
from hlo.attributes import WindowDimension
from hlo.types import PRED

Index = tuple[Expr, ...]

_MOST = 1 << 62  # more than there is room for


def position(
    output: Expr, tap: Expr, dimension: WindowDimension, extent: int, conditions: list[Expr]
) -> Expr:
    """Return output * stride + tap * dilation - padding_low in the operand, clamped into bounds.

    Appends the conditions under which there is an element, not padding or a hole of base dilation.
    """
    padded = ix.add(
        ix.multiply(output, dimension.stride),
        ix.multiply(tap, dimension.window_dilation),
        -dimension.padding_low,
    )
    inside = clamped(padded, (extent - 1) * dimension.base_dilation, conditions)
    if dimension.base_dilation > 1:
        hole = ix.modulo(inside, dimension.base_dilation)
        conditions.append(apply("compare-EQ", hole, ix.constant(0), type=PRED))
    return ix.divide(inside, dimension.base_dilation)


def clamped(index: Expr, end: int, conditions: list[Expr]) -> Expr:
    """Return an index clamped into 0 … end. Appends the condition that it lies there."""
    low, high = ix.bounds(index)
    if end < 0:
        conditions.append(Constant(PRED, False))
    # The bounds of loop variables show that most windows never leave the operand: no test then.
    elif low < 0 or high > end:
        conditions.append(apply("within", index, ix.constant(0), ix.constant(end), type=PRED))
    return ix.clamp(0, index, max(end, 0))


def position_count(size: Expr, window: WindowDimension) -> Expr:
    """Return the number of window positions along a dimension of an actual size.

    (dilated size + padding - dilated window) / stride + 1, at least 0.
    """
    spread = ix.add(ix.multiply(size, window.base_dilation), 1 - window.base_dilation)
    reach = (window.size - 1) * window.window_dilation + 1
    padding = window.padding_low + window.padding_high
    room = ix.add(ix.clamp(0, spread, _MOST), padding - reach + window.stride)
    return ix.divide(ix.clamp(0, room, _MOST), window.stride)


class Windows:
    """Open loops over the taps of windows over an operand, and compute the indices read."""

    def __init__(
        self,
        scope: Scope,
        operand: Element,
        dimensions: Sequence[WindowDimension],
        positions: tuple[int, ...],
    ) -> None:
        self.scope, self.operand, self.dimensions = scope, operand, dimensions
        self.positions = positions
        self.elements = math.prod(d.size for d in dimensions)

    def sizes(self) -> Index:
        """Return the actual numbers of positions of a bounded operand; () if it is static."""
        if not self.operand.sizes:
            return ()
        pairs = enumerate(self.dimensions)
        return tuple(position_count(self.operand.size(d), window) for d, window in pairs)

    def is_padded(self, d: int) -> bool:
        """Return whether windows reach into padding along a static dimension without base
        dilation."""
        dimension, extent = self.dimensions[d], self.operand.shape.dims[d]
        if self.operand.sizes or dimension.base_dilation > 1 or not extent:
            return False
        reach = (self.positions[d] - 1) * dimension.stride
        reach += (dimension.size - 1) * dimension.window_dilation - dimension.padding_low
        return dimension.padding_low > 0 or reach >= extent

    @property
    def repeat_at_edges(self) -> bool:
        """Whether what a tap in the padding reads, at the index clamped into bounds, is another
        element of the same window: one without holes that is not in the padding as a whole."""
        return not self.operand.sizes and all(
            d.window_dilation == d.base_dilation == 1
            and d.padding_low < d.size
            and (count - 1) * d.stride - d.padding_low < extent
            for d, count, extent in zip(
                self.dimensions, self.positions, self.operand.shape.dims, strict=True
            )
        )

    def at(
        self, place: Sequence[Expr], taps: Sequence[Expr], first: int = 0
    ) -> tuple[Index, list[Expr]]:
        """Return the operand's index in the dimensions from ``first`` on, and its conditions."""
        conditions: list[Expr] = []
        index: list[Expr] = []
        for d, (output, tap) in enumerate(zip(place, taps, strict=True), first):
            extent = self.operand.shape.dims[d]
            found = position(output, tap, self.dimensions[d], extent, conditions)
            if self.operand.sizes:
                size = self.operand.size(d)
                conditions.append(apply("compare-LT", found, size, type=PRED))
            index.append(found)
        return tuple(index), conditions

    def taps(self) -> AbstractContextManager[Index]:
        """Open loops over the taps of a window, row-major."""
        return self.scope.over([d.size for d in self.dimensions])

    @property
    def every_tap(self) -> list[Index]:
        """Return the taps of a window as constants, row-major."""
        taps = itertools.product(*(range(d.size) for d in self.dimensions))
        return [tuple(map(ix.constant, tap)) for tap in taps]

    def where(self, conditions: Sequence[Expr]) -> AbstractContextManager[None]:
        """Open an ``if`` on conditions, or nothing if there are none."""
        return self.scope.when(all_of(conditions)) if conditions else nullcontext()
