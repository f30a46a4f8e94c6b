"""Write exact sums of neighbouring results, whose addends come in vectors: one result per lane.

All lanes are added up in f64 beside their magnitudes; then, lane by lane, the rounding is decided
or the addends of the lane are added again in a superaccumulator. Sums of f64 and of complex numbers
are added in superaccumulators at once. See runtime/hlo_exact_sum.h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from backend_c.ir import index as ix
from backend_c.ir.element import widened
from backend_c.ir.loop_ir import Constant, Expr, Variable
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.reduction.exact_sum import Addend, accumulated
from backend_c.kernels.parts.reduction.rounded_lanes import BoundedSums, rounded_lanes
from backend_c.kernels.parts.reduction.window_lanes import LaneRange
from hlo.types import F64, PRED, ElementType

# Opens a loop over a range of lanes, or over all of them.
Over = Callable[[LaneRange | None], AbstractContextManager[Expr]]
# add(lane, value, condition): the value counts where the condition, if there is one, holds.
Add = Callable[[Expr, Expr, Expr | None], None]
# The loops over all addends of the lanes that ``over()`` runs over.
LaneAddends = Callable[[Over, Add], None]


def lanes_of(scope: Scope, lanes: Expr) -> Over:
    """Return a function that opens a loop in lanes over a range, or over all lanes if it is
    None."""

    @contextmanager
    def over(part: LaneRange | None) -> Iterator[Expr]:
        first, count = part or (ix.constant(0), lanes)
        with scope.loop(count, "lanes") as number:
            yield ix.add(first, number)

    return over


_ZERO = Constant(F64, 0.0)


def _rounded_off(scope: Scope, before: Expr, addend: Expr, total: Expr) -> Expr:
    """Return what rounding takes off an addition, exactly: ``before + addend - total``."""
    part = scope.bind(apply("subtract", total, before))
    rest = apply("subtract", before, apply("subtract", total, part))
    return apply("add", rest, apply("subtract", addend, part))


class LaneSums:
    """Write exact sums, one per lane, of ``init(lane)`` and the addends, ``count`` at most.

    There are ``lanes`` lanes, at most ``width``. Of ``short`` sums what additions round off is
    added up, too (Knuth's TwoSum): few numbers of similar size often have an exact sum right
    between two results, a tie that no bound but 0 decides.
    """

    def __init__(
        self,
        scope: Scope,
        init: Callable[[Expr], Expr],
        lanes: Expr,
        width: int,
        count: Expr,
        addends: LaneAddends,
        *,
        short: bool = False,
    ) -> None:
        self._short = short
        self._scope, self._init, self._addends = scope, init, addends
        self._lanes, self._width, self._count = lanes, width, count

    def emit(self, element_type: ElementType, write: Callable[[Expr, Expr], None]) -> None:
        """Write the sums; ``write(lane, sum)`` is called for each lane."""
        # No fast path: an accumulator per lane, one lane after the other.
        if element_type is F64 or element_type.is_complex:
            with self._scope.loop(self._lanes, "independent") as lane:
                write(lane, self._exact(lane, element_type))
            return
        scope = self._scope
        totals, sizes = (scope.local(F64, self._width) for _ in range(2))
        errors = scope.local(F64, self._width) if self._short else None
        with scope.loop(self._lanes, "lanes") as lane:
            start = scope.bind(apply("widen", self._init(lane), type=F64))
            scope.store(totals, lane, start)
            scope.store(sizes, lane, apply("abs", start))
            if errors is not None:
                scope.store(errors, lane, _ZERO)

        def add(lane: Expr, value: Expr, condition: Expr | None) -> None:
            wide = widened(value)
            if condition is not None:  # adding -0 changes nothing
                wide = apply("select", condition, wide, Constant(F64, -0.0), type=F64)
            wide, before = scope.bind(wide), scope.bind(scope.load(totals, lane))
            total = scope.bind(apply("add", before, wide))
            scope.store(totals, lane, total)
            scope.store(sizes, lane, apply("add", scope.load(sizes, lane), apply("abs", wide)))
            if errors is not None:
                error = apply("abs", _rounded_off(scope, before, wide, total))
                scope.store(errors, lane, apply("add", scope.load(errors, lane), error))

        def magnitude(lane: Expr) -> Expr:
            size = scope.load(sizes, lane)
            if errors is None:
                return size
            is_exact = apply("compare-EQ", scope.load(errors, lane), _ZERO, type=PRED)
            return scope.bind(apply("select", is_exact, _ZERO, size, type=F64))

        self._addends(lanes_of(scope, self._lanes), add)
        # A total that is 0 has the sign of the sum: it began at the init, and -0 + -0 is -0.
        zero = Constant(element_type, 0.0)
        init = (lambda lane: zero) if self._short else self._init
        sums = BoundedSums(totals, magnitude, self._count, init, self._lanes)
        results = rounded_lanes(
            scope, element_type, sums, lambda lane: self._exact(lane, element_type)
        )
        with scope.loop(self._lanes, "lanes") as lane:
            write(lane, scope.load(results, lane))

    def _exact(self, lane: Expr, element_type: ElementType) -> Expr:
        """Return the sum of one lane in a superaccumulator."""
        return accumulated(self._scope, element_type, self._init(lane), self._one(lane))

    def _one(self, lane: Expr) -> Callable[[Sequence[Variable], Addend], None]:
        """Return the writer of loops over the addends of one lane."""

        @contextmanager
        def only(part: LaneRange | None) -> Iterator[Expr]:
            with self._scope.when(part.has(lane)) if part else nullcontext():
                yield lane

        def addends(sums: Sequence[Variable], add: Addend) -> None:
            def add_if(lane: Expr, value: Expr, condition: Expr | None) -> None:
                if condition is None:
                    add(value)
                else:
                    with self._scope.when(condition):
                        add(value)

            self._addends(only, add_if)

        return addends
