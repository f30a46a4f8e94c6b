"""Write exact prefix sums by one thread: pairs of f64 with a bound, rounded in lanes.

A pair hi + lo is a sum but for the roundings of lo, the sum of the errors of hi: it errs by at most
gamma(n) * sum|error| after n additions (hlo_exact_sum.h), and not at all while hi is exact. Where
that leaves a rounding in doubt, a superaccumulator catches up: it is given what was added since the
last doubt. So an element is added to it at most once, and most of them never are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir.element import widened
from backend_c.ir.loop_ir import INDEX, Address, Constant, Expr, Variable
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.reduction.exact_sum import Accumulator
from hlo.types import F64, PARTS, PRED, ElementType

# Writes what a step adds, by calling its argument, or nothing where a condition does not hold.
Addends = Callable[[Expr, Callable[[Expr], None]], None]
_ZERO = Constant(F64, 0.0)
# Of a gamma, as in hlo_exact_sum.h: u = 2**-53 = 1.11e-16, and 8 % for terms of second order.
_BOUND = 1.2e-16  # u and a little more
# (3 n + 4) (n + 2) 1.3e-32, the factor of hlo_sum_decided_f64, for n = 0.
_BOUND_OF_PAIRS = 1.04e-31
_WIDTH = 64  # lanes of a strip, which stays in the first cache


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
        """Write the loops; ``write(step, value)`` writes the sum so far, rounded once."""
        scope, width = self.scope, min(self.steps, _WIDTH)
        most = self.before + self.steps + 1
        parts = [_Part(scope, init, most, width) for init in _components(scope, self.init)]
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
            # Outside of the steps, so that catching up, which repeats steps only, would miss them.
            self.addends_before(number, add_twice)
        known = scope.mutable(INDEX, ix.constant(0))  # steps that the accumulator has
        with scope.loop(-(-self.steps // width)) as strip:
            first = scope.bind(ix.multiply(strip, width))
            size = scope.bind(ix.clamp(0, ix.subtract(self.steps, first), width))
            with scope.loop(size) as lane:
                self.addends(self._step(first, lane), add)
                for part in parts:
                    part.keep(lane)
            with scope.loop(size, "lanes") as lane:
                for part in parts:
                    part.round(lane)
            with scope.loop(size) as lane, scope.when(_any([p.is_open(lane) for p in parts])):
                end = ix.add(ix.add(first, lane), 1)
                with scope.loop(ix.clamp(0, ix.subtract(end, known), self.steps)) as late:
                    self.addends(self._step(known, late), accumulator.add)
                scope.assign(known, end)
                exact = _components(scope, accumulator.so_far())
                for part, value in zip(parts, exact, strict=True):
                    part.settle(lane, value)
            with scope.loop(size, "lanes") as lane:
                values = [part.result(lane) for part in parts]
                write(ix.add(first, lane), _whole(self.init.type, values))

    def _step(self, first: Expr, number: Expr) -> Expr:
        return ix.clamp(0, ix.add(first, number), self.steps - 1)


class _Part:
    """Sums of real numbers: the running pair and the sum of the sizes of its errors, and for each
    lane of a strip what they were there, the rounded sum, and whether that is in doubt."""

    def __init__(self, scope: Scope, init: Expr, most: int, width: int) -> None:
        self._scope, self._type, self._most = scope, init.type, most
        self._high = scope.mutable(F64, widened(init))
        self._low, self._errors = (scope.mutable(F64, _ZERO) for _ in range(2))
        self._kept = [scope.local(F64, width) for _ in range(3)]
        self._results = scope.local(init.type, width)
        self._doubts = scope.local(F64, width)  # as wide as what they come from, for the vectors

    def add(self, value: Expr) -> None:
        """Write the addition of a value."""
        running = self._high, self._low, self._errors
        self._scope.call("hlo_dd_add_measured", *map(Address, running), widened(value))

    def keep(self, lane: Expr) -> None:
        """Write what the sums are now to a lane."""
        running = self._high, self._low, self._errors
        for array, value in zip(self._kept, running, strict=True):
            self._scope.store(array, lane, value)

    def round(self, lane: Expr) -> None:
        """Write the rounding of a lane, and whether it is in doubt."""
        scope = self._scope
        pair = [scope.bind(scope.load(array, lane)) for array in self._kept]
        result, decided = rounded_pair(scope, self._type, pair, self._most)
        no_doubt = _ZERO, Constant(F64, 1.0)
        scope.store(self._doubts, lane, apply("select", decided, *no_doubt, type=F64))
        scope.store(self._results, lane, result)

    def is_open(self, lane: Expr) -> Expr:
        """Return whether a lane's rounding is in doubt."""
        doubt = self._scope.load(self._doubts, lane)
        return apply("compare-NE", doubt, _ZERO, type=PRED)

    def settle(self, lane: Expr, value: Expr) -> None:
        """Write a lane's result."""
        self._scope.store(self._results, lane, value)

    def result(self, lane: Expr) -> Expr:
        """Return a lane's result."""
        return self._scope.bind(self._scope.load(self._results, lane))


def rounded_pair(
    scope: Scope, element_type: ElementType, pair: Sequence[Expr], most: int
) -> tuple[Variable, Expr]:
    """Return a sum rounded once, and whether its bound proves that: ``pair`` is (hi, lo, sum of the
    sizes of hi's errors) after at most ``most`` additions. An exact hi has the sign of zero."""
    high, low, errors = pair
    sums: tuple[Expr, ...]
    if element_type is F64:
        # Of no addends, of which hlo_sum_decided_f64 makes 1.04e-31 times the magnitude.
        sums = high, low, _times(errors, _BOUND / _BOUND_OF_PAIRS * most), ix.constant(0)
    else:
        # And u |hi + lo| for the pair as one f64.
        total = scope.bind(apply("add", high, low))
        is_exact = scope.bind(apply("compare-EQ", errors, _ZERO, type=PRED))
        # The size of total stands for a magnitude: (1 + 2) 1.2e-16 |total| bounds the rounding of
        # hi + lo. While hi is exact there is none, and hi keeps the -0 that hi + 0 would lose.
        rounding = apply("select", is_exact, _ZERO, apply("abs", total), type=F64)
        bound = scope.bind(apply("add", rounding, _times(errors, most)))
        total = scope.bind(apply("select", is_exact, high, total, type=F64))
        sums = total, bound, ix.constant(1)
    result = scope.mutable(element_type, Constant(element_type, 0.0))
    return result, apply("decided", *sums, Address(result), type=PRED)


def _times(value: Expr, factor: float) -> Expr:
    return apply("multiply", value, Constant(F64, float(factor)))


def _any(conditions: list[Expr]) -> Expr:
    found, *others = conditions
    for other in others:
        found = apply("or", found, other)
    return found


def _components(scope: Scope, value: Expr) -> list[Expr]:
    """Return a real number, or both parts of a complex one."""
    if not value.type.is_complex:
        return [value]
    part = PARTS[value.type]
    named = scope.bind(value)
    return [scope.bind(apply(name, named, type=part)) for name in ("real", "imag")]


def _whole(element_type: ElementType, parts: list[Expr]) -> Expr:
    return parts[0] if len(parts) == 1 else apply("complex", *parts, type=element_type)
