"""Narrow integers in lanes to the types of their operands and uses.

Programs widen bytes to 32 or 64 bits, compute, and convert the result back, or compare. A vector
has four or eight times as many bytes. Two rules, both exact:

* an operation may be computed in any type that holds its operands and its result
  (:mod:`backend_c.ir.integer_ranges`);
* of a result that is truncated to fewer bits, sums, differences, products and bitwise operations
  need only as many bits of their operands.

Sums that are clamped to a narrow type are computed in it (:mod:`backend_c.ir.saturated_sums`).
A computation is rewritten as a whole, from where it is narrowed back to where its operands were
widened; if one of its operands is as wide as itself it stays as it is.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence

from backend_c.ir import index as ix
from backend_c.ir.dead_lets import without_dead_lets
from backend_c.ir.integer_ranges import IntegerRanges, is_in, range_of
from backend_c.ir.loop_ir import (
    INDICES,
    Apply,
    Constant,
    Expr,
    If,
    Let,
    Loop,
    Statement,
    Variable,
    expressions,
    is_mutable,
    subexpressions,
    variables,
)
from backend_c.ir.loop_rewriting import with_blocks, with_expressions, with_operands
from backend_c.ir.saturated_sums import clamped_sum, saturated
from hlo.opcodes import BITWISE, EXTREME, SHIFT, SUM, having
from hlo.types import PRED, S8, S16, S32, U8, U16, U32, ElementType

_TYPES = (S8, U8, S16, U16, S32, U32)  # the narrowest first
_WRAPPING = having(SUM) | having(BITWISE) | {"multiply", "negate"}
_EXACT = _WRAPPING | having(EXTREME) | {"abs"}
_SIGNED = frozenset(("abs", "negate", "not"))  # what unsigned integers have another meaning of
_QUOTIENTS = frozenset(("divide", "remainder"))
_SHIFTS = having(SHIFT)


def with_narrow_integers(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return statements whose loops in lanes compute integers in narrow types."""
    narrowing = _Narrowing()
    narrowed = narrowing.block(body)
    # What was tried in vain has left values that nothing uses.
    return without_dead_lets(narrowed) if narrowing.is_changed else tuple(body)


