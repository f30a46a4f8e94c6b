"""Bound the integers of a kernel by interval arithmetic.

A range encloses every value that an expression may have. An operation whose exact result may leave
its type wraps around, and has the whole range of the type.
"""

from __future__ import annotations

from collections.abc import Callable

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import INDICES, Apply, Constant, Expr, Variable
from hlo.types import PRED, S64, ElementType

Range = tuple[int, int]
# Indices that may be greater are not known at all: the bounds of `ix.bounds` saturate at 2**62,
# which bounds nothing.
_LIMIT = 1 << 53
_Rule = Callable[[Range, Range], Range | None]


def range_of(element_type: ElementType) -> Range:
    """Return (least, greatest) of pred or an integer type."""
    if element_type is PRED:
        return 0, 1
    is_signed = element_type.kind == "signed"
    end = 1 << (element_type.bits - is_signed)
    return -end * is_signed, end - 1


def is_in(one: Range, element_type: ElementType) -> bool:
    """Return whether a type can represent all numbers of a range."""
    low, high = range_of(element_type)
    return low <= one[0] and one[1] <= high


def _hull(*numbers: int) -> Range:
    return min(numbers), max(numbers)


def _magnitude(one: Range) -> Range:
    return (0 if one[0] <= 0 <= one[1] else min(map(abs, one))), max(map(abs, one))


def _and(one: Range, other: Range) -> Range | None:
    """Bound ``and``: a number without a sign bit bounds it."""
    bounds = [high for low, high in (one, other) if low >= 0]
    return (0, min(bounds)) if bounds else None


def _or(one: Range, other: Range) -> Range | None:
    """Bound ``or``: it has no bit above the highest one of both, if neither has a sign bit."""
    if min(one[0], other[0]) < 0:
        return None
    # It has all bits of both, so that it is at least the greater one.
    return max(one[0], other[0]), (1 << max(one[1], other[1]).bit_length()) - 1


def _xor(one: Range, other: Range) -> Range | None:
    found = _or(one, other)
    return found and (0, found[1])


def _shift(shifted: Callable[[int, int], int]) -> _Rule:
    """Return the rule of a shift; its range is unknown unless the amount is in 0 … 63."""

    def rule(one: Range, amount: Range) -> Range | None:
        if not 0 <= amount[0] <= amount[1] < 64:
            return None
        return _hull(*(shifted(end, bits) for end in one for bits in amount))

    return rule


def _logical(one: Range, amount: Range) -> Range | None:
    """Bound a logical shift to the right: a quotient for numbers >= 0, else unknown."""
    return None if one[0] < 0 else _shift(lambda x, bits: x >> bits)(one, amount)


def _left_bits(bits: int, amount: Range) -> Range | None:
    """Bound a logical shift to the right of a negative number of so many bits: those that are left
    are an unsigned one."""
    is_shift = 0 < amount[0] <= amount[1] < bits
    return (0, (1 << (bits - amount[0])) - 1) if is_shift else None


