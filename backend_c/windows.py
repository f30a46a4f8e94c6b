"""Where windows that slide over an array read."""

from __future__ import annotations

from backend_c import index as ix
from backend_c.loop_ir import Constant, Expr
from backend_c.scope import apply
from hlo.attributes import WindowDimension
from hlo.types import PRED


def position(
    output: Expr, tap: Expr, dimension: WindowDimension, extent: int, conditions: list[Expr]
) -> Expr:
    """The operand's index of place ``tap`` of window ``output`` along a dimension, brought into
    bounds; adds the conditions under which there is an element, not padding or a hole."""
    padded = ix.add(
        ix.multiply(output, dimension.stride),
        ix.multiply(tap, dimension.window_dilation),
        -dimension.padding_low,
    )
    end = (extent - 1) * dimension.base_dilation
    low, high = ix.bounds(padded)
    if not extent:
        conditions.append(Constant(PRED, False))
    elif low < 0 or high > end:
        conditions.append(apply("within", padded, ix.constant(0), ix.constant(end), type=PRED))
    inside = ix.clamp(0, padded, max(end, 0))
    if dimension.base_dilation > 1:
        hole = ix.modulo(inside, dimension.base_dilation)
        conditions.append(apply("compare-EQ", hole, ix.constant(0), type=PRED))
    return ix.divide(inside, dimension.base_dilation)
