"""Multiply a matrix and a few vectors in fast mode: bound by memory, each element is read once.

Nothing is packed: such products take as long as the matrix takes to come from memory. Where the
rows of the matrix that are summed lie side by side, their sums are the lanes; where the factors of
one sum do, lanes of partial sums run along it.
"""

from __future__ import annotations

from functools import reduce

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Array, Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import Write, as_type, masked
from backend_c.kernels.parts.contraction.factor_memory import stored_factors
from backend_c.kernels.parts.contraction.factors import Factors, Read
from backend_c.kernels.parts.contraction.strided_access import (
    factor_strides,
    has_lines_side_by_side,
)
from hlo.types import ElementType

FEW = 4  # vectors at most; a tile has more rows, and packing pays
_LINES = 512  # of the matrix that share one pass along k: their sums stay in the L1 cache
_STEPS = 4  # of k for which the sums are loaded and stored once
_SUMS = 4  # that one loop in lanes adds up
_DEPTH = 2048  # steps that are added up before they are added to the total, as plain sums are


class SkinnyContraction:
    """Write one contraction with few rows or columns; ``types`` are those of sums and result."""

    def __init__(
        self,
        factors: Factors,
        types: tuple[ElementType, ElementType],
        write: Write,
        scope: Scope,
    ) -> None:
        self.factors, self.write, self.scope = factors, write, scope
        self.sums, self.result = types
        self.is_row = factors.m < factors.n  # whether the rows of lhs are the vectors
        self.few = min(factors.m, factors.n)
        self.lines = max(factors.m, factors.n)
        self.matrix = factors.rhs if self.is_row else factors.lhs
        self.vector = self._materialised(factors.lhs if self.is_row else factors.rhs)

    def _materialised(self, read: Read) -> Read:
        """Return a reader of the vectors in memory, in the type of the sums and contiguous.

        They are copied to scratch if they are not, as each element is read once per line of the
        matrix.
        """
        scope, factors = self.scope, self.factors
        strides = factor_strides(read, (factors.batch, self.few, factors.k), self.sums)
        if strides is not None and strides.step == 1:
            return read
        dims = factors.batch, self.few, factors.k
        vectors = stored_factors(read, dims, self.sums, scope)

        def stored(b: Expr, vector: Expr, step: Expr) -> tuple[Expr, tuple[Expr, ...]]:
            return scope.load(vectors, ix.linearize((b, vector, step), dims)), ()

        return stored

    def emit(self) -> None:
        """Write the products, with lanes along the dimension in which the matrix is contiguous."""
        sizes = self.factors.batch, self.lines, self.factors.k
        if has_lines_side_by_side(self.matrix, sizes, self.scope):
            self._lines_in_lanes()
        else:
            self._steps_in_lanes()

    def _factor(self, b: Expr, line: Expr, step: Expr) -> Expr:
        """Return an element of the matrix."""
        return as_type(masked(*self.matrix(b, line, step)), self.sums)

    def _element(self, b: Expr, vector: int, step: Expr) -> Expr:
        """Return an element of a vector."""
        return self.vector(b, ix.constant(vector), step)[0]

    def _zero(self, count: int) -> list[Array]:
        """Declare sums for each vector, and write zeros."""
        arrays = [self.scope.local(self.sums, count) for _ in range(self.few)]
        with self.scope.loop(count, "lanes") as lane:
            for array in arrays:
                self.scope.store(array, lane, Constant(self.sums, 0.0))
        return arrays

    def _store(self, b: Expr, vector: int, line: Expr, total: Expr) -> None:
        """Write one result."""
        m, n = (ix.constant(vector), line) if self.is_row else (line, ix.constant(vector))
        self.write(self.factors.place(b, m, n), (as_type(total, self.result),))

    def _lines_in_lanes(self) -> None:
        """Write blocks of lines in lanes: each adds the products of a few steps at a time."""
        scope, k = self.scope, self.factors.k
        width = min(self.lines, _LINES)
        blocks = -(-self.lines // width)
        with nest.outer(scope, (self.factors.batch, blocks), width * k) as (b, block):
            first = scope.bind(ix.multiply(block, width))
            count = scope.bind(ix.clamp(0, ix.subtract(self.lines, first), width))
            totals = self._zero(width)
            with scope.loop(-(-k // _DEPTH)) as part:
                start = scope.bind(ix.multiply(part, _DEPTH))
                here = scope.bind(ix.clamp(0, ix.subtract(k, start), _DEPTH))
                sums = self._zero(width)
                with scope.loop(ix.divide(here, _STEPS)) as group:
                    at = ix.add(start, ix.multiply(group, _STEPS))
                    self._add_products(sums, (b, first, count), at, _STEPS)
                rest = ix.multiply(ix.divide(here, _STEPS), _STEPS)
                with scope.loop(ix.subtract(here, rest)) as step:
                    self._add_products(sums, (b, first, count), ix.add(start, rest, step), 1)
                with scope.loop(count, "lanes") as lane:
                    for total, part_sum in zip(totals, sums, strict=True):
                        added = apply("add", scope.load(total, lane), scope.load(part_sum, lane))
                        scope.store(total, lane, added)
            for vector, total in enumerate(totals):
                with scope.loop(count, "lanes") as lane:
                    value = scope.bind(scope.load(total, lane))
                    self._store(b, vector, ix.add(first, lane), value)

    def _add_products(
        self, sums: list[Array], place: tuple[Expr, Expr, Expr], start: Expr, steps: int
    ) -> None:
        """Write the addition of the products of some steps to the sums of a block of lines."""
        scope, (b, first, count) = self.scope, place
        at = [scope.bind(ix.add(start, step)) for step in range(steps)]
        elements = [[scope.bind(self._element(b, v, s)) for s in at] for v in range(self.few)]
        with scope.loop(count, "lanes") as lane:
            line = ix.add(first, lane)
            factors = [scope.bind(self._factor(b, line, step)) for step in at]
            for array, vector in zip(sums, elements, strict=True):
                products = map(lambda x, y: apply("multiply", x, y), vector, factors)
                total = reduce(lambda x, y: apply("add", x, y), products)
                scope.store(array, lane, apply("add", scope.load(array, lane), total))

    def _steps_in_lanes(self) -> None:
        """Write groups of lines that share loads of the vectors, with lanes along k."""
        together = max(1, _SUMS // self.few)
        rest = self.lines % together
        self._lines_along_k(ix.constant(0), self.lines // together, together)
        self._lines_along_k(ix.constant(self.lines - rest), rest, 1)

    def _lines_along_k(self, start: Expr, groups: int, together: int) -> None:
        """Write loops in lanes along k, with a sum for each vector and each line of a group."""
        scope, k = self.scope, self.factors.k
        dims = self.factors.batch, groups
        if not groups:
            return
        with nest.outer(scope, dims, k * self.few * together) as (b, group):
            first = ix.add(start, ix.multiply(group, together))
            lines = [scope.bind(ix.add(first, n)) for n in range(together)]
            sums = [
                [scope.mutable(self.sums, Constant(self.sums, 0.0)) for _ in range(self.few)]
                for _ in lines
            ]
            with scope.loop(k, "lanes", [one for row in sums for one in row]) as step:
                elements = [self._element(b, vector, step) for vector in range(self.few)]
                for line, row in zip(lines, sums, strict=True):
                    factor = scope.bind(self._factor(b, line, step))
                    for element, one in zip(elements, row, strict=True):
                        scope.assign(one, apply("multiply-add", element, factor, one))
            for line, row in zip(lines, sums, strict=True):
                for vector, one in enumerate(row):
                    self._store(b, vector, line, scope.bind(one))
