"""Hoist what a loop in lanes chooses by out of it, as integers as wide as what is chosen.

Rows of a stencil are summed under conditions on the row, ``0 <= i - 1 ? a[i - 1][j] : 0``, which no
lane changes. gcc has no vectors of a truth value that is not computed in the loop, and leaves such
loops scalar (a row of 96 floats takes 220 ns in place of 20). A mask is a number like others:

    on = 0 <= i - 1 ? -1 : 0
    for j in lanes: r[j] = on != 0 ? a[i - 1][j] : 0
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backend_c.ir.loop_ir import (
    Apply,
    Constant,
    Expr,
    Let,
    Load,
    Loop,
    Mutable,
    Statement,
    Variable,
    every,
    subexpressions,
)
from backend_c.ir.loop_rewriting import with_blocks, with_expressions, with_operands
from hlo.types import PRED, S8, S16, S32, S64, ElementType

_MASKS = {8: S8, 16: S16, 32: S32, 64: S64}  # by the bits of what is chosen


def with_hoisted_conditions(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Hoist the invariant conditions of selects out of the loops in lanes of a kernel."""
    return _Hoisting().block(body)


class _Hoisting:
    """Hoist the conditions of one kernel; names of masks are numbered."""

    def __init__(self) -> None:
        self._names = 0

    def block(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """Hoist conditions in statements, each to where the loop begins."""
        changed: list[Statement] = []
        for statement in statements:
            inner = with_blocks(statement, self.block)
            if isinstance(inner, Loop) and inner.kind == "lanes":
                hoisting = _OneLoop(inner, self._names)
                inner = hoisting.loop()
                self._names += len(hoisting.masks)
                changed.extend(hoisting.lets())
            changed.append(inner)
        return tuple(changed)


class _OneLoop:
    """Hoist the conditions of one loop; ``masks`` are their variables."""

    def __init__(self, loop: Loop, names: int) -> None:
        self._loop, self._first = loop, names
        self._own = {loop.variable.name, *_bound(loop.body)}
        self.masks: dict[tuple[Expr, ElementType], Variable] = {}

    def loop(self) -> Loop:
        """Return the loop with masks in place of its invariant conditions."""
        return self._loop._replace(body=self._block(self._loop.body))

    def lets(self) -> Iterator[Let]:
        """Yield the definitions of the masks."""
        for (condition, kind), mask in self.masks.items():
            ends = Constant(kind, -1), Constant(kind, 0)
            yield Let(mask, Apply("select", (condition, *ends), kind))

    def _block(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        return tuple(
            with_blocks(with_expressions(statement, self._changed), self._block)
            for statement in statements
        )

    def _changed(self, value: Expr) -> Expr:
        """Return an expression whose selects ask masks."""
        value = with_operands(value, self._changed)
        if not isinstance(value, Apply) or value.operation != "select":
            return value
        condition, *choices = value.operands
        kind = _MASKS.get(value.type.bits) if not value.type.is_complex else None
        if kind is None or not self._is_invariant(condition):
            return value
        mask = Variable(kind, f"on{self._first + len(self.masks) + 1}")
        mask = self.masks.setdefault((condition, kind), mask)
        is_on = Apply("compare-NE", (mask, Constant(kind, 0)), PRED)
        return value._replace(operands=(is_on, *choices))

    def _is_invariant(self, condition: Expr) -> bool:
        """Return whether a condition is one of variables from outside the loop, and of no load,
        which need not be in bounds where the loop has no trip."""
        parts = list(subexpressions(condition))
        named = [part for part in parts if isinstance(part, Variable)]
        is_stable = all(not one.mutable and one.name not in self._own for one in named)
        return bool(named) and is_stable and not any(isinstance(part, Load) for part in parts)


def _bound(body: Sequence[Statement]) -> Iterator[str]:
    """Yield the names that statements bind, those inside them, too."""
    for statement in every(body):
        match statement:
            case Let(variable, _) | Mutable(variable, _) | Loop(variable):
                yield variable.name
