"""Write contractions for a target without lanes: sums in registers, nothing packed or padded.

Some neighbouring sums are added up side by side (register blocking), so that each step of a loop
loads once what they share. Convolutions have loops of their own
(:mod:`backend_c.kernels.parts.convolution.scalar_convolution`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Constant, Expr, Variable
from backend_c.ir.scope import Scope, apply
from backend_c.ir.settings import Optimize
from backend_c.kernels.parts.contraction.contraction_loops import Write, as_type, masked
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction.packed_products import is_packed, packed
from hlo.types import ElementType

# Sums: with what they share and the pointers to it, four fit the 13 registers of Arm. One is a
# third less code and twice the instructions (docs/embedded.md).
_SIDE_BY_SIDE = {Optimize.SPEED: 4, Optimize.SIZE: 1}


class Place(NamedTuple):
    """Locate a result: its batch, row and column."""

    b: Expr
    m: Expr
    n: Expr


Pair = Callable[[Place], tuple[Expr, Expr]]  # the two factors of a step of a sum
Pairs = Callable[[Place, Expr], tuple[Expr, Expr]]  # those of any step, by its number


class ScalarContraction:
    """Write one contraction; ``types`` are those of the sums and of the result."""

    def __init__(
        self,
        factors: Factors,
        types: tuple[ElementType, ElementType],
        write: Write,
        scope: Scope,
    ) -> None:
        self.factors, self.write, self.scope = factors, write, scope
        self.sums, self.result = types

    def matrices(self) -> None:
        """Write the loops over batches, rows and columns of matrices."""
        factors, scope = self.factors, self.scope
        if factors.n > 1:
            with scope.over((factors.batch, factors.m)) as (b, m):
                for columns in self.side_by_side(factors.n):
                    self._sums([Place(b, m, n) for n in columns])
            return
        with scope.loop(factors.batch) as b:
            for rows in self.side_by_side(factors.m):
                self._sums([Place(b, m, ix.constant(0)) for m in rows])

    def rows(self, rows: tuple[int, ...]) -> None:
        """Write the loops over batches, rows and columns, one sum at a time.

        ``rows`` are the extents of several dimensions, a loop each, so that no index is divided.
        """
        factors = self.factors
        with self.scope.over((factors.batch, *rows, factors.n)) as (b, *row, n):
            self._sums([Place(b, ix.linearize(row, rows), n)])

    def side_by_side(self, extent: int) -> Iterator[list[Expr]]:
        """Open an unrolled loop over ``extent`` numbers; yield a group of them, then the
        remainder."""
        width = min(_SIDE_BY_SIDE[self.scope.settings.optimize], extent)
        with self.scope.loop(extent // width) as block:
            yield [ix.add(ix.multiply(block, width), lane) for lane in range(width)]
        if extent % width:
            yield [ix.constant(n) for n in range(extent - extent % width, extent)]

    def _sums(self, places: Sequence[Place]) -> None:
        """Write the sums of some neighbouring results, over all steps of k."""
        factors, steps = self.factors, self.factors.k_dims or (self.factors.k,)
        totals = self.totals(places)
        with self.scope.over(steps[:-1]) as outer:

            def pairs(place: Place, step: Expr) -> tuple[Expr, Expr]:
                k = ix.linearize((*outer, step), steps)
                left, counts = factors.lhs(place.b, place.m, k)
                right, others = factors.rhs(place.b, place.n, k)
                # One zero makes the product of integers zero, but not that with an infinity.
                both = (*counts, *(one for one in others if one not in counts))
                of_right = both if self.sums.is_float else others
                return self._counted(left, counts), self._counted(right, of_right)

            self.run(places, totals, steps[-1], pairs)
        self.store(places, totals)

    def totals(self, places: Sequence[Place]) -> list[Variable]:
        """Declare a sum, zero, for each place."""
        zero = Constant(self.sums, 0.0 if self.sums.is_float else 0)
        return [self.scope.mutable(self.sums, zero) for _ in places]

    def run(
        self, places: Sequence[Place], totals: Sequence[Variable], steps: int | Expr, pairs: Pairs
    ) -> None:
        """Write the addition of ``steps`` products to each sum: a packed dot product, else a
        loop."""
        scope = self.scope
        count = ix.constant(steps) if isinstance(steps, int) else steps
        if scope.settings.packs_products:
            # Reading factors writes statements: this is a trial, whose statements are discarded.
            with scope.undone(), scope.draft((ix.bounds(count)[1],)) as (step,):
                can_pack = is_packed([pairs(one, step) for one in places], step, self.sums)
            products = packed([pairs(one, ix.constant(0)) for one in places]) if can_pack else None
            if products is not None:
                products.add(totals, count, scope)
                return
        with scope.loop(count) as step:
            self.step(places, totals, lambda place: pairs(place, step))

    def step(self, places: Sequence[Place], totals: Sequence[Variable], pair: Pair) -> None:
        """Write the addition of a product to each sum; equal factors are loaded once."""
        scope = self.scope
        pairs = [[scope.bind(as_type(f, self.sums)) for f in pair(place)] for place in places]
        for total, (left, right) in zip(totals, pairs, strict=True):
            scope.assign(total, apply("add", total, apply("multiply", left, right)))

    def store(self, places: Sequence[Place], totals: Sequence[Variable]) -> None:
        """Write the sums to their places, which are at a constant distance.

        The epilogue is written once, in a loop over the sums, for which no registers are needed
        then.
        """
        scope, first = self.scope, places[0]
        if len(places) == 1:
            self.write(self.factors.place(*first), (as_type(totals[0], self.result),))
            return
        kept = scope.local(self.sums, len(places))
        for number, total in enumerate(totals):
            scope.store(kept, ix.constant(number), total)
        steps = [ix.value_of(ix.subtract(*pair)) for pair in zip(places[1], first, strict=True)]
        with scope.loop(len(places)) as lane:
            place = [
                ix.add(start, ix.multiply(lane, step or 0))
                for start, step in zip(first, steps, strict=True)
            ]
            value = as_type(scope.load(kept, lane), self.result)
            self.write(self.factors.place(*place), (value,))

    def _counted(self, factor: Expr, conditions: tuple[Expr, ...]) -> Expr:
        """Build a factor, with its conditions hoisted out of loops that do not change them."""
        return masked(factor, tuple(map(self.scope.bind, conditions)))
