"""Windows that only grow from each place to the next: cumulative sums and their like, in one pass.

Along one dimension the window of place o holds the elements up to o - padding_low + size - 1 (a
*prefix*, if no window starts beyond the first element), or those from o - padding_low on (a
*suffix*, if every window reaches the last element; taken from the last place down).
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
    """``before`` elements are in the first window taken, but for the one that step 0 brings."""

    dimension: int
    extent: int  # of the operand
    places: int  # of the result
    before: int
    first: int  # the element that step 0 brings, if it is one; and so on, by ``direction``
    direction: int  # 1 for a prefix, -1 for a suffix

    def place(self, step: Expr) -> Expr:
        """Where step number ``step`` writes."""
        return step if self.direction == 1 else ix.subtract(self.places - 1, step)

    def element_before(self, number: Expr) -> Expr:
        """Of the ``before`` elements; those of a prefix in their order."""
        return number if self.direction == 1 else ix.subtract(self.extent - 1, number)

    def element(self, step: Expr) -> tuple[Expr, list[Expr]]:
        """The element that a step brings, and the conditions under which there is one."""
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
    places: Sequence[int],
    backwards: bool,
) -> Growth | None:
    """How windows over ``dims`` grow, if they do along one dimension and are single elements along
    the others; ``backwards``: suffixes may be taken."""
    wide = [d for d, window in enumerate(windows) if not _is_single(window)]
    if len(wide) != 1 or 0 in dims or 0 in places:
        return None
    (d,) = wide
    window, extent, count = windows[d], dims[d], places[d]
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
    return (window.size, window.stride, window.base_dilation) == (1, 1, 1) and (
        window.padding_low == window.padding_high == 0
    )
