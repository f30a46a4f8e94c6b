"""Cover a short row by whole vectors, the last of which overlaps the one before (no scalar
remainder).

The remainder of a loop in lanes compilers do element by element, and an elementary function of one
element, or a window's nine taps, takes as long as that of a vector. So a short row is a few blocks
of equal size, of which the last begins where one block is left:

    for i in 0 … 60: r[i] = f(a[i])

    for block in 0 … 3:  for lane in 0 … 15: i = min(16 block, 45) + lane;  r[i] = f(a[i])

The elements that two blocks have in common are computed twice, from the same operands. Compilers
choose the lanes of a loop by its narrowest type, so preds are read in a loop of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeGuard

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Constant,
    Expr,
    Kernel,
    Let,
    Load,
    LocalArray,
    Loop,
    Statement,
    Store,
    Variable,
    may_run_twice,
    parts,
    variables,
)
from backend_c.ir.loop_rewriting import with_expressions, with_instead, with_loops
from backend_c.ir.settings import Numerics
from backend_c.render.accumulated_elements import divided
from backend_c.render.lane_offsets import LaneOffsets
from backend_c.render.operations import f64_function
from hlo.opcodes import ELEMENTARY, having
from hlo.types import F64, PRED, S32

_FUNCTIONS = having(ELEMENTARY)
_VECTOR = 64  # bytes of the widest vectors
_LEAST_LANES = 4
_MANY = 30  # operations of an element, whose remainder takes as long as that of a function
_MOST_BLOCKS = 16  # in longer rows the rest does not count


def with_overlapping_blocks(kernel: Kernel) -> Kernel:
    """Return a kernel whose short rows are covered by whole blocks where an element takes long."""
    return replace(kernel, body=_Blocks(kernel.numerics).block(kernel.body))


class _Blocks:
    """Rewrite the loops of one kernel; a counter makes new names unique."""

    def __init__(self, numerics: Numerics) -> None:
        self._numerics = numerics
        self._numbers = itertools.count(1)

    def block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rewrite statements."""
        return with_loops(body, self._loop)

    def _loop(self, loop: Loop) -> Sequence[Statement]:
        extent = ix.value_of(loop.extent)
        if extent is None or loop.kind != "lanes" or loop.sums:
            return (loop._replace(body=self.block(loop.body)),)
        if may_run_twice(loop.body):
            return (self._in_blocks(loop, extent),)
        # What two blocks share is computed twice: a sum would count it twice.
        apart = divided(loop, extent, f"e{next(self._numbers)}")
        blocks = loop if apart is None else self._in_blocks(apart.computing, extent)
        if apart is None or blocks is apart.computing:
            return (loop._replace(body=self.block(loop.body)),)
        return (*apart.arrays, blocks, apart.accumulating)

    def _in_blocks(self, loop: Loop, extent: int) -> Loop:
        """Return the loop over blocks of a loop that may run twice, or that loop itself."""
        sizes = [*map(self._bytes, _functions(loop.body))]
        if not sizes and _is_long(loop):
            sizes = [max(4, *(s.value.type.bits // 8 for s in loop.body if isinstance(s, Store)))]
        has_masks = any(_is_mask(part, loop) for part in parts(loop.body))
        lanes = _lanes(extent, max(sizes), has_masks=has_masks) if sizes else 0
        return _overlapping(loop, extent, lanes, next(self._numbers)) if lanes else loop

    def _bytes(self, function: Apply) -> int:
        """Return the bytes of the numbers that an elementary function computes with: 4 or 8."""
        operand = function.operands[0].type
        is_wide = operand is F64 or f64_function(function.operation, operand, self._numerics)
        return 8 if is_wide else 4


def _lanes(extent: int, size: int, *, has_masks: bool) -> int:
    """Choose the lanes of a block for a row of ``extent`` numbers of ``size`` bytes; 0 for none.

    None if the remainder of whole and half vectors is at most one element, or if the row is so long
    that the remainder does not count. A row that reads preds has the remainder of vectors of bytes.
    """
    lanes = _VECTOR // size
    while lanes >= extent and lanes >= _LEAST_LANES:
        lanes //= 2
    if lanes < _LEAST_LANES or extent >= _MOST_BLOCKS * lanes:
        return 0
    half = lanes // 2 if lanes > _LEAST_LANES else lanes
    rest = extent % _VECTOR if has_masks else extent % half
    return lanes if rest > 1 else 0


def _functions(body: Sequence[Statement]) -> Iterator[Apply]:
    """Yield the elementary functions that statements compute."""
    for part in parts(body):
        if isinstance(part, Apply) and part.operation in _FUNCTIONS and part.operands:
            yield part


def _is_long(loop: Loop) -> bool:
    """Return whether a loop has so many operations that its remainder takes long, and reads and
    writes neighbours. (Of every second element compilers leave the last vector to the remainder, as
    it would read one element too many.)"""
    if sum(isinstance(part, Apply) for part in parts(loop.body)) < _MANY:
        return False
    lanes = LaneOffsets(loop)
    offsets = [part.offset for part in parts(loop.body) if isinstance(part, Load)]
    offsets += [statement.offset for statement in loop.body if isinstance(statement, Store)]
    found = map(lanes.split, offsets)
    return all(one is not None and one.stride in (0, 1) for one in found)


def _overlapping(loop: Loop, extent: int, lanes: int, number: int) -> Loop:
    """Build the loop over overlapping blocks that replaces a loop in lanes."""
    blocks = -(-extent // lanes)
    block = Variable(INDEX, f"b{number}", 0, blocks - 1)
    # Not "s": scratch arrays are called so.
    start = Variable(INDEX, f"first{number}", 0, extent - lanes)
    lane = Variable(INDEX, f"j{number}", 0, lanes - 1)
    place = Let(loop.variable, ix.add(start, lane))
    masks = _masks(loop, lanes, number)
    declared = [LocalArray(array) for array in masks.values()]
    read = [Store(a, lane, Apply("convert", (load,), S32)) for load, a in masks.items()]
    instead: dict[Variable | Load, Expr] = {
        load: _is_set(Load(array, lane)) for load, array in masks.items()
    }
    body = [with_expressions(s, lambda value: with_instead(value, instead)) for s in loop.body]
    begin = Let(start, ix.clamp(0, ix.multiply(block, lanes), extent - lanes))
    loops = [
        Loop(lane, ix.constant(lanes), "lanes", (place, *inside))
        for inside in (read, body)
        if inside
    ]
    return Loop(block, ix.constant(blocks), "serial", (begin, *declared, *loops))


def _masks(loop: Loop, lanes: int, number: int) -> dict[Load, Array]:
    """Allocate an s32 array for each pred that a loop loads at an index known before its lets."""
    masks = dict[Load, Array]()
    for part in parts(loop.body):
        if _is_mask(part, loop) and _bound(loop).isdisjoint(variables(part)):
            name = f"m{number}x{len(masks)}"
            masks.setdefault(part, Array(name, S32, lanes, mutable=True, is_local=True))
    return masks


def _is_mask(part: Expr, loop: Loop) -> TypeGuard[Load]:
    """Test for the load of a pred for each iteration; one pred for all of them is no mask."""
    if not (isinstance(part, Load) and part.type is PRED):
        return False
    return not {loop.variable.name, *_bound(loop)}.isdisjoint(variables(part))


def _bound(loop: Loop) -> set[str]:
    """Return the names that a loop's body binds."""
    return {statement.variable.name for statement in loop.body if isinstance(statement, Let)}


def _is_set(mask: Load) -> Expr:
    """Return an element of a mask array as a pred."""
    return Apply("compare-NE", (mask, Constant(S32, 0)), PRED)
