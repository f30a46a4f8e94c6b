"""Fold selects and integers whose value ranges leave one possibility.

Sequences of slices are written out as selects by their index, and indices are normalised as in
NumPy, ``i < 0 ? i + n : i``: often enough it is known which it is. An integer whose range is one
number is a constant: a compiler does not see it where it is computed outside of a parallel loop,
and divides by it.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir.floored_remainders import with_floored_remainder
from backend_c.ir.integer_ranges import is_whole
from backend_c.ir.loop_ir import INDICES, Apply, Constant, Expr, Statement, Variable
from backend_c.ir.loop_rewriting import with_operands
from backend_c.ir.ranged_rewriting import RangedRewriting
from hlo.types import PRED


def with_decided_selects(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Fold selects with a condition that is always or never true, and integers of one value."""
    return _Selects().body(body)


class _Selects(RangedRewriting):
    """Fold expressions by the ranges of integers."""

    def rewritten(self, value: Expr) -> Expr:
        """Return an expression with decided selects and constant integers folded."""
        if isinstance(value, Apply | Variable) and value.type not in INDICES:
            least, most = self.ranges.of(value) if is_whole(value.type) else (0, 1)
            if least == most:
                return Constant(value.type, bool(least) if value.type is PRED else least)
        if isinstance(value, Apply) and value.operation == "select":
            condition, one, other = value.operands
            least, most = self.ranges.of(condition)
            if least == most:
                return self.rewritten(one if least else other)
        if isinstance(value, Apply) and value.operation in ("and", "or") and value.type is PRED:
            return self._undecided(value)
        return with_floored_remainder(with_operands(value, self.rewritten), self.ranges)

    def _undecided(self, value: Apply) -> Expr:
        """Return a conjunction or disjunction without an operand that does not decide it."""
        neutral = int(value.operation == "and")
        for operand, other in (value.operands, value.operands[::-1]):
            if self.ranges.of(operand) == (neutral, neutral):
                return self.rewritten(other)
        return with_operands(value, self.rewritten)
