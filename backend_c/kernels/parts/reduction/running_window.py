"""Describe windows that only grow from each position to the next: cumulative sums, in one pass.

Along one dimension the window of position o holds the elements up to o - padding_low + size - 1 (a
*prefix*, if no window starts beyond the first element), or those from o - padding_low on (a
*suffix*, if every window reaches the last element; taken from the last position down).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import apply
from hlo.attributes import WindowDimension
from hlo.types import PRED


@dataclass(frozen=True, slots=True)
class Growth:
    """Describe how windows grow by one element from step to step.

    ``before`` elements are in the first window, without the one that step 0 brings.
    """

    dimension: int
    extent: int  # of the operand
    positions: int  # of the result
    before: int
    first: int  # the element that step 0 brings, if it is one; and so on, by ``direction``
    direction: int  # 1 for a prefix, -1 for a suffix

    def window_position(self, step: Expr) -> Expr:
        """Return the window position of a step."""
        return step if self.direction == 1 else ix.subtract(self.positions - 1, step)

    def element_before(self, number: Expr) -> Expr:
        """Return the index of an element of the first window by its number, in scan order."""
        return number if self.direction == 1 else ix.subtract(self.extent - 1, number)

    def element(self, step: Expr) -> tuple[Expr, list[Expr]]:
        """Return the index of the element that a step brings, and its conditions."""
        position = ix.add(ix.multiply(step, self.direction), self.first)
        low, high = ix.bounds(position)
        if low >= 0 and high < self.extent:
            return position, []
        end = ix.constant(self.extent - 1)
        inside = apply("within", position, ix.constant(0), end, type=PRED)
        return ix.clamp(0, position, self.extent - 1), [inside]


def growth(
    windows: Sequence[WindowDimension],
    dims: Sequence[int],
    positions: Sequence[int],
    backwards: bool,
) -> Growth | None:
    """Recognise windows over ``dims`` as prefixes or suffixes; None if they are neither.

    They must grow along one dimension and be single elements along the others. ``backwards``:
    suffixes may be taken, as the order of addition does not matter.
    """
    wide = [d for d, window in enumerate(windows) if not _is_single(window)]
    if len(wide) != 1 or 0 in dims or 0 in positions:
        return None
    (d,) = wide
    window, extent, count = windows[d], dims[d], positions[d]
    if (window.stride, window.base_dilation, window.window_dilation) != (1, 1, 1):
        return None
    low = window.padding_low
    if low >= count - 1:
        last = window.size - 1 - low  # of the first window
        return Growth(d, extent, count, min(max(last, 0), extent), last, 1)
    if backwards and window.size - low >= extent:
        start = count - 1 - low  # of the last window
        before = min(max(extent - 1 - start, 0), extent)
        return Growth(d, extent, count, before, start, -1)
    return None


def _is_single(window: WindowDimension) -> bool:
    """Return whether a window is one element at every position."""
    return (window.size, window.stride, window.base_dilation) == (1, 1, 1) and (
        window.padding_low == window.padding_high == 0
    )
