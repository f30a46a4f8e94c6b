"""Write contractions for blocks of threads: choose the kind of sums, round, recompute what is in
doubt.

Sums whose error bound leaves the rounding open, or that are not finite where factors may not count,
are marked and added up again by a launch of their own, each in a superaccumulator.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Address, Array, Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import (
    Types,
    Write,
    as_type,
    exact_sum_of_products,
)
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction.fast_contraction import is_padded
from backend_c.kernels.parts.contraction_in_blocks.block_norms import Norms, magnitude
from backend_c.kernels.parts.contraction_in_blocks.block_parts import emit_tiles
from backend_c.kernels.parts.contraction_in_blocks.block_products import (
    MAGNITUDES,
    PAIRS,
    PLAIN,
    WIDENED,
    integer_product,
    tensor_product,
)
from backend_c.kernels.parts.contraction_in_blocks.block_tiles import Own, Place
from backend_c.kernels.parts.contraction_in_blocks.tile_choice import division
from backend_c.kernels.parts.contraction_in_blocks.untiled_sums import untiled_sums
from hlo.types import F32, F64, PRED, ElementType


def has_blocks(factors: Factors, scope: Scope) -> bool:
    """Return whether a target with blocks of threads has a sum to distribute among them (k > 0)."""
    return nest.has_blocks(scope) and factors.k > 0


class BlockContraction:
    """Write one contraction by one of the kinds of sums; ``types`` are those of the factors."""

    def __init__(
        self, factors: Factors, types: Types, result: ElementType, write: Write, scope: Scope
    ) -> None:
        self.factors, self.types, self.result = factors, types, result
        self.write, self.scope = write, scope
        self._doubts: Array | None = None

    def plain_sums(self, sums: ElementType) -> None:
        """Write floating-point sums of type ``sums``, as fast mode has them."""
        # Not those of bytes: their sums are integers, which wrap.
        tensor = tensor_product(self.factors, self.types, self.scope.settings)
        product = tensor if tensor is not None and tensor.sums is sums else PLAIN[sums]
        untiled = untiled_sums(self.factors, product, self.scope)
        if untiled is not None:
            untiled.emit(self._converted)
            return
        # Padding is zeros in shared memory, and zero times infinity is NaN.
        checked = is_padded(self.factors)
        self._doubts = self._marks() if checked else None

        def finish(parts: Sequence[Expr], place: Place, own: Own | None) -> None:
            if checked:
                self._mark(place, apply("is-finite", parts[0], type=PRED))
            self._converted(parts, place, own)

        emit_tiles(self.factors, product, self.scope, finish)
        if checked:
            self._repair((sums, sums))

    def integers(self) -> None:
        """Write integer sums modulo 2**bits, or disjunctions of pred."""
        settings = self.scope.settings
        product = integer_product(self.factors, self.types, self.result, settings)
        untiled = untiled_sums(self.factors, product, self.scope)
        if untiled is not None:
            untiled.emit(self._converted)
        else:
            emit_tiles(self.factors, product, self.scope, self._converted)

    def rounded(self) -> None:
        """Write sums of products of f32 and narrower factors, each rounded once."""
        untiled = untiled_sums(self.factors, MAGNITUDES, self.scope)
        if untiled is None:
            self._rounded_by_norms()
            return
        self._doubts = self._marks()
        count = ix.constant(untiled.roundings + 8)  # and those of the magnitudes

        def finish(parts: Sequence[Expr], place: Place, own: Own | None) -> None:
            self._decide("decided", (*parts, count), place)

        untiled.emit(finish)
        self._repair((F32, F32))

    def _rounded_by_norms(self) -> None:
        """Write exact sums in tiles, whose error bounds come from the norms of rows and columns."""
        scope, factors = self.scope, self.factors
        lines = division(factors, WIDENED).tile.rows.size
        sizes = ((factors.batch, count, factors.k) for count in (factors.m, factors.n))
        sides = [
            Norms(read, size, lines, scope)
            for read, size in zip((factors.lhs, factors.rhs), sizes, strict=True)
        ]
        self._doubts = self._marks()

        def begin(place: Place) -> None:
            for side in sides:
                side.declare()
            for side, first in zip(sides, place[1:], strict=True):
                side.bring(place[0], first)

        def finish(parts: Sequence[Expr], place: Place, own: Own | None) -> None:
            if own is None:
                found = [side.at(place[0], line) for side, line in zip(sides, place[1:])]
            else:
                found = [side.of(line) for side, line in zip(sides, own)]
            # 8 more roundings: of the norms, their root and their product.
            sums = parts[0], scope.bind(magnitude(*found)), ix.constant(factors.k + 8)
            self._decide("decided", sums, place)

        emit_tiles(factors, WIDENED, scope, finish, begin)
        self._repair((F32, F32))

    def pairs(self) -> None:
        """Write sums of products of f64 factors in double-double, each rounded once."""
        self._doubts = self._marks()

        def finish(parts: Sequence[Expr], place: Place, own: Own | None) -> None:
            self._decide("dot-decided", (*parts, ix.constant(self.factors.k)), place)

        emit_tiles(self.factors, PAIRS, self.scope, finish)
        self._repair(self.types)

    def _converted(self, parts: Sequence[Expr], place: Place, own: Own | None) -> None:
        """Store a sum, converted to the result's type."""
        self._store(place, as_type(parts[0], self.result))

    def _decide(self, operation: str, sums: tuple[Expr, ...], place: Place) -> None:
        """Write the rounding of a sum, and mark it if its error bound leaves the rounding open."""
        scope = self.scope
        result = scope.mutable(self.result, Constant(self.result, 0.0))
        decided = scope.bind(apply(operation, *sums, Address(result), type=PRED))
        self._mark(place, decided)
        self._store(place, result)

    def _store(self, place: Place, value: Expr) -> None:
        self.write(self.factors.place(*place), (value,))

    def _marks(self) -> Array:
        """Allocate a pred for each sum: whether its result is final."""
        factors = self.factors
        return self.scope.scratch(PRED, factors.batch * factors.m * factors.n, frozen=True)

    def _mark(self, place: Place, is_known: Expr) -> None:
        """Store whether a sum's result is final."""
        assert self._doubts is not None
        dims = self.factors.batch, self.factors.m, self.factors.n
        self.scope.store(self._doubts, ix.linearize(place, dims), is_known)

    def _repair(self, types: Types) -> None:
        """Write the loop that recomputes, in superaccumulators, the sums whose result is not
        final."""
        scope, factors = self.scope, self.factors
        assert self._doubts is not None
        dims = factors.batch, factors.m, factors.n
        with scope.loop(dims[0] * dims[1] * dims[2], "parallel lanes") as number:
            known = scope.load(self._doubts, number)
            with scope.when(apply("not", known, type=PRED)):
                b, m, n = map(scope.bind, ix.delinearize(number, dims))
                target = F64 if F64 in types else self.result
                exact = exact_sum_of_products(factors, types, target, (b, m, n), scope)
                self._store((b, m, n), as_type(exact, self.result))
