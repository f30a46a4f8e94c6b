"""Multiply a matrix and a few vectors in fast mode: bound by memory, each element is read once.

Nothing is packed: such products take as long as the matrix takes to come from memory. Where the
rows of the matrix that are summed lie side by side, their sums are the lanes; where the factors of
one sum do, lanes of partial sums run along it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.digits import divides, write_lanes
from backend_c.ir.loop_ir import Array, Constant, Expr, Loop, Variable
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import Write, as_type, masked
from backend_c.kernels.parts.contraction.factor_memory import stored_factors
from backend_c.kernels.parts.contraction.factors import Factors, Read
from backend_c.kernels.parts.contraction.strided_access import (
    factor_strides,
    has_lines_side_by_side,
    result_array,
)
from hlo.types import ElementType

_LINES = 512  # of the matrix that share one pass along k: their sums stay in the L1 cache
_WRITTEN_OUT = 16  # steps: the elements of lines in lanes stay in registers if they have fewer
_STEPS = 4  # of k for which the sums are loaded and stored once
_SUMS = 4  # that one loop in lanes adds up
_LANES = 8  # lines at least that a block finishes before results are computed of their sums
_KEPT = 64  # and at most
_MOST_KEPT = 1 << 13  # products of a block: sums of more take longer than what is computed of them
_STAGED = 1024  # computed elements of a line on the stack: those of a group stay in the L1 cache
_DEPTH = 2048  # steps that are added up before they are added to the total, as plain sums are

# Writes the sums of a batch's lines, from a first one on, so many, to the arrays of the vectors.
AddUp = Callable[[Expr, Expr, Expr, Sequence[Array]], None]


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
        # Products of a vector with one vector each are the lines of one batch, so to say.
        self.is_single = factors.m == factors.n == 1
        self.batch = 1 if self.is_single else factors.batch
        self.lines = factors.batch if self.is_single else max(factors.m, factors.n)
        self.matrix = factors.rhs if self.is_row else factors.lhs
        self.is_staged = self._is_divided()
        self.vector = self._materialised(factors.lhs if self.is_row else factors.rhs)

    def _is_divided(self) -> bool:
        """Return whether an index is divided along k for elements of the matrix (a scale that some
        of them share): they are computed before the loop that adds their products up."""
        scope, k, zero = self.scope, self.factors.k, ix.constant(0)
        before = scope.written()
        kept = scope.local(self.sums, 1)
        with scope.loop(k, "lanes") as step:
            scope.store(kept, zero, self._factor(zero, zero, step))
        loop = scope.last_statement
        scope.forget_after(before)
        return isinstance(loop, Loop) and divides(loop, k)

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
        sizes = self.factors.batch, max(self.factors.m, self.factors.n), self.factors.k
        has_lines_in_lanes = has_lines_side_by_side(self.matrix, sizes, self.scope)
        is_short = self.factors.k < (_WRITTEN_OUT if has_lines_in_lanes else nest.FEW)
        width = self._kept_lines()
        if is_short and (has_lines_in_lanes or not width):
            self._written_out()
        elif has_lines_in_lanes:
            self._lines_in_lanes()
        elif width:
            self._in_blocks(width, self._sums_written_out if is_short else self._sums_in_groups)
        else:
            self._steps_in_lanes()

    def _place(self, b: Expr, line: Expr) -> tuple[Expr, Expr]:
        """Return the batch of the factors that a line belongs to, and its number there."""
        return (line, ix.constant(0)) if self.is_single else (b, line)

    def _factor(self, b: Expr, line: Expr, step: Expr) -> Expr:
        """Return an element of the matrix."""
        return as_type(masked(*self.matrix(*self._place(b, line), step)), self.sums)

    def _elements(self, b: Expr, line: Expr, step: Expr) -> list[Expr]:
        """Return the elements of all vectors that are multiplied by one of a line."""
        b, _ = self._place(b, line)
        return [self.vector(b, ix.constant(v), step)[0] for v in range(self.few)]

    def _zero(self, count: int) -> list[Array]:
        """Declare sums for each vector, and write zeros."""
        arrays = [self.scope.local(self.sums, count) for _ in range(self.few)]
        with self.scope.loop(count, "lanes") as lane:
            for array in arrays:
                self.scope.store(array, lane, Constant(self.sums, 0.0))
        return arrays

    def _store(self, b: Expr, vector: int, line: Expr, total: Expr) -> None:
        """Write one result."""
        b, line = self._place(b, line)
        m, n = (ix.constant(vector), line) if self.is_row else (line, ix.constant(vector))
        self.write(self.factors.place(b, m, n), (as_type(total, self.result),))

    def _written_out(self) -> None:
        """Write the loop in lanes over lines, with the sums of few steps written out."""
        scope = self.scope
        dims = self.batch, self.lines
        with nest.split(scope, dims, self.factors.k * self.few) as (b, line):
            self._write_out(b, line, lambda vector, total: self._store(b, vector, line, total))

    def _write_out(self, b: Expr, line: Expr, keep: Callable[[int, Expr], None]) -> None:
        """Write the sums of a line's few products with each vector; give each to ``keep``."""
        scope, steps = self.scope, list(map(ix.constant, range(self.factors.k)))
        factors = [scope.bind(self._factor(b, line, step)) for step in steps]
        vectors = zip(*(self._elements(b, line, step) for step in steps), strict=True)
        for vector, elements in enumerate(vectors):
            total: Expr = Constant(self.sums, 0.0)  # so that no sum is -0
            for element, factor in zip(elements, factors, strict=True):
                total = apply("add", total, apply("multiply", element, factor))
            keep(vector, scope.bind(total))

    def _lines_in_lanes(self) -> None:
        """Write blocks of lines in lanes: each adds the products of a few steps at a time."""
        scope, k = self.scope, self.factors.k
        width = min(self.lines, _LINES)
        blocks = -(-self.lines // width)
        with nest.outer(scope, (self.batch, blocks), width * k) as (b, block):
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
        elements = list(zip(*(map(scope.bind, self._elements(b, first, s)) for s in at)))
        with scope.loop(count, "lanes") as lane:
            line = ix.add(first, lane)
            factors = [scope.bind(self._factor(b, line, step)) for step in at]
            for array, vector in zip(sums, elements, strict=True):
                products = map(lambda x, y: apply("multiply", x, y), vector, factors)
                total = reduce(lambda x, y: apply("add", x, y), products)
                scope.store(array, lane, apply("add", scope.load(array, lane), total))

    def _steps_in_lanes(self) -> None:
        """Write groups of lines that share loads of the vectors, with lanes along k."""
        together, (groups, rest) = self._together, divmod(self.lines, self._together)
        self._groups(ix.constant(0), groups, together)
        self._groups(ix.constant(self.lines - rest), rest, 1)

    @property
    def _together(self) -> int:
        """The number of lines of a group, which share what is read of the vectors."""
        return 1 if self.is_single else max(1, _SUMS // self.few)

    def _groups(self, start: Expr, groups: int, together: int) -> None:
        """Write a loop over groups of lines, whose results are stored as soon as they are known."""
        if not groups:
            return
        dims, cost = (self.batch, groups), self.factors.k * self.few * together
        with nest.outer(self.scope, dims, cost) as (b, group):
            place = ix.add(start, ix.multiply(group, together))
            for line, vector, total in self._sums(b, ix.constant(0), place, together):
                self._store(b, vector, line, total)

    def _sums(
        self, b: Expr, start: Expr, place: Expr, together: int
    ) -> Iterator[tuple[Expr, int, Expr]]:
        """Write a loop in lanes along k, with a sum for each vector and each line of a group.

        Yields the line, counted from ``start`` as is ``place``, the group's first one, and the
        number of the vector with each sum.
        """
        scope = self.scope
        lines = [scope.bind(ix.add(place, n)) for n in range(together)]
        sums = [
            [scope.mutable(self.sums, Constant(self.sums, 0.0)) for _ in range(self.few)]
            for _ in lines
        ]
        places, k = [ix.add(start, line) for line in lines], self.factors.k
        if self.is_staged:
            length = min(k, _STAGED)
            with scope.loop(k // length) as part:
                self._add_staged(sums, (b, places), ix.multiply(part, length), length)
            if rest := k % length:
                self._add_staged(sums, (b, places), ix.constant(k - rest), rest)
        else:
            with scope.loop(k, "lanes", [one for row in sums for one in row]) as step:
                for place, row in zip(places, sums, strict=True):
                    elements = self._elements(b, place, step)
                    self._add(row, elements, scope.bind(self._factor(b, place, step)))
        for line, row in zip(lines, sums, strict=True):
            for vector, one in enumerate(row):
                yield line, vector, scope.bind(one)

    def _add(self, sums: Sequence[Variable], elements: Sequence[Expr], factor: Expr) -> None:
        """Write the addition of an element's products with each vector to the sums of its line."""
        for element, one in zip(elements, sums, strict=True):
            self.scope.assign(one, apply("multiply-add", element, factor, one))

    def _add_staged(
        self,
        sums: Sequence[Sequence[Variable]],
        lines: tuple[Expr, Sequence[Expr]],
        start: Expr,
        length: int,
    ) -> None:
        """Write the computation of ``length`` elements of each line on the stack, and the addition
        of their products."""
        scope, (b, places) = self.scope, lines
        stages = [scope.local(self.sums, length) for _ in places]

        def write(line: Expr, stage: Array, lane: Expr) -> None:
            scope.store(stage, lane, self._factor(b, line, ix.add(start, lane)))

        for line, stage in zip(places, stages, strict=True):
            write_lanes(scope, length, "lanes", partial(write, line, stage))
        with scope.loop(length, "lanes", [one for row in sums for one in row]) as lane:
            for line, stage, row in zip(places, stages, sums, strict=True):
                elements = self._elements(b, line, ix.add(start, lane))
                self._add(row, elements, scope.bind(scope.load(stage, lane)))

    def _kept_lines(self) -> int:
        """Return how many lines are added up before results are computed of their sums, in lanes.

        0 if sums are stored as they are, or take longer than what is computed of them could.
        """
        is_stored = result_array(self.write, self.factors, self.sums) is not None
        if is_stored or self.lines < _LANES:
            return 0
        width = min(_KEPT, _MOST_KEPT // (self.factors.k * self.few))
        return min(self.lines, width - width % _LANES)

    def _in_blocks(self, width: int, add_up: AddUp) -> None:
        """Write blocks of lines: the sums of all of them, then their results in lanes."""
        scope, dims = self.scope, (self.batch, -(-self.lines // width))
        with nest.outer(scope, dims, width * self.factors.k * self.few) as (b, block):
            first = scope.bind(ix.multiply(block, width))
            count = scope.bind(ix.clamp(0, ix.subtract(self.lines, first), width))
            kept = [scope.local(self.sums, width) for _ in range(self.few)]
            add_up(b, first, count, kept)
            for vector, totals in enumerate(kept):
                with scope.loop(count, "lanes") as lane:
                    value = scope.bind(scope.load(totals, lane))
                    self._store(b, vector, ix.add(first, lane), value)

    def _sums_written_out(self, b: Expr, first: Expr, count: Expr, kept: Sequence[Array]) -> None:
        """Write the sums of few steps of a block of lines to the arrays of each vector."""
        scope = self.scope
        with scope.loop(count, "lanes") as lane:
            line = ix.add(first, lane)
            self._write_out(b, line, lambda vector, total: scope.store(kept[vector], lane, total))

    def _sums_in_groups(self, b: Expr, first: Expr, count: Expr, kept: Sequence[Array]) -> None:
        """Write the sums of a block of lines, to the arrays of each vector, with lanes along k."""
        scope, together = self.scope, self._together
        groups = scope.bind(ix.divide(count, together))
        self._keep_groups(b, first, (ix.constant(0), groups, together), kept)
        if self.lines % together:
            start = scope.bind(ix.multiply(groups, together))
            self._keep_groups(b, first, (start, ix.subtract(count, start), 1), kept)

    def _keep_groups(
        self, b: Expr, first: Expr, groups: tuple[Expr, Expr, int], kept: Sequence[Array]
    ) -> None:
        """Write the sums of some groups of a block: the place of the first one, how many, and the
        lines of each."""
        scope, (start, count, together) = self.scope, groups
        with scope.loop(count) as group:
            place = ix.add(start, ix.multiply(group, together))
            for line, vector, total in self._sums(b, first, place, together):
                scope.store(kept[vector], line, total)