def _quotient(one: Range, divisor: Range) -> Range | None:
    """Bound a quotient, rounded towards zero, by a positive constant."""
    least, most = divisor
    if least != most or least <= 0:
        return None
    # It grows with the dividend, so that the ends bound it; // would round them down.
    return _hull(*(abs(end) // least * (1 if end >= 0 else -1) for end in one))


def _remainder(one: Range, divisor: Range) -> Range | None:
    """Bound a remainder, of the sign of the dividend, by a positive constant."""
    least, most = divisor
    if least != most or least <= 0:
        return None
    return max(min(one[0], 0), 1 - least), min(max(one[1], 0), least - 1)


# From the ranges of two operands; None where nothing is known.
_RULES: dict[str, _Rule] = {
    "add": lambda one, other: (one[0] + other[0], one[1] + other[1]),
    "subtract": lambda one, other: (one[0] - other[1], one[1] - other[0]),
    "multiply": lambda one, other: _hull(*(a * b for a in one for b in other)),
    "maximum": lambda one, other: (max(one[0], other[0]), max(one[1], other[1])),
    "minimum": lambda one, other: (min(one[0], other[0]), min(one[1], other[1])),
    "and": _and,
    "or": _or,
    "xor": _xor,
    "shift-left": _shift(lambda x, bits: x << bits),
    "shift-right-arithmetic": _shift(lambda x, bits: x >> bits),
    "shift-right-logical": _logical,
    "divide": _quotient,
    "remainder": _remainder,
}
# From the range of one.
_UNARY: dict[str, Callable[[Range], Range]] = {
    "negate": lambda one: (-one[1], -one[0]),
    "not": lambda one: (~one[1], ~one[0]),
    "abs": _magnitude,
    "sign": lambda one: (-1, 1),
    "convert": lambda one: one,
}


def _less(one: Range, other: Range) -> Range:
    """Bound ``one < other``: 1 if it holds for all numbers of the ranges, 0 if for none."""
    return int(one[1] < other[0]), int(one[0] < other[1])


def _equal(one: Range, other: Range) -> Range:
    is_possible = one[0] <= other[1] and other[0] <= one[1]
    return int(one[0] == one[1] == other[0] == other[1]), int(is_possible)


def _opposite(holds: Range) -> Range:
    return 1 - holds[1], 1 - holds[0]


def _inside(value: Range, low: Range, high: Range) -> Range:
    """Bound ``low <= value <= high``."""
    is_sure = low[1] <= value[0] and value[1] <= high[0]
    is_possible = low[0] <= value[1] and value[0] <= high[1]
    return int(is_sure), int(is_possible)


# Of comparisons, from the ranges of the operands.
_ORDERS: dict[str, Callable[[Range, Range], Range]] = {
    "compare-EQ": _equal,
    "compare-NE": lambda one, other: _opposite(_equal(one, other)),
    "compare-LT": _less,
    "compare-GT": lambda one, other: _less(other, one),
    "compare-GE": lambda one, other: _opposite(_less(one, other)),
    "compare-LE": lambda one, other: _opposite(_less(other, one)),
}


def compared(operation: str, one: Range, other: Range) -> Range:
    """Return the range of a comparison: 1 if it holds for all numbers of two ranges, 0 if for
    none."""
    return _ORDERS[operation](one, other)


class IntegerRanges:
    """Compute ranges of expressions of pred, integer types and indices, from those of variables."""

    def __init__(self) -> None:
        self._known: dict[str, Range] = {}
        self._values: dict[str, Expr] = {}

    def bind(self, variable: Variable, value: Expr) -> None:
        """Record a variable's definition and its range."""
        if is_whole(variable.type):
            self._known[variable.name] = self.of(value)
            self._values[variable.name] = value

    def of(self, value: Expr) -> Range:
        """Return the range of an expression."""
        if value.type in INDICES:
            ends = ix.bounds(value)
            return ends if _hull(*ends, -_LIMIT, _LIMIT) == (-_LIMIT, _LIMIT) else range_of(S64)
        match value:
            case Constant(_, number):
                return int(number), int(number)  # type: ignore[arg-type]
            case Variable(_, name) if not value.mutable and name in self._known:
                return self._known[name]
            case Apply():
                found = self._applied(value)
                return found if found and is_in(found, value.type) else range_of(value.type)
            case _:
                return range_of(value.type)

    def fits(self, value: Apply) -> bool:
        """Return whether an operation provably does not wrap around."""
        found = self._applied(value)
        return found is not None and is_in(found, value.type)

    def _applied(self, value: Apply) -> Range | None:
        """Return the range of an operation's exact result, before wrapping; None if unknown."""
        match value:
            case Apply("select", (condition, one, other), _):
                first, second = self._where(condition, one, other)
                return min(first[0], second[0]), max(first[1], second[1])
            case Apply("not", (one,), _) if value.type is PRED:
                return _opposite(self.of(one))  # of integers it flips all bits
            case Apply(operation, (one,), _) if operation in _UNARY and is_whole(one.type):
                return _UNARY[operation](self.of(one))
            case Apply("within", (index, low, high), _):
                return _inside(self.of(index), self.of(low), self.of(high))
            case Apply(operation, (one, other), _) if (
                operation in _ORDERS and is_whole(one.type) and is_whole(other.type)
            ):
                return _ORDERS[operation](self.of(one), self.of(other))
            case Apply("shift-right-arithmetic", (one, other), _) if one.type.kind == "unsigned":
                # The highest bit is copied, of unsigned integers, too.
                has_sign = self.of(one)[1] >> (one.type.bits - 1)
                return None if has_sign else _logical(self.of(one), self.of(other))
            case Apply("shift-right-logical", (one, other), kind) if self.of(one)[0] < 0:
                return _left_bits(kind.bits, self.of(other))
            case Apply(operation, (one, other), _) if operation in _RULES:
                return _RULES[operation](self.of(one), self.of(other))
            case _:
                return None

    def _where(self, condition: Expr, one: Expr, other: Expr) -> tuple[Range, Range]:
        """Return the range of ``one`` where a condition holds, and of ``other`` where it does
        not."""
        match self.definition(condition):
            case Apply("compare-LT", (Variable(_, name), Constant(_, end)), _) if (
                name in self._known
            ):
                # So that normalised indices, i < 0 ? i + n : i, are known to be in bounds.
                # A branch that no value reaches has low > high in it: the hull with the
                # range of the other one is at least that.
                low, high = self._known[name]
                least = int(end)  # type: ignore[arg-type]
                first = self._within(name, (low, min(high, least - 1)), one)
                return first, self._within(name, (max(low, least), high), other)
            case _:
                return self.of(one), self.of(other)

    def _within(self, name: str, range_: Range, value: Expr) -> Range:
        """Return the range of a value, or its definition, where a variable is in a range."""
        known, values, definition = self._known[name], self._values, self.definition(value)
        self._known[name] = range_
        if definition is not value:
            # No definition is followed inside another: selects of two selects each of which chooses
            # of the same two, and so on, have paths without number.
            self._values = {}
        found = self.of(definition)
        self._known[name], self._values = known, values
        return found

    def definition(self, value: Expr) -> Expr:
        """Return the definition of an integer variable; other expressions unchanged."""
        if isinstance(value, Variable) and not value.mutable:
            return self._values.get(value.name, value)
        return value


def is_whole(element_type: ElementType) -> bool:
    """Return whether a type has ranges: pred, integers and indices."""
    return element_type is PRED or element_type.is_integer or element_type in INDICES
