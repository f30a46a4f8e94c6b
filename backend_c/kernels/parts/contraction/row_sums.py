"""Add up products of small matrices row by row: the sum over k is written out, columns are lanes.

Nothing is packed; small matrices (8 x 8) stay in registers. Factors of a narrower type than the
sums are converted first, each once, in loops that convert many side by side. Where many rows share
the right factors, these are copied with their columns filled up to whole vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import as_type, masked
from backend_c.kernels.parts.contraction.factor_memory import stored_factors
from backend_c.kernels.parts.contraction.factors import Factors, Read
from backend_c.kernels.parts.contraction.strided_access import factor_strides
from hlo.types import F64, ElementType

_WRITTEN_OUT = 16  # steps: the factors of more do not stay in registers
_TOGETHER = 8  # steps that a loop adds up, of more
_HALF, VECTOR = 4, 8  # lanes: of the least vectors that pay, as of f64, and of most
MANY = 32  # rows for which copying the right factors into whole vectors pays
_ON_STACK = 512  # right factors at most
LEAST = 5  # steps for which it does, and for which keeping sums does that are whole vectors

# Maps (row of a block, k) to a factor and its conditions.
_RowRead = Callable[[Expr, Expr], tuple[Expr, tuple[Expr, ...]]]
# What a sum adds of a product.
Addend = Callable[[Expr], Expr]


class Rows(NamedTuple):
    """Locate a block of rows: the batch, its first row, and how many they are."""

    batch: Expr
    first: Expr
    number: Expr


@contextmanager
def blocks_of_rows(scope: Scope, factors: Factors, width: int) -> Iterator[Rows]:
    """Open loops over blocks of ``width`` rows of all batches, which threads share."""
    cost = width * factors.n * factors.k
    with nest.strips(scope, (factors.batch, factors.m), width, cost) as ((b,), first, count):
        yield Rows(b, first, count)


class RowSums:
    """Write the sums of products of blocks of at most ``width`` rows, in a type.

    Several sums run beside each other, one for each of ``addends``.
    """

    def __init__(
        self,
        factors: Factors,
        sums: ElementType,
        width: int,
        scope: Scope,
        addends: tuple[Addend, ...] = (lambda product: product,),
    ) -> None:
        self._factors, self._sums, self._scope = factors, sums, scope
        self._width, self._addends = width, addends
        self.lanes = factors.n if scope.is_inside_element else _lanes(factors, sums)
        self._right: Read | None = None
        if self._is_in_place:
            self._right = factors.rhs
        # Those of a single block of rows are converted on the stack, just before.
        elif factors.m > width or factors.k * self.lanes > _ON_STACK:
            self._right = self._converted()

    @property
    def elements(self) -> int:
        """Return the size of an array for the sums of a block of rows: a row's lanes beyond its
        columns are overwritten by the next row."""
        return self._width * self._factors.n + self.lanes - self._factors.n

    def add_up(self, rows: Rows, keep: Callable[..., None]) -> None:
        """Write the sums of a block of rows, with columns in lanes; call ``keep(row, column,
        *sums)`` for each place."""
        scope, k, lanes = self._scope, self._factors.k, self.lanes
        left = self._converted_rows(rows)
        right = self._right or self._converted_columns(rows.batch)
        zero = Constant(self._sums, 0.0)  # so that no sum is -0
        groups = k // _TOGETHER if k > _WRITTEN_OUT else 0
        rest = range(groups * _TOGETHER, k)
        with scope.loop(rows.number) as row:

            def added(totals: Sequence[Expr], n: Expr, steps: Iterable[Expr]) -> list[Expr]:
                pairs = [(left(row, step), right(rows.batch, n, step)) for step in steps]
                products: list[Expr] = [
                    apply("multiply", *map(self._factor, pair)) for pair in pairs
                ]
                if len(totals) > 1:
                    products = [scope.bind(product) for product in products]
                return [
                    reduce(lambda x, y: apply("add", x, y), map(part, products), total)
                    for part, total in zip(self._addends, totals, strict=True)
                ]

            starts = [scope.local(self._sums, lanes) for _ in self._addends] if groups else []
            if starts:
                with scope.loop(lanes, "lanes") as n:
                    for start in starts:
                        scope.store(start, n, zero)
                with scope.loop(groups) as group, scope.loop(lanes, "lanes") as n:
                    first = ix.multiply(group, _TOGETHER)
                    steps = (ix.add(first, step) for step in range(_TOGETHER))
                    some = added([zero] * len(starts), n, steps)
                    for start, more in zip(starts, some, strict=True):
                        scope.store(start, n, apply("add", scope.load(start, n), more))
            with scope.loop(lanes, "lanes") as n:
                loaded = [scope.bind(scope.load(start, n)) for start in starts]
                before = loaded or [zero] * len(self._addends)
                keep(row, n, *map(scope.bind, added(before, n, map(ix.constant, rest))))

    def _factor(self, read: tuple[Expr, tuple[Expr, ...]]) -> Expr:
        """Return a factor in the type of the sums; one that the lanes share is bound before
        them."""
        factor = as_type(masked(*read), self._sums)
        return self._scope.bind(factor) if self._scope.is_invariant(factor) else factor

    @property
    def _is_in_place(self) -> bool:
        """Return whether the right factors are read where they are: in the type of the sums, with
        columns side by side, of which none are added."""
        factors = self._factors
        sizes = factors.batch, factors.n, factors.k
        strides = factor_strides(factors.rhs, sizes, self._sums)
        return strides is not None and strides.line == 1 and self.lanes == factors.n

    def _converted(self) -> Read:
        """Write the right factors to scratch, step by step; return a reader of whole vectors of
        columns: those beyond the last one are anything."""
        scope, dims = self._scope, (self._factors.batch, self._factors.k, self.lanes)
        scratch = stored_factors(self._by_step, dims, self._sums, scope)
        return lambda b, n, step: (scope.load(scratch, ix.linearize((b, step, n), dims)), ())

    def _converted_columns(self, b: Expr) -> Read:
        """Return such a reader of the right factors of one batch; write them to the stack."""
        scope, dims = self._scope, (self._factors.k, self.lanes)
        array = scope.local(self._sums, math.prod(dims))
        with scope.loop(math.prod(dims), "lanes") as number:
            step, n = ix.delinearize(number, dims)
            value = as_type(masked(*self._by_step(b, step, n)), self._sums)
            scope.store(array, number, value)
        return lambda b, n, step: (scope.load(array, ix.linearize((step, n), dims)), ())

    def _by_step(self, b: Expr, step: Expr, n: Expr) -> tuple[Expr, tuple[Expr, ...]]:
        """Return a right factor; for a column beyond the last one, that of the last one."""
        return self._factors.rhs(b, ix.clamp(0, n, self._factors.n - 1), step)

    def _converted_rows(self, rows: Rows) -> _RowRead:
        """Return a reader of a block of rows of the left factors by their number in it; write them
        to the stack if their type is not that of the sums."""
        scope, factors, (b, first, count) = self._scope, self._factors, rows
        zero = ix.constant(0)
        if factors.lhs(zero, zero, zero)[0].type is self._sums:
            return lambda row, step: factors.lhs(b, ix.add(first, row), step)
        k, array = factors.k, scope.local(self._sums, self._width * factors.k)
        with scope.loop(ix.multiply(count, k), "lanes") as lane:
            row, step = ix.divide(lane, k), ix.modulo(lane, k)
            value = as_type(masked(*factors.lhs(b, ix.add(first, row), step)), self._sums)
            scope.store(array, lane, value)
        return lambda row, step: (scope.load(array, ix.add(ix.multiply(row, k), step)), ())


def _lanes(factors: Factors, sums: ElementType) -> int:
    """Return how many columns are computed: whole vectors, where rows share their copy."""
    is_shared = factors.m >= MANY and factors.k >= LEAST and factors.n % _HALF
    least = _HALF if factors.n <= _HALF or sums is F64 else VECTOR
    return -(-factors.n // least) * least if is_shared else factors.n
