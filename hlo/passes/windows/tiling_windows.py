"""Reduce the blocks of an array instead of sliding a window by its own size.

    windows of size k by k of x[n k]   are   reduce(reshape(x, [n, k]), dimensions={1})

A kernel of windows has the results of neighbouring windows in lanes, which are far from each other
in memory. One of reductions knows where the elements of a block lie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hlo.attributes import Window, WindowDimension
from hlo.module import Instruction, Module
from hlo.passes.index_paths import WRITTEN_OUT
from hlo.passes.rewriting import Rebuilt, array, each_of
from hlo.types import ArrayShape

# Neighbours in a block: rows of fewer, one above the other, fill no vectors. Sums of
# f32[8,16,30,30] by 5 x 5 take 23 us by windows and 36 by blocks, of f32[8,16,32,32] by 8 x 8 100
# by windows and 57 by blocks.
_SHORTEST_RUN = 8


def tiling_windows(module: Module) -> Module:
    """Replace reduce-windows of one array whose windows do not overlap, and have more elements than
    are written out; those of bounded arrays stay."""
    return each_of(module, ("reduce-window",), _reduced)


def _reduced(rebuilt: Rebuilt, instruction: Instruction) -> Instruction | None:
    """Return the reduction of an operand's blocks, which is sliced and reshaped before it."""
    shape, window = instruction.shape, instruction.attributes.get("window")
    if len(instruction.operands) != 2 or not isinstance(shape, ArrayShape):
        return None
    operand = array(rebuilt.definitions[instruction.operands[0]].shape)
    if operand.is_dynamic or 0 in shape.dims or not isinstance(window, Window):
        return None
    sizes = [one.size for one in window.dimensions]
    if not all(map(_tiles, window.dimensions, shape.dims)):
        return None
    if math.prod(sizes) <= WRITTEN_OUT or 1 < _run(sizes, shape.dims) < _SHORTEST_RUN:
        return None
    data, init = instruction.operands
    covered = [size * count for size, count in zip(sizes, shape.dims, strict=True)]
    if tuple(covered) != operand.dims:
        bounds = tuple((0, extent, 1) for extent in covered)
        part = ArrayShape(operand.element_type, tuple(covered))
        data = rebuilt.add_part(instruction, "covered", part, "slice", (data,), slice=bounds)
    dims, reduced = list[int](), list[int]()
    for size, count in zip(sizes, shape.dims, strict=True):
        dims.append(count)
        if size > 1:
            reduced.append(len(dims))
            dims.append(size)
    blocks = ArrayShape(operand.element_type, tuple(dims))
    data = rebuilt.add_part(instruction, "blocks", blocks, "reshape", (data,))
    attributes = {n: a for n, a in instruction.attributes.items() if n != "window"}
    attributes["dimensions"] = tuple(reduced)
    return instruction._replace(opcode="reduce", operands=(data, init), attributes=attributes)


def _tiles(along: WindowDimension, count: int) -> bool:
    """Return whether ``count`` windows follow each other from the first element on."""
    by_itself = along.stride if count > 1 else along.size
    return along == WindowDimension(along.size, along.stride) and by_itself == along.size


def _run(sizes: Sequence[int], counts: Sequence[int]) -> int:
    """Return how many neighbours in memory belong to one block."""
    run = 1
    for size, count in zip(reversed(sizes), reversed(counts), strict=True):
        run *= size
        if count > 1:
            break
    return run
