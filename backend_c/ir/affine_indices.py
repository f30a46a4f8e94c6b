"""Recover affine indices where a program computes them as integers.

Frames of a signal, diagonals and windows are gathers whose start indices come from iotas:

    v = (int)i + (int)j;  a[clamp(0, (index)v, 9999)]        becomes        a[i + j]

if intervals prove that no integer wraps around. What is left is affine: a load of neighbouring
elements instead of a gather, and no clamp where the bounds are inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from backend_c.ir import index as ix
from backend_c.ir.integer_ranges import is_in, is_whole
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Constant,
    Expr,
    Statement,
    Variable,
    is_mutable,
    subexpressions,
)
from backend_c.ir.loop_rewriting import with_operands
from backend_c.ir.ranged_rewriting import RangedRewriting

_MOST = 1 << 53  # of an integer that may be an index
_LONGEST = 200  # subexpressions: u / 3 + u % 5 of such a u has twice as many


def with_affine_indices(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Rewrite indices computed as integers to affine forms of loop variables, where that is
    exact."""
    return _Indices().body(body)


class _Indices(RangedRewriting):
    """Replace conversions from integers to indices by index arithmetic."""

    def __init__(self) -> None:
        super().__init__()
        self._variables: dict[str, tuple[Expr, Expr | None]] = {}

    def rewritten(self, value: Expr) -> Expr:
        """Return an expression with its indices rewritten."""
        match value:
            case Apply("convert", (source,), element_type) if element_type is INDEX:
                found = self._number(source) if source.type is not INDEX else None
                if found is not None:
                    return found
            case Apply("clamp", (Constant(_, low), index, high), element_type) if (
                element_type is INDEX and self._is_inside(index, int(low), high)  # type: ignore[arg-type]
            ):
                return self.rewritten(index)
        again = with_operands(value, self.rewritten)
        if isinstance(again, Apply) and again.type is INDEX and again != value:
            return ix.refolded(again)
        return again

    def _is_inside(self, index: Expr, low: int, high: Expr) -> bool:
        """Return whether an index converted from an integer is provably within [low, high]."""
        match index:
            case Apply("convert", (source,), _) if source.type is not INDEX:
                least, most = self.ranges.of(source)
                return low <= least and most <= ix.bounds(high)[0]
        return False

    def _variable(self, variable: Variable) -> Expr | None:
        """Return a variable's definition as index arithmetic; None if it is none, or too long.

        Each is asked for once: a chain of v = u + u has two paths for each link.
        """
        bound = self.ranges.definition(variable)
        if bound is variable:
            return None
        known = self._variables.get(variable.name)
        if known is None or known[0] is not bound:
            number = self._number(bound)
            if number is not None and _is_long(number):
                number = None
            known = self._variables[variable.name] = bound, number
        return known[1]

    def _number(self, value: Expr) -> Expr | None:
        """Return an integer expression as index arithmetic; None if it may wrap around, or is
        none."""
        if max(map(abs, self.ranges.of(value))) > _MOST:
            return None
        match value:
            case Constant(_, number):
                return ix.constant(int(number))  # type: ignore[arg-type]
            case Variable():
                return self._variable(value)
            case Apply("convert", (source,), element_type):
                if not is_whole(source.type) or not is_in(self.ranges.of(source), element_type):
                    return None
                if source.type is not INDEX:
                    return self._number(source)
                # What changes may have changed since the variable was bound.
                is_fixed = not any(map(is_mutable, subexpressions(source)))
                return self.rewritten(source) if is_fixed else None
            case Apply(operation, operands, _) if operation in _RULES and self.ranges.fits(value):
                numbers = [self._number(operand) for operand in operands]
                known_numbers = [number for number in numbers if number is not None]
                complete = len(known_numbers) == len(numbers)
                return _RULES[operation](*known_numbers) if complete else None
            case _:
                return None


def _is_long(value: Expr) -> bool:
    return len([*islice(subexpressions(value), _LONGEST)]) == _LONGEST


def _product(one: Expr, other: Expr) -> Expr | None:
    """Build a product with a constant factor; None if neither factor is constant."""
    factor = ix.value_of(other)
    if factor is not None:
        return ix.multiply(one, factor)
    factor = ix.value_of(one)
    return None if factor is None else ix.multiply(other, factor)


def _quotient(one: Expr, other: Expr) -> Expr | None:
    """Build a quotient of a value >= 0 by a positive constant; None for others."""
    divisor = ix.value_of(other) or 0
    return ix.divide(one, divisor) if divisor > 0 and ix.bounds(one)[0] >= 0 else None


def _remainder(one: Expr, other: Expr) -> Expr | None:
    """Build a remainder of a value >= 0 by a positive constant; None for others."""
    divisor = ix.value_of(other) or 0
    return ix.modulo(one, divisor) if divisor > 0 and ix.bounds(one)[0] >= 0 else None


def _greater(one: Expr, other: Expr) -> Expr | None:
    """Build a maximum with a constant; None if neither operand is constant."""
    for value, least in ((one, ix.value_of(other)), (other, ix.value_of(one))):
        if least is not None:
            # Indices have clamps, not maxima: the upper end is one that the value never passes.
            return ix.clamp(least, value, max(least, ix.bounds(value)[1]))
    return None


def _less(one: Expr, other: Expr) -> Expr | None:
    """Build a minimum with a constant; None if neither operand is constant."""
    for value, most in ((one, ix.value_of(other)), (other, ix.value_of(one))):
        if most is not None:
            return ix.clamp(min(most, ix.bounds(value)[0]), value, most)
    return None


# From the operands of operations on integers that do not wrap around; None for what is no index.
_RULES: dict[str, Callable[..., Expr | None]] = {
    "add": ix.add,
    "subtract": ix.subtract,
    "negate": lambda one: ix.multiply(one, -1),
    "multiply": _product,
    "divide": _quotient,
    "remainder": _remainder,
    "maximum": _greater,
    "minimum": _less,
}