class _Narrowing:
    """Rewrite the loops of one kernel; a counter makes new names unique."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._ranges = IntegerRanges()
        self._inside: dict[str, Expr] = {}  # what variables of the loop at hand are bound to
        self._uses = Counter[str]()  # of variables in that loop
        self._made: dict[tuple[str, ElementType, bool], Expr | None] = {}  # for those variables
        self._lets: list[Let] = []  # before the statement at hand
        self.is_changed = False

    def block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rewrite statements."""
        return tuple(map(self._statement, body))

    def _statement(self, statement: Statement) -> Statement:
        if isinstance(statement, Let):
            self._ranges.bind(statement.variable, statement.value)
        if isinstance(statement, Loop) and _is_straight(statement):
            return statement._replace(body=self._lanes(statement.body))
        return with_blocks(statement, self.block)

    def _lanes(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rewrite the statements of a loop in lanes."""
        self._inside, self._made = {}, {}
        used = (name for s in body for value in expressions(s) for name in variables(value))
        self._uses = Counter(used)
        rewritten: list[Statement] = []
        for statement in body:
            if isinstance(statement, Let):
                self._ranges.bind(statement.variable, statement.value)
                self._inside[statement.variable.name] = statement.value
            statement = with_expressions(statement, self._rewritten)
            rewritten += [*self._lets, statement]
            self._lets = []
        return tuple(rewritten)

    def _rewritten(self, value: Expr) -> Expr:
        """Rewrite the conversions and comparisons in an expression."""
        if value.type in INDICES:
            return value
        match value:
            case Apply("convert", (wide,), narrow) if _is_wide(wide, narrow):
                found = self._converted(wide, narrow)
            case Apply(operation, (one, other), _) if operation.startswith(
                "compare-"
            ) and _is_integer(one.type):
                found = self._compared(value, one, other)
            case _:
                found = None
        if found is None:
            return with_operands(value, self._rewritten)
        self.is_changed = True
        return found

    def _converted(self, wide: Expr, narrow: ElementType) -> Expr | None:
        """Return a conversion's result computed in a narrow type; None if an operand is wide."""
        if narrow in _TYPES:
            low = self._narrow(wide, narrow, is_low=True)
            low = self._saturated(wide, narrow) if low is None else low
            if low is not None:
                return low
        for middle in _narrower(wide.type):
            exact = self._narrow(wide, middle, is_low=False)
            if exact is not None:
                return _convert(exact, narrow)
        return None

    def _saturated(self, wide: Expr, narrow: ElementType) -> Expr | None:
        """Return a sum that is clamped to numbers of a narrow type, computed in it; None for
        others, and if its operands have no such numbers."""
        if narrow.bits < 8:
            return None
        found = clamped_sum(wide, narrow, self._definition, self._ranges)
        made = found and self._all((found.one, found.other), narrow, is_low=False)
        if not (found and made):
            return None
        one, other = map(self._named, made)
        return saturated(found, one, other)

    def _definition(self, value: Expr) -> Expr:
        """Return what a variable of the loop stands for; itself if that may change."""
        if not isinstance(value, Variable) or value.name not in self._inside:
            return value
        known = self._inside[value.name]
        return value if any(map(is_mutable, subexpressions(known))) else known

    def _compared(self, comparison: Apply, one: Expr, other: Expr) -> Expr | None:
        """Return a comparison in a narrower type; None if impossible, or if wide values stay."""
        if not (self._is_own(one) and self._is_own(other)):
            return None
        for middle in _narrower(one.type):
            made = self._all((one, other), middle, is_low=False)
            if made is not None:
                return comparison._replace(operands=made)
        return None

    def _is_own(self, value: Expr) -> bool:
        """Return whether a value's operands have no other uses, transitively, up to loads."""
        names = [name for name in variables(value) if name in self._inside]
        made = [name for name in names if not _is_simple(self._inside[name])]
        return all(self._uses[name] == 1 and self._is_own(self._inside[name]) for name in made)

    def _narrow(self, value: Expr, narrow: ElementType, *, is_low: bool) -> Expr | None:
        """Return a value in a narrower type: exactly, or (``is_low``) its low bits; None if
        impossible."""
        least, most = self._ranges.of(value)
        is_exact = is_in((least, most), narrow)
        if not is_exact and not is_low:
            return None
        if least == most:
            return Constant(narrow, _wrapped(least, narrow))
        match value:
            case Variable(_, name) if name in self._inside:
                return self._variable(value, narrow, is_low=is_low)
            case Variable() if is_exact and not value.mutable:
                return _convert(value, narrow)  # once, before the loop
            case Apply("convert", (source,), _):
                return self._source(source, narrow, is_low=is_low)
            case Apply("select", (condition, *choices), _):
                chosen = self._all(choices, narrow, is_low=is_low)
                if chosen is None or all(isinstance(one, Constant) for one in chosen):
                    return None  # numbers are as wide as the condition that chooses them
                return Apply("select", (self._rewritten(condition), *chosen), narrow)
            case Apply(operation, operands, _) if self._may_be(operation, operands, narrow, is_low):
                made = self._all(operands, narrow, is_low=is_low)
                return None if made is None else self._applied(operation, operands, made, narrow)
            case _:
                return None

    def _variable(self, variable: Variable, narrow: ElementType, *, is_low: bool) -> Expr | None:
        """Return the narrow counterpart of a variable of the loop, bound before the current
        statement."""
        key = variable.name, narrow, is_low
        if key not in self._made:
            value = self._inside[variable.name]
            # It is computed later than the variable: what changes between may not be read again.
            is_fixed = not any(map(is_mutable, subexpressions(value)))
            made = self._narrow(value, narrow, is_low=is_low) if is_fixed else None
            self._made[key] = made and self._named(made)
        return self._made[key]

    def _named(self, value: Expr) -> Expr:
        """Bind a value before the current statement, unless it is simple; return it."""
        if not isinstance(value, Apply) or _is_simple(value):
            return value
        self._lets.append(Let(Variable(value.type, f"k{next(self._numbers)}"), value))
        return self._lets[-1].variable

    def _source(self, source: Expr, narrow: ElementType, *, is_low: bool) -> Expr | None:
        """Return the operand of a widening conversion in a narrower type; None if it does not
        fit."""
        if source.type in INDICES:
            least = source.type.bits // 2  # lanes of indices are wide already
            is_narrow = is_in(ix.bounds(source), narrow) and narrow.bits >= least
            return _convert(source, narrow) if is_narrow else None
        if not (source.type.is_integer or source.type is PRED):
            return None
        if source.type.bits > narrow.bits:
            return self._narrow(source, narrow, is_low=is_low)
        return _convert(self._rewritten(source), narrow)

    def _all(
        self, values: Iterable[Expr], narrow: ElementType, *, is_low: bool
    ) -> tuple[Expr, ...] | None:
        """Return all values in a narrower type; None if one has none."""
        made = [self._narrow(value, narrow, is_low=is_low) for value in values]
        return None if any(one is None for one in made) else tuple(one for one in made if one)

    def _may_be(
        self, operation: str, operands: Sequence[Expr], narrow: ElementType, is_low: bool
    ) -> bool:
        """Return whether an operation gives the same result (``is_low``: low bits) in a narrower
        type."""
        if operation == "multiply" and narrow.bits < 16:
            return False  # processors have no products of bytes in lanes
        if operation in _SHIFTS:
            # As many bits or more shift everything out of the narrow type, but not of the wide one.
            least, most = self._ranges.of(operands[1])
            is_left = operation == "shift-left"
            return 0 <= least <= most < narrow.bits and (
                is_left or self._is_number(operation, operands[0], narrow)
            )
        if is_low:
            # Low bits of maxima, quotients and absolute values depend on high bits of operands.
            return operation in _WRAPPING
        if operation in _QUOTIENTS:
            least, most = self._ranges.of(operands[1])
            return 0 < least == most and narrow.bits >= 16  # as of products
        return operation in _EXACT and not (operation in _SIGNED and narrow.kind == "unsigned")

    def _is_number(self, operation: str, value: Expr, narrow: ElementType) -> bool:
        """Return whether a narrower type represents the left operand of a shift to the right."""
        found = self._ranges.of(value)
        return is_in(found, narrow) and (found[0] >= 0 or operation == "shift-right-arithmetic")

    def _applied(
        self,
        operation: str,
        wide: Sequence[Expr],
        made: tuple[Expr, ...],
        narrow: ElementType,
    ) -> Apply:
        """Build an operation on narrow operands.

        A shift to the right of a number >= 0 is logical: its highest bit may be set in the narrow
        type.
        """
        if operation == "shift-right-arithmetic" and self._ranges.of(wide[0])[0] >= 0:
            operation = "shift-right-logical"
        return Apply(operation, made, narrow)


def _wrapped(number: int, narrow: ElementType) -> int:
    """Wrap a number to a type, modulo 2**bits."""
    low, high = range_of(narrow)
    return (number - low) % (high - low + 1) + low


def _is_straight(loop: Loop) -> bool:
    """Return whether a loop in lanes has straight-line code only."""
    return "lanes" in loop.kind and not any(isinstance(s, Loop | If) for s in loop.body)


def _is_integer(element_type: ElementType) -> bool:
    """Return whether a type is one of HLO's integers: indices have narrow types of their own."""
    return element_type.is_integer and element_type not in INDICES


def _is_wide(value: Expr, narrow: ElementType) -> bool:
    """Return whether a value is an integer of more bits than an integer type."""
    return _is_integer(value.type) and _is_integer(narrow) and value.type.bits > narrow.bits


def _is_simple(value: Expr) -> bool:
    """Return whether a value is a variable, a constant, a load, or a conversion of one."""
    return not isinstance(value, Apply) or (
        value.operation == "convert" and not isinstance(value.operands[0], Apply)
    )


def _narrower(wide: ElementType) -> Iterable[ElementType]:
    """Yield the types of fewer bits, the narrowest first."""
    return (one for one in _TYPES if one.bits < wide.bits)


def _convert(value: Expr, narrow: ElementType) -> Expr:
    """Convert a value to an integer type, if it has another one."""
    return value if value.type is narrow else Apply("convert", (value,), narrow)
