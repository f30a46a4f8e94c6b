"""Write exact prefix sums by one thread: a pair of f64 with a bound, rounded at each step.

Where the bound leaves a rounding in doubt, a superaccumulator catches up: it is given what was
added since the last doubt. So an element is added to it at most once, and to most of them it never
is. See runtime/hlo_exact_sum.h for the bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import INDEX, Address, Constant, Expr, Variable
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.reduction.exact_sum import PARTS, Accumulator, decide_rounding
from hlo.types import F64, PRED, ElementType

# Writes what a step adds, by calling its argument, or nothing where a condition does not hold.
Addends = Callable[[Expr, Callable[[Expr], None]], None]
_UNIT = 2.0**-53
_ROUNDINGS = 1  # of the pair to one f64


@dataclass(frozen=True)
class ExactPrefixSum:
    """Describe a scan: ``init``, then ``before`` addends, then those of ``steps`` steps.

    ``addends_before(number, add)`` and ``addends(step, add)`` write additions.
    """

    scope: Scope
    init: Expr
    before: int
    steps: int
    addends_before: Addends
    addends: Addends

    def emit(self, write: Callable[[Expr, Expr], None]) -> None:
        """Write the loop; ``write(step, value)`` writes the sum so far, rounded once."""
        scope = self.scope
        parts = [_Part(scope, one) for one in _components(scope, self.init)]
        accumulator = Accumulator(scope, self.init.type)
        accumulator.add(self.init)

        def add(value: Expr) -> None:
            for part, component in zip(parts, _components(scope, value), strict=True):
                part.add(component)

        def add_twice(value: Expr) -> None:
            named = scope.bind(value)
            add(named)
            accumulator.add(named)

        with scope.loop(self.before) as number:
            self.addends_before(number, add_twice)
        known = scope.mutable(INDEX, ix.constant(0))  # steps that the accumulator has
        with scope.loop(self.steps) as step:
            self.addends(step, add)
            count = scope.bind(ix.add(step, self.before + 2))
            rounded = [part.rounded(count, self.before + self.steps + 1) for part in parts]
            result = scope.mutable(self.init.type, _whole(self.init.type, [r for r, _ in rounded]))
            decided = rounded[0][1]
            for _, more in rounded[1:]:
                decided = apply("and", decided, more)
            with scope.when(apply("not", decided, type=PRED)):
                missing = ix.subtract(ix.add(step, 1), known)
                with scope.loop(ix.clamp(0, missing, self.steps)) as number:
                    late = ix.clamp(0, ix.add(known, number), self.steps - 1)
                    self.addends(late, accumulator.add)
                scope.assign(known, ix.add(step, 1))
                scope.assign(result, accumulator.so_far())
            write(step, result)


class _Part:
    """A running sum of real numbers: hi + lo, and the sum of magnitudes."""

    def __init__(self, scope: Scope, init: Expr) -> None:
        self._scope, self._init = scope, init
        start = scope.bind(_widened(init))
        self._high = scope.mutable(F64, start)
        self._low = scope.mutable(F64, Constant(F64, 0.0))
        self._magnitude = scope.mutable(F64, apply("abs", start))

    def add(self, value: Expr) -> None:
        """Write the addition of a value."""
        wide = self._scope.bind(_widened(value))
        self._scope.call("hlo_dd_add", Address(self._high), Address(self._low), wide)
        self._scope.assign(self._magnitude, apply("add", self._magnitude, apply("abs", wide)))

    def rounded(self, count: Expr, most: int) -> tuple[Variable, Expr]:
        """Write the rounding of the sum of ``count`` addends, of ``most`` at the end; return it,
        and whether the bound proves it.

        The pair errs by 3 n^2 u^2 of the magnitude, and by u of itself where it becomes one f64.
        """
        sums: tuple[Expr, ...]
        if self._init.type is F64:
            sums = self._high, self._low, self._magnitude, count
        else:
            total = self._scope.bind(apply("add", self._high, self._low))
            lost = apply("multiply", self._magnitude, Constant(F64, 3.0 * most * most * _UNIT))
            errors = self._scope.bind(apply("add", apply("abs", total), lost))
            sums = total, errors, ix.constant(_ROUNDINGS)
        result, decided = decide_rounding(self._scope, self._init.type, self._init, sums)
        return result, self._scope.bind(decided)


def _widened(value: Expr) -> Expr:
    return value if value.type is F64 else apply("widen", value, type=F64)


def _components(scope: Scope, value: Expr) -> list[Expr]:
    """Return a real number, or both parts of a complex one."""
    if not value.type.is_complex:
        return [value]
    part = PARTS[value.type]
    named = scope.bind(value)
    return [scope.bind(apply(name, named, type=part)) for name in ("real", "imag")]


def _whole(element_type: ElementType, parts: list[Variable]) -> Expr:
    return parts[0] if len(parts) == 1 else apply("complex", *parts, type=element_type)
