"""Multiply small matrices in fast mode: the sum over k is written out, columns are lanes.

Nothing is packed; small matrices (8 x 8) stay in registers. Factors of a narrower type than the
sums are converted first, each once, in loops that convert many side by side. Where many rows share
the right factors, these are copied with their columns filled up to whole vectors. Results that are
not stored as they are summed are computed of a block of rows at a time
(:mod:`backend_c.kernels.parts.contraction.finished_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import Write, as_type, masked
from backend_c.kernels.parts.contraction.factor_memory import stored_factors
from backend_c.kernels.parts.contraction.factors import Factors, Read
from backend_c.kernels.parts.contraction.finished_rows import write_rows
from backend_c.kernels.parts.contraction.skinny_contraction import FEW
from backend_c.kernels.parts.contraction.strided_access import factor_strides, result_array
from hlo.types import F64, ElementType

_COLUMNS, _STEPS = 16, 32  # at most: above, tiles of sums are faster
_FEW_COLUMNS, _FEW_STEPS = 8, 20  # one or the other at most, of many rows
_WRITTEN_OUT = 16  # steps: the factors of more do not stay in registers
_TOGETHER = 8  # steps that a loop adds up, of more
_ROWS = 64  # of a share of a thread
_HALF, _VECTOR = 4, 8  # lanes: of the least vectors that pay, as of f64, and of most
_MANY = 32  # rows for which copying the right factors into whole vectors pays
_LEAST = 5  # steps for which it does, and for which keeping sums does that are whole vectors

Rows = tuple[Expr, Expr, Expr]  # the batch, the first row of a block, and how many
# Maps (row of a block, k) to a factor and its conditions.
RowRead = Callable[[Expr, Expr], tuple[Expr, tuple[Expr, ...]]]


def is_small(factors: Factors, types: tuple[ElementType, ElementType]) -> bool:
    """Return whether columns and steps are few, and factors in memory, with columns as vectors, or
    so many rows that the right factors are copied."""
    has_many = factors.m >= _MANY
    is_large = has_many and factors.n > _FEW_COLUMNS and factors.k > _FEW_STEPS
    if factors.n > _COLUMNS or factors.k > _STEPS or is_large:
        return False
    left = factor_strides(factors.lhs, (factors.batch, factors.m, factors.k), types[0])
    right = factor_strides(factors.rhs, (factors.batch, factors.n, factors.k), types[1])
    if left is None or right is None:
        return False
    # Rows that lie side by side are lanes of the sums with a few vectors.
    if has_many and left.line == 1 and factors.n <= FEW:
        return False
    return right.line == 1 or (has_many and factors.n > 1)


class SmallContraction:
    """Write one contraction of small matrices; ``types`` are those of sums and result."""

    def __init__(
        self,
        factors: Factors,
        types: tuple[ElementType, ElementType],
        write: Write,
        scope: Scope,
    ) -> None:
        self._factors, self._write, self._scope = factors, write, scope
        self._sums, self._result = types
        self._width = min(factors.m, _ROWS)
        self._lanes = factors.n if scope.is_inside_element else _lanes(factors, self._sums)
        self._right = self._converted()

    def emit(self) -> None:
        """Write the loops over blocks of rows, which threads share."""
        scope, factors, width = self._scope, self._factors, self._width
        blocks = -(-factors.m // width)
        cost = width * factors.n * factors.k
        with nest.outer(scope, (factors.batch, blocks), cost) as (b, block):
            first = scope.bind(ix.multiply(block, width))
            count = scope.bind(ix.clamp(0, ix.subtract(factors.m, first), width))
            rows = b, first, count
            if self._is_stored:
                self._add_up(rows, lambda row, n, total: self._store(rows, row, n, total))
            else:
                self._keep(rows)

    @property
    def _is_stored(self) -> bool:
        """Return whether results are stored as soon as their sums are known: as they are, or as
        whole vectors that take no longer to compute than to keep."""
        factors, sums = self._factors, self._sums
        is_whole = factors.n % _VECTOR == 0 and factors.k < _LEAST and sums is self._result
        is_as_it_is = result_array(self._write, factors, sums) is not None
        is_direct = is_whole or is_as_it_is or self._scope.is_inside_element
        return is_direct and self._lanes == factors.n

    def _keep(self, rows: Rows) -> None:
        """Write the sums of a block of rows to the stack, then their results."""
        scope, columns = self._scope, self._factors.n
        # A row's lanes beyond its columns are overwritten by the next row.
        totals = scope.local(self._sums, self._width * columns + self._lanes - columns)

        def keep(row: Expr, n: Expr, total: Expr) -> None:
            scope.store(totals, ix.add(ix.multiply(row, columns), n), total)

        def store(row: Expr, n: Expr, number: Expr) -> None:
            self._store(rows, row, n, scope.bind(scope.load(totals, number)))

        self._add_up(rows, keep)
        write_rows(scope, rows[2], self._width, columns, store)

    def _store(self, rows: Rows, row: Expr, n: Expr, total: Expr) -> None:
        """Write one result, of a row of a block."""
        b, first, _ = rows
        place = self._factors.place(b, ix.add(first, row), n)
        self._write(place, (as_type(total, self._result),))

    def _add_up(self, rows: Rows, keep: Callable[[Expr, Expr, Expr], None]) -> None:
        """Write the sums of a block of rows, with columns in lanes; give each to ``keep``."""
        scope, k, lanes = self._scope, self._factors.k, self._lanes
        left = self._converted_rows(rows)
        zero = Constant(self._sums, 0.0)  # so that no sum is -0
        groups = k // _TOGETHER if k > _WRITTEN_OUT else 0
        rest = range(groups * _TOGETHER, k)
        with scope.loop(rows[2]) as row:

            def added(total: Expr, n: Expr, steps: Iterable[Expr]) -> Expr:
                pairs = [(left(row, step), self._right(rows[0], n, step)) for step in steps]
                products = [apply("multiply", *map(self._factor, pair)) for pair in pairs]
                return reduce(lambda x, y: apply("add", x, y), products, total)

            start = scope.local(self._sums, lanes) if groups else None
            if start is not None:
                with scope.loop(lanes, "lanes") as n:
                    scope.store(start, n, zero)
                with scope.loop(groups) as group, scope.loop(lanes, "lanes") as n:
                    first = ix.multiply(group, _TOGETHER)
                    some = added(zero, n, (ix.add(first, step) for step in range(_TOGETHER)))
                    scope.store(start, n, apply("add", scope.load(start, n), some))
            with scope.loop(lanes, "lanes") as n:
                before = zero if start is None else scope.bind(scope.load(start, n))
                keep(row, n, scope.bind(added(before, n, map(ix.constant, rest))))

    def _factor(self, read: tuple[Expr, tuple[Expr, ...]]) -> Expr:
        """Return a factor in the type of the sums; one that the lanes share is bound before
        them."""
        factor = as_type(masked(*read), self._sums)
        return self._scope.bind(factor) if self._scope.is_invariant(factor) else factor

    def _converted(self) -> Read:
        """Return a reader of the right factors, by whole vectors of columns: those beyond the last
        one are anything.

        They are written to scratch, step by step, if they do not lie so in memory, or their type is
        not that of the sums.
        """
        scope, factors, sums = self._scope, self._factors, self._sums
        strides = factor_strides(factors.rhs, (factors.batch, factors.n, factors.k), sums)
        if strides is not None and strides.line == 1 and self._lanes == factors.n:
            return factors.rhs
        dims = factors.batch, factors.k, self._lanes

        def read(b: Expr, step: Expr, n: Expr) -> tuple[Expr, tuple[Expr, ...]]:
            return factors.rhs(b, ix.clamp(0, n, factors.n - 1), step)

        scratch = stored_factors(read, dims, sums, scope)
        return lambda b, n, step: (scope.load(scratch, ix.linearize((b, step, n), dims)), ())

    def _converted_rows(self, rows: Rows) -> RowRead:
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
    is_shared = factors.m >= _MANY and factors.k >= _LEAST and factors.n % _HALF
    least = _HALF if factors.n <= _HALF or sums is F64 else _VECTOR
    return -(-factors.n // least) * least if is_shared else factors.n
