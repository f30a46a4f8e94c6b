"""Call long elementary functions for a block of elements at a time, outside of the loop in lanes.

Functions of f64 are sequences of a thousand operations. A compiler that has several of them in one
loop runs out of registers, and takes minutes to find that out. So a loop in lanes is distributed
over the calls in it (:mod:`backend_c.render.loop_distribution`):

    for block:  for lane: x[lane] = …;  hlo_log_f64_lanes(x, y, lanes);  for lane: … = y[lane]

The function itself is compiled once for a unit. Shorter functions are inlined into the loop, which
keeps their values in registers, until the copies are together as long: then those that the loop
calls several times are computed in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    Apply,
    Array,
    Call,
    Expr,
    Kernel,
    Load,
    Loop,
    Pointer,
    Statement,
    Variable,
    parts,
)
from backend_c.ir.settings import Numerics
from backend_c.render.elementary_functions import is_long, lanes_function, lines_of
from backend_c.render.loop_distribution import Distribution, Points
from backend_c.render.loop_stages import Item, Lanes, Point
from backend_c.render.operations import f64_function
from hlo.types import F64, ElementType

# Lines of functions that are copied into one loop: gcc takes 1.2 ms for each.
_MOST_COPIED = 1000
_TOGETHER = ({"cosine_f64", "sine_f64"}, {"cosine_f64_fast", "sine_f64_fast"})


def with_distributed_functions(kernel: Kernel) -> Kernel:
    """Distribute a kernel's loops in lanes over their calls of long functions."""
    return replace(kernel, body=_Functions(kernel.numerics).block(kernel.body))


class _Functions(Distribution):
    letter = ""

    def __init__(self, numerics: Numerics) -> None:
        super().__init__()
        self._numerics = numerics

    def points(self, loop: Loop, number: str) -> Points:
        return _Calls(loop, number, self._numerics)


def _called(loop: Loop, numerics: Numerics) -> Iterator[str]:
    """Yield the names of the f64 functions that the distinct operations in a loop call."""
    for part in {*parts(loop.body)}:
        name = _function(part, numerics) if isinstance(part, Apply) else None
        if name is not None:
            yield name


def _distributed(loop: Loop, numerics: Numerics) -> AbstractSet[str]:
    """Choose the functions that a loop calls for whole blocks: the long ones.

    The repeated ones join them if inlining all others would exceed ``_MOST_COPIED`` lines.
    """
    calls = Counter(_called(loop, numerics))
    long = {name for name in calls if is_long(name)}
    copied = sum(lines_of(name) * count for name, count in calls.items() if name not in long)
    if copied <= _MOST_COPIED:
        return long
    return long | {name for name, count in calls.items() if count > 1}


def _function(value: Apply, numerics: Numerics) -> str | None:
    """Return the name of the f64 function that computes an operation; None if none does."""
    if not value.operands:
        return None
    return f64_function(value.operation, value.operands[0].type, numerics)


@dataclass(frozen=True, slots=True)
class _Call(Point):
    """Represent a call for a block: several functions of the same arguments, a result each."""

    functions: tuple[str, ...]
    arguments: tuple[Expr, ...]
    results: tuple[Variable, ...]
    memory: None = None

    @property
    def argument_type(self) -> ElementType:
        return F64

    def statement(
        self, arguments: Sequence[Array], results: Sequence[Array], lanes: Lanes
    ) -> Statement:
        start = ix.constant(0)
        pointers = [Pointer(array, start) for array in (*arguments, *results)]
        return Call(f"hlo_{'_and_'.join(self.functions)}_lanes", (*pointers, lanes.size))


class _Calls(Points):
    """Extract the calls of long functions from the statements of a loop."""

    def __init__(self, loop: Loop, number: str, numerics: Numerics) -> None:
        super().__init__(loop, number)
        self._numerics = numerics
        self._distributed = _distributed(loop, numerics)

    def taken(self, value: Apply | Load) -> Expr:
        """Replace an operation by a call's result; return it unchanged if it is not distributed."""
        if isinstance(value, Load):
            return value
        name = _function(value, self._numerics)
        if name is None or name not in self._distributed:
            return value
        given = tuple(o if o.type is F64 else Apply("widen", (o,), F64) for o in value.operands)
        result = self.result(F64)
        call = _Call((lanes_function(name, value.type),), given, (result,))
        places = [n for n, item in enumerate(self.items) if _is_shared(item, call)]
        for n in places:
            other = self.items[n]
            assert isinstance(other, _Call)
            both = zip((*other.functions, name), (*other.results, result), strict=True)
            functions, results = zip(*sorted(both), strict=True)
            self.items[n] = _Call(functions, given, results)
        self.items += [call] * (not places)
        return result if value.type is F64 else Apply("round", (result,), value.type)


def _is_shared(item: Item, call: _Call) -> bool:
    """Return whether two calls are the sine and the cosine of one argument (one range
    reduction)."""
    return (
        isinstance(item, _Call)
        and item.arguments == call.arguments
        and {*item.functions, *call.functions} in _TOGETHER
    )
