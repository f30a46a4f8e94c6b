"""Load from computed offsets (gathers) in a scalar loop of their own, a block of lanes at a time.

Where the offset of a load is computed from other elements (a table that is looked up, a binary
search), neighbouring lanes load from anywhere. A compiler then leaves the whole loop scalar, or
uses an instruction that takes as long as the loads one by one, and that gcc 12 gets wrong
(docs/same_bits.md). So a loop in lanes is distributed over such loads
(:mod:`backend_c.render.loop_distribution`): offsets in lanes, loads one after the other, the rest
in lanes. A step of a binary search takes a tenth of the time.

The same goes for an offset that is clamped or goes round, of rows too short to be written in
segments (:mod:`backend_c.ir.segments`): where the loop computes elementary functions, which cost
more than storing what was loaded and loading it again, they are computed in lanes then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    NARROW_INDEX,
    Apply,
    Array,
    Expr,
    Kernel,
    Let,
    Load,
    Loop,
    Statement,
    Store,
    Variable,
    parts,
    subexpressions,
    variables,
)
from backend_c.render.c_types import is_narrow
from backend_c.render.loop_distribution import Distribution, Points
from backend_c.render.loop_stages import Lanes, Point
from backend_c.render.moved_words import as_words
from backend_c.render.narrow_indices import as_narrow_index
from hlo.opcodes import ELEMENTARY, having
from hlo.types import PRED, ElementType

_BENT = ("clamp", "divide", "modulo")  # of neighbouring lanes' offsets, which are affine no more
_DEAR = having(ELEMENTARY)
_LEAST = 8  # trips of a loop
_MOST = 16  # gathers in a loop: each takes two arrays on the stack


def with_gathered_elements(kernel: Kernel) -> Kernel:
    """Distribute a kernel's loops in lanes over their gathers."""
    return replace(kernel, body=_Loads().block(kernel.body))


class _Loads(Distribution):
    letter = "g"

    def points(self, loop: Loop, number: str) -> Points:
        return _Gathers(loop, number)


@dataclass(frozen=True, slots=True)
class _Gather(Point):
    """Represent the gather of a block: ``results[lane] = memory[arguments[lane]]``."""

    memory: Array
    lane: Variable
    arguments: tuple[Expr, ...]
    results: tuple[Variable, ...]

    @property
    def argument_type(self) -> ElementType:
        return NARROW_INDEX if self.memory.elements < 2**31 else INDEX

    def result_type(self, result: Variable) -> ElementType:
        """Return the array's own element type: the loop in lanes widens elements to registers."""
        return self.memory.element_type

    def statement(
        self, arguments: Sequence[Array], results: Sequence[Array], lanes: Lanes
    ) -> Statement:
        ((offsets,), (elements,)) = arguments, results
        element = Load(_as_stored(self.memory), Load(offsets, self.lane))
        store = Store(_as_stored(elements), self.lane, element)
        return Loop(self.lane, lanes.size, "serial", (store,))


def _as_stored(array: Array) -> Array:
    """Return an array with elements that are copied bit by bit: narrow floats and pred as words."""
    is_same = not is_narrow(array.element_type) and array.element_type is not PRED
    return array if is_same else as_words(array)


class _Gathers(Points):
    """Extract the gathers from the statements of a loop."""

    def __init__(self, loop: Loop, number: str) -> None:
        super().__init__(loop, number)
        self._lane = Variable(INDEX, f"j{number}", 0, 2**31)
        self._left = _MOST if ix.bounds(loop.extent)[1] >= _LEAST else 0
        self._varying = {loop.variable.name}  # what each lane has a value of its own of
        self._computed = set[str]()  # indices that are computed from what is none
        self._is_dear = any(
            isinstance(part, Apply) and part.operation in _DEAR and part.type.is_float
            for part in parts(loop.body)
        )
        for statement in loop.body:
            if isinstance(statement, Let):
                self._bind(statement.variable, statement.value)

    def _bind(self, variable: Variable, value: Expr) -> None:
        if self._is_computed(value):
            self._computed.add(variable.name)
        if not self._varying.isdisjoint(variables(value)):
            self._varying.add(variable.name)

    def _is_computed(self, index: Expr) -> bool:
        """Return whether an index depends on a lane-varying value of another type (on data), or is
        not affine in a loop of dear functions."""
        return any(
            part.name in self._computed
            if isinstance(part, Variable)
            else isinstance(part, Apply) and (self._is_converted(part) or self._is_bent(part))
            for part in subexpressions(index)
        )

    def _is_bent(self, part: Apply) -> bool:
        is_bent = self._is_dear and part.type is INDEX and part.operation in _BENT
        return is_bent and not self._varying.isdisjoint(variables(part))

    def _is_converted(self, part: Apply) -> bool:
        return part.type is INDEX and any(
            operand.type is not INDEX and not self._varying.isdisjoint(variables(operand))
            for operand in part.operands
        )

    def taken(self, value: Apply | Load) -> Expr:
        """Replace a load by the result of a gather; return it unchanged if its offset is affine."""
        # A block is gathered before its lanes store: arrays that they may change are left out.
        if isinstance(value, Apply) or value.array.mutable or not self._left:
            return value
        if not self._is_computed(value.offset):
            return value
        self._left -= 1
        result = self.result(value.type)
        self._varying.add(result.name)
        offset = as_narrow_index(value.offset) or value.offset  # twice as many lanes
        self.items.append(_Gather(value.array, self._lane, (offset,), (result,)))
        return result
