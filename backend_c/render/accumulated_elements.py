"""Divide a loop that accumulates into what it accumulates, and the accumulation.

for i: t[i] = t[i] + f(a[i])

for i: e[i] = f(a[i])          may be done twice, as where vectors overlap
for i: t[i] = t[i] + e[i]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from backend_c.ir.dead_lets import without_dead_lets
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Expr,
    Let,
    Load,
    LocalArray,
    Loop,
    Statement,
    Store,
    Variable,
    parts,
    subexpressions,
)
from backend_c.ir.loop_rewriting import with_operands
from hlo.types import F32, F64, S32, U32

# What registers and arrays hold alike, in lanes of the width of numbers.
_HELD = (F32, F64, S32, U32)


class Divided(NamedTuple):
    """Hold the two loops, and the arrays between them."""

    arrays: tuple[LocalArray, ...]
    computing: Loop
    accumulating: Loop


def divided(loop: Loop, extent: int, stem: str) -> Divided | None:
    """Divide a loop in lanes with ``extent`` trips; None where it is of another form, or the second
    loop would do all. The arrays' names begin with ``stem``."""
    if not all(isinstance(statement, Let | Store) for statement in loop.body):
        return None
    lets = [statement for statement in loop.body if isinstance(statement, Let)]
    stores = [statement for statement in loop.body if isinstance(statement, Store)]
    stored = {store.array.name for store in stores}
    if _loads(lets, stored) or any(_loads_elsewhere(store, stored) for store in stores):
        return None
    cut = _Cut(loop.variable, {let.variable for let in lets}, stored, extent, stem)
    kept = tuple(store._replace(value=cut.value(store.value)) for store in stores)
    if not all(array.element_type in _HELD for array in cut.arrays.values()):
        return None
    if all(isinstance(value, Load) for value in cut.arrays):
        return None  # all that is computed accumulates
    computed = [Store(array, loop.variable, value) for value, array in cut.arrays.items()]
    places = [let for let in lets if let.variable.type is INDEX]
    return Divided(
        tuple(map(LocalArray, cut.arrays.values())),
        loop._replace(body=without_dead_lets((*lets, *computed))),
        loop._replace(body=without_dead_lets((*places, *kept))),
    )


class _Cut:
    """Replaces what a value is accumulated of by an element of an array; ``arrays`` are by what is
    in them."""

    def __init__(
        self, lane: Variable, computed: set[Variable], stored: set[str], extent: int, stem: str
    ) -> None:
        self._lane, self._computed, self._stored = lane, computed, stored
        self._extent, self._stem = extent, stem
        self.arrays: dict[Expr, Array] = {}

    def value(self, value: Expr) -> Expr:
        """Return a value of the loop that accumulates."""
        if any(_is_load_of(part, self._stored) for part in subexpressions(value)):
            if _is_load_of(value, self._stored):
                return value
            return with_operands(value, self.value)
        is_computed = isinstance(value, Variable) and value in self._computed
        if not is_computed and not isinstance(value, Apply | Load):
            return value
        if value not in self.arrays:
            name = f"{self._stem}x{len(self.arrays)}"
            array = Array(name, value.type, self._extent, mutable=True, is_local=True)
            self.arrays[value] = array
        return Load(self.arrays[value], self._lane)


def _is_load_of(part: Expr, arrays: set[str]) -> bool:
    return isinstance(part, Load) and part.array.name in arrays


def _loads(statements: Sequence[Statement], arrays: set[str]) -> bool:
    return any(_is_load_of(part, arrays) for part in parts(statements))


def _loads_elsewhere(store: Store, arrays: set[str]) -> bool:
    """Test for a load of what the loop stores that is not of the element stored."""
    own = Load(store.array, store.offset)
    return any(_is_load_of(part, arrays) and part != own for part in parts((store,)))
