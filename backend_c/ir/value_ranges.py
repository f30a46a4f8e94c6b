"""Bound the floats of a kernel by interval arithmetic, to choose shorter elementary functions.

An elementary function of ``fast`` numerics may have sequences of its own for small operands
(``hlo.elementary.fast.BOUNDED``, ``BOUNDED_F64``): sine of a sine, or cosine of 2 pi times a number
below 1, takes no reduction of huge arguments. An interval holds every number that an expression may
be, NaN aside; the ends are float64, rounded to nearest, which the seams of the sequences have room
for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from backend_c.ir.integer_ranges import IntegerRanges, is_whole
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Assign,
    Constant,
    Expr,
    Let,
    Mutable,
    Statement,
    Store,
    Variable,
)
from backend_c.ir.loop_rewriting import with_blocks
from hlo.elementary.fast import BOUNDED, BOUNDED_F64, Bounded
from hlo.types import BF16, F16, F32, F64, U32, ElementType

Interval = tuple[float, float]
_Rule = Callable[..., Interval]

_ALL: Interval = (-math.inf, math.inf)
# Above pi / 2, and above the f32 next to it.
_HALF_PI = 1.5707964
_ROUNDED = 2.0**-18  # more than a fast function's result may be off, relative to 1

# What is computed in f32, by the sequences of f32.
COMPUTED_IN_F32 = frozenset((F32, F16, BF16))


def operation_of(bounded: Bounded) -> str:
    """Return the loop IR's operation for a sequence for bounded operands."""
    return bounded.name.replace("_", "-")


def _by_operation(rows: Sequence[Bounded]) -> dict[str, tuple[Bounded, ...]]:
    """Group sequences by operation, the shortest first."""
    return {one.of: tuple(other for other in rows if other.of == one.of) for one in rows}


SHORTER = _by_operation(BOUNDED)  # of what is computed in f32
_SHORTER_F64 = _by_operation(BOUNDED_F64)


def _shorter(value: Apply) -> tuple[Bounded, ...]:
    """Return an operation's sequences for bounded operands, the shortest first; () if it has
    none."""
    if value.type is F64:
        return _SHORTER_F64.get(value.operation, ())
    return SHORTER.get(value.operation, ()) if value.type in COMPUTED_IN_F32 else ()


