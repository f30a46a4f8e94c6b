"""Reduce floats into an array of partial sums, one per lane, and add those up pairwise.

A loop with a ``reduction`` clause leaves the sums of the lanes to the compiler, and gcc adds them
up one after the other, as the order of float additions is the program's: 64 cycles for 16 lanes,
more than the rest of a row of hundreds of elements takes. The partial sums are an array here,
which compilers keep in registers, and hlo_lanes.h adds them up. In ``fast`` numerics any order is
right; this one depends on the loop's extent alone.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Address,
    Array,
    Assign,
    Call,
    Constant,
    Expr,
    Kernel,
    Let,
    Load,
    LocalArray,
    Loop,
    Pointer,
    Statement,
    Store,
    Variable,
    expressions,
    parts,
    variables,
)
from backend_c.ir.loop_rewriting import with_instead, with_loops
from backend_c.ir.settings import Numerics
from hlo.types import F32, F64

_WIDTHS = ((128, 64), (32, 32), (16, 16))  # from so many elements on: lanes of all sums
# -0.0 + x is x for every x, where +0.0 would make +0 of a sum of negative zeros.
_IDENTITY = {"+": -0.0, "*": 1.0}
_OPERATIONS = {"+": "add", "*": "multiply"}


def with_lane_sums(kernel: Kernel) -> Kernel:
    """Return a kernel of ``fast`` numerics whose float reductions have explicit partial sums."""
    if kernel.numerics is not Numerics.FAST:
        return kernel
    return replace(kernel, body=_LaneSums().block(kernel.body))


class _LaneSums:
    """Rewrite the loops of one kernel; a counter makes new names unique."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._summed = set[str]()

    def block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rewrite statements."""
        return with_loops(body, self._loop)

    def _loop(self, loop: Loop) -> Sequence[Statement]:
        _, most = ix.bounds(loop.extent)
        if most >= _WIDTHS[-1][0] and _is_sum(loop):
            return tuple(self._in_lanes(loop, most))
        return (loop._replace(body=self.block(loop.body)),)

    def _in_lanes(self, loop: Loop, most: int) -> Iterator[Statement]:
        """Yield the statements of a reduction of at most ``most`` elements: identities, whole
        groups of lanes, remainder, totals."""
        number, extent = next(self._numbers), loop.extent
        if ix.value_of(extent) is None:
            extent = Variable(INDEX, f"e{number}", 0, most)
            yield Let(extent, loop.extent)
        width = next(lanes for least, lanes in _WIDTHS if most >= least)
        # All sums share the registers; hlo_lanes.h adds up multiples of 16.
        width = max(width // len(loop.sums) // 16 * 16, 16)
        lane = Variable(INDEX, f"l{number}", 0, width - 1)
        # Several loops may add to a sum, one after the other.
        again = "" if self._summed.isdisjoint(one.name for one in loop.sums) else f"x{number}"
        self._summed |= {one.name for one in loop.sums}
        arrays = {
            one: Array(f"t{one.name}{again}", one.type, width, mutable=True, is_local=True)
            for one in loop.sums
        }
        identity = _IDENTITY[loop.operator]
        yield from map(LocalArray, arrays.values())
        start = [Store(a, lane, Constant(a.element_type, identity)) for a in arrays.values()]
        yield Loop(lane, ix.constant(width), "lanes", tuple(start))
        inside = tuple(_in_lane(statement, arrays, lane) for statement in loop.body)
        groups, rest = ix.divide(extent, width), ix.modulo(extent, width)
        group = Variable(INDEX, f"g{number}", 0, max(0, most // width - 1))
        place = ix.add(ix.multiply(group, width), lane)
        whole = Loop(lane, ix.constant(width), "lanes", (*_bound(loop, place), *inside))
        yield Loop(group, groups, "serial", (whole,))
        if ix.value_of(rest) != 0:
            last = Variable(INDEX, lane.name, 0, max(0, ix.bounds(rest)[1] - 1))
            place = ix.add(last, ix.multiply(groups, width))
            yield Loop(last, rest, "lanes", (*_bound(loop, place), *inside))
        for one, array in arrays.items():
            function = f"hlo_lanes_{_OPERATIONS[loop.operator]}_{one.type}"
            pointer = Pointer(array, ix.constant(0))
            yield Call(function, (pointer, ix.constant(width), Address(one)))


def _bound(loop: Loop, place: Expr) -> tuple[Statement, ...]:
    """Bind a loop's variable to an index, if its body uses it; else return nothing."""
    used = {name for s in loop.body for e in expressions(s) for name in variables(e)}
    return (Let(loop.variable, place),) if loop.variable.name in used else ()


def _is_sum(loop: Loop) -> bool:
    """Return whether a loop in lanes sums or multiplies floats, each total assigned once."""
    if loop.kind != "lanes" or loop.operator not in _IDENTITY or not loop.sums:
        return False
    if any(one.type not in (F32, F64) for one in loop.sums):
        return False
    read = [part for part in parts(loop.body) if part in loop.sums]
    assigned = [s.variable for s in loop.body if isinstance(s, Assign)]
    known = all(isinstance(s, Let | Store | Assign) for s in loop.body)
    return known and Counter(read) == Counter(assigned) == Counter(loop.sums)


def _in_lane(statement: Statement, arrays: dict[Variable, Array], lane: Variable) -> Statement:
    """Redirect an assignment to a total to the partial sum of the lane; others stay."""
    if not isinstance(statement, Assign):
        return statement
    array = arrays[statement.variable]
    instead: dict[Variable | Load, Expr] = {statement.variable: Load(array, lane)}
    return Store(array, lane, with_instead(statement.value, instead))
