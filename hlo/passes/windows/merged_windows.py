"""Slide windows along a dimension and the few elements behind it as along one dimension.

    windows of size k along w of x[h, w, c]   are   windows of size k dilate c along x[h, w c]

Neighbours in memory are lanes: three channels of an image fill no vector, the channels of all its
pixels do.
"""

from __future__ import annotations

import math
from dataclasses import replace

from hlo.attributes import Window, WindowDimension
from hlo.module import Instruction, Module
from hlo.passes.rewriting import Rebuilt, array, each_of
from hlo.types import ArrayShape

_FEW = 16  # elements, which fill no vector
_SHORT = 16  # elements of a window
_NONE = WindowDimension(1)


def merged_windows(module: Module) -> Module:
    """Merge the last dimensions of reduce-windows of one array that have few elements and no
    window."""
    return each_of(module, ("reduce-window",), _merged)


def _merged(rebuilt: Rebuilt, instruction: Instruction) -> Instruction | None:
    """Return the windows of a reshaped operand in the result's shape; None if nothing is merged."""
    shape, window = instruction.shape, instruction.attributes.get("window")
    if not isinstance(shape, ArrayShape) or not isinstance(window, Window):
        return None
    operand = array(rebuilt.definitions[instruction.operands[0]].shape)
    if len(instruction.operands) != 2 or operand.is_dynamic:
        return None
    last = max((d for d, one in enumerate(window.dimensions) if one != _NONE), default=-1)
    few = math.prod(operand.dims[last + 1 :])
    if last < 0 or last == operand.rank - 1 or not 0 < few < _FEW:
        return None
    along = window.dimensions[last]
    is_long = along.size > _SHORT  # cumulative sums are such, which are known by their shape
    if is_long or (few > 1 and not along.stride == along.base_dilation == 1):
        return None
    merged = replace(
        along,
        padding_low=few * along.padding_low,
        padding_high=few * along.padding_high,
        window_dilation=few * along.window_dilation,
    )
    shapes = [
        ArrayShape(one.element_type, (*one.dims[:last], one.dims[last] * few))
        for one in (operand, shape)
    ]
    data, init = instruction.operands
    attributes = {**instruction.attributes, "window": Window((*window.dimensions[:last], merged))}
    source = rebuilt.add_part(instruction, "source", shapes[0], "reshape", (data,))
    windows = rebuilt.add_part(
        instruction, "windows", shapes[1], "reduce-window", (source, init), **attributes
    )
    return instruction._replace(opcode="reshape", operands=(windows,), attributes={})