def with_short_sequences(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Replace elementary functions of provably small operands by their short sequences."""
    return _Ranges().block(body)


def _widened(low: float, high: float) -> Interval:
    """Widen an interval by the error of a function that is not correctly rounded."""
    return low - _ROUNDED * max(1.0, abs(low)), high + _ROUNDED * max(1.0, abs(high))


def _hull(numbers: Sequence[float]) -> Interval:
    """Return the smallest interval with all numbers; the whole line if one is NaN (0 · ∞)."""
    if any(map(math.isnan, numbers)):
        return _ALL
    return min(numbers), max(numbers)


def _sum(one: Interval, other: Interval) -> Interval:
    return _hull((one[0] + other[0], one[1] + other[1]))


def _difference(one: Interval, other: Interval) -> Interval:
    return _hull((one[0] - other[1], one[1] - other[0]))


def _product(one: Interval, other: Interval) -> Interval:
    return _hull([a * b for a in one for b in other])


def _quotient(one: Interval, other: Interval) -> Interval:
    if other[0] <= 0.0 <= other[1]:
        return _ALL
    return _hull([a / b for a in one for b in other])


def _remainder(one: Interval, other: Interval) -> Interval:
    most = max(map(abs, other))
    return max(-most, min(one[0], 0.0)), min(most, max(one[1], 0.0))


def _magnitude(one: Interval) -> Interval:
    least = 0.0 if one[0] <= 0.0 <= one[1] else min(map(abs, one))
    return least, max(map(abs, one))


def _between(low: float, high: float) -> _Rule:
    """Return the rule of a function with a fixed range."""
    return lambda *operands: _widened(low, high)


def _whole(one: Interval) -> Interval:
    return one[0] - 1.0, one[1] + 1.0


# Rules for floats, from the intervals of the operands.
_FLOAT_RULES: dict[str, _Rule] = {
    "add": _sum,
    "subtract": _difference,
    "multiply": _product,
    "divide": _quotient,
    "remainder": _remainder,
    "negate": lambda one: (-one[1], -one[0]),
    "abs": _magnitude,
    "maximum": lambda one, other: (max(one[0], other[0]), max(one[1], other[1])),
    "minimum": lambda one, other: (min(one[0], other[0]), min(one[1], other[1])),
    "select": lambda _, one, other: (min(one[0], other[0]), max(one[1], other[1])),
    # 2**-8 is half a unit in the last place of bf16, the coarsest type with rules (`_applied`).
    "convert": lambda one: _hull([end * (1.0 + side * 2.0**-8) for end in one for side in (-1, 1)]),
    "floor": _whole,
    "ceil": _whole,
    "round-nearest-even": _whole,
    "round-nearest-afz": _whole,
    "sqrt": lambda one: _widened(0.0, math.sqrt(max(one[1], 0.0))),
    **{name: _between(-1.0, 1.0) for name in ("sine", "cosine", "tanh", "erf", "sign")},
    **{operation_of(one): _between(-1.0, 1.0) for one in BOUNDED},
    "logistic": _between(0.0, 1.0),
    "asin": _between(-_HALF_PI, _HALF_PI),
    "acos": _between(0.0, 2 * _HALF_PI),
    "atan2": _between(-2 * _HALF_PI, 2 * _HALF_PI),
    "unit": _between(0.0, 1.0),
}


def _as_float(word: Interval) -> Interval:
    """Return the interval of floats with encodings between two words; unbounded if some are NaN."""
    low, high = (np.uint32(int(end)) for end in word)
    if high > 0x7F800000:
        return _ALL
    # Without a sign bit, encodings are in the order of the floats.
    return float(low.view(np.float32)), float(high.view(np.float32))


class _Ranges:
    """Rewrite the statements of a kernel in order, with the intervals of variables known so far."""

    def __init__(self) -> None:
        self._known: dict[str, Interval] = {}
        self._integers = IntegerRanges()

    def block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rewrite statements."""
        return tuple(map(self._statement, body))

    def _statement(self, statement: Statement) -> Statement:
        match statement:
            case Let(variable, value):
                rewritten = self._rewritten(value)
                self._known[variable.name] = self._interval(rewritten)
                self._integers.bind(variable, rewritten)
                return statement._replace(value=rewritten)
            case Assign(_, value) | Store(_, _, value):
                return statement._replace(value=self._rewritten(value))
            case Mutable(_, initial) if initial is not None:
                return statement._replace(initial=self._rewritten(initial))
            case _:
                return with_blocks(statement, self.block)

    def _rewritten(self, value: Expr) -> Expr:
        """Return an expression with short sequences where the operands' intervals allow them."""
        if type(value) is not Apply or value.type is INDEX:
            return value
        value = value._replace(operands=tuple(map(self._rewritten, value.operands)))
        for one in _shorter(value):
            if _magnitude(self._interval(value.operands[0]))[1] <= one.largest:
                return value._replace(operation=operation_of(one))
        return value

    def _interval(self, value: Expr) -> Interval:
        """Return the interval of an expression."""
        if is_whole(value.type):
            low, high = self._integers.of(value)
            return float(low), float(high)
        match value:
            case Constant(_, number) if not isinstance(number, complex):
                return _hull((float(number),))
            case Variable(_, name) if not value.mutable and name in self._known:
                return self._known[name]
            case Apply(operation, operands, _):
                return self._applied(operation, operands, value.type)
        return _ALL

    def _applied(self, operation: str, operands: Sequence[Expr], result: ElementType) -> Interval:
        """Return the interval of an operation's results."""
        types = [operand.type for operand in operands]
        if operation == "bitcast" and types == [U32] and result is F32:
            return _as_float(self._interval(operands[0]))
        if operation == "multiply" and operands[0] == operands[1] and result.is_float:
            # A square is not negative, which the product of two intervals does not show.
            most = _magnitude(self._interval(operands[0]))[1]
            return 0.0, most * most
        # Each step of floats below 16 bits is rounded to a few of them.
        is_float = result.is_float and result.bits >= 16
        rule = _FLOAT_RULES.get(operation) if is_float else None
        if rule is None or any(t.is_complex for t in types):
            return _ALL
        return rule(*map(self._interval, operands))
