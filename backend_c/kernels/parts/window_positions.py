"""Compute where windows that slide over an array read."""

from __future__ import annotations

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import apply
from hlo.attributes import WindowDimension
from hlo.types import PRED

_MOST = 1 << 62  # more than there is room for


def position(
    output: Expr, tap: Expr, dimension: WindowDimension, extent: int, conditions: list[Expr]
) -> Expr:
    """Return the operand's index of a tap of a window, clamped into bounds.

    Appends the conditions under which there is an element, not padding or a hole of base dilation.
    """
    padded = ix.add(
        ix.multiply(output, dimension.stride),
        ix.multiply(tap, dimension.window_dilation),
        -dimension.padding_low,
    )
    end = (extent - 1) * dimension.base_dilation
    low, high = ix.bounds(padded)
    if not extent:
        conditions.append(Constant(PRED, False))
    # The bounds of loop variables show that most windows never leave the operand: no test then.
    elif low < 0 or high > end:
        conditions.append(apply("within", padded, ix.constant(0), ix.constant(end), type=PRED))
    inside = ix.clamp(0, padded, max(end, 0))
    if dimension.base_dilation > 1:
        hole = ix.modulo(inside, dimension.base_dilation)
        conditions.append(apply("compare-EQ", hole, ix.constant(0), type=PRED))
    return ix.divide(inside, dimension.base_dilation)


def position_count(size: Expr, window: WindowDimension) -> Expr:
    """Return the number of window positions along a dimension of an actual size.

    (dilated size + padding - dilated window) / stride + 1, at least 0.
    """
    spread = ix.add(ix.multiply(size, window.base_dilation), 1 - window.base_dilation)
    reach = (window.size - 1) * window.window_dilation + 1
    padding = window.padding_low + window.padding_high
    room = ix.add(ix.clamp(0, spread, _MOST), padding - reach + window.stride)
    return ix.divide(ix.clamp(0, room, _MOST), window.stride)
