"""Compute exact sums over leading dimensions: neighbouring columns share a vector.

First every block of rows is added up in f64, a strip of columns at a time; then, result by result,
the blocks are added in double-double, and the rounding decided or all of it added again exactly.

A result is a column, or a run of neighbouring ones: a group of channels, whose other elements are
rows apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.gpu import RESIDENT_THREADS
from backend_c.ir.loop_ir import Address, Array, Constant, Expr, Variable
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.reduction.exact_sum import decided_sum
from hlo.types import F64

_STRIP = 1 << 9  # columns whose sums stay in the first cache; fewer would read memory in snippets
_BLOCK = 1 << 12  # rows whose plain f64 sum leaves few roundings in doubt
_SHARES = 16  # blocks of rows to be shared by the threads, if there are rows enough
_MOST_SHARES = 1 << 7  # the same of a GPU: a thread for each column of a block

At = Callable[[Sequence[Expr], Sequence[Expr]], Expr]  # (kept index, reduced index) → element


class ColumnSums:
    """Write ``result[kept] = init + sum over reduced``; the last dimension is kept.

    With ``run``, results are sums of so many neighbouring columns, which the last dimension of
    ``kept`` counts, and ``dims`` are the extents of the results.
    """

    def __init__(
        self,
        scope: Scope,
        kept: tuple[int, ...],
        reduced: tuple[int, ...],
        at: At,
        init: Element,
        *,
        run: int = 1,
        dims: tuple[int, ...] | None = None,
    ) -> None:
        self._scope, self._kept, self._reduced, self._at, self._init = (
            scope, kept, reduced, at, init,
        )  # fmt: skip
        self._run, self._dims = run, kept if dims is None else dims
        inner = math.prod(reduced[1:])
        # Blocks are long enough to amortise the strip's set-up, and short enough for the bound and
        # to give every thread one.
        shares = _SHARES
        if scope.settings.has_blocks:
            shares = min(max(-(-RESIDENT_THREADS // math.prod(kept)), 1), _MOST_SHARES)
        share = max(-(-reduced[0] // shares), -(-64 // inner))
        self._length = min(reduced[0], max(1, _BLOCK // inner), share)
        self._blocks = -(-reduced[0] // self._length)
        self._rows = self._length * inner

    def emit(self, write: Writer) -> None:
        """Write the sums of all blocks, then the results."""
        results = math.prod(self._kept)
        totals = self._scope.scratch(F64, results * self._blocks)
        magnitudes = self._scope.scratch(F64, results * self._blocks)
        if nest.has_blocks(self._scope):
            self._add_by_threads(totals, magnitudes)
        else:
            self._add_blocks(totals, magnitudes)
        trip = self._blocks * self._run * 8
        with nest.outer(self._scope, self._dims, trip) as kept:
            write(kept, (self._total(kept, totals, magnitudes),))

    def _place(self, kept: Sequence[Expr], block: Expr) -> Expr:
        """Return the offset of a block's sum in [outer][block][column]."""
        *outer, column = kept
        row = ix.linearize((*outer, block), (*self._kept[:-1], self._blocks))
        return ix.add(ix.multiply(row, self._kept[-1]), column)

    def _add_blocks(self, totals: Array, magnitudes: Array) -> None:
        """Write the f64 sums of all blocks of rows, and their sums of magnitudes."""
        scope, columns = self._scope, self._kept[-1]
        width = min(columns, _STRIP)
        dims = (*self._kept[:-1], self._blocks, -(-columns // width))
        with nest.outer(scope, dims, self._rows * width) as (*outer, block, strip):
            first = scope.bind(ix.multiply(strip, width))
            count = ix.clamp(0, ix.subtract(columns, first), width)
            sums, sizes = scope.local(F64, width), scope.local(F64, width)
            with scope.loop(count, "lanes") as lane:
                # -0 is the neutral element of addition; the init is added to the blocks' sums only.
                scope.store(sums, lane, Constant(F64, -0.0))
                scope.store(sizes, lane, Constant(F64, 0.0))
            start = ix.multiply(block, self._length)
            rows = ix.clamp(0, ix.subtract(self._reduced[0], start), self._length)
            with scope.loop(rows) as step, scope.over(self._reduced[1:]) as inner:
                row = (ix.add(start, step), *inner)
                with scope.loop(count, "lanes") as lane:
                    value = self._at((*outer, ix.add(first, lane)), row)
                    wide = scope.bind(apply("widen", value, type=F64))
                    scope.store(sums, lane, apply("add", scope.load(sums, lane), wide))
                    size = apply("add", scope.load(sizes, lane), apply("abs", wide))
                    scope.store(sizes, lane, size)
            with scope.loop(count, "lanes") as lane:
                place = self._place((*outer, ix.add(first, lane)), block)
                scope.store(totals, place, scope.load(sums, lane))
                scope.store(magnitudes, place, scope.load(sizes, lane))

    def _add_by_threads(self, totals: Array, magnitudes: Array) -> None:
        """Write the sums of all blocks of rows by threads of a GPU, one for each column of a
        block."""
        scope = self._scope
        dims = (*self._kept[:-1], self._blocks, self._kept[-1])
        with scope.loop(math.prod(dims), "parallel lanes") as number:
            *outer, block, column = map(scope.bind, ix.delinearize(number, dims))
            total = scope.mutable(F64, Constant(F64, -0.0))
            size = scope.mutable(F64, Constant(F64, 0.0))
            start = ix.multiply(block, self._length)
            rows = ix.clamp(0, ix.subtract(self._reduced[0], start), self._length)
            with scope.loop(rows) as step, scope.over(self._reduced[1:]) as inner:
                value = self._at((*outer, column), (ix.add(start, step), *inner))
                wide = scope.bind(apply("widen", value, type=F64))
                scope.assign(total, apply("add", total, wide))
                scope.assign(size, apply("add", size, apply("abs", wide)))
            place = self._place((*outer, column), block)
            scope.store(totals, place, total)
            scope.store(magnitudes, place, size)

    def _total(self, kept: Sequence[Expr], totals: Array, magnitudes: Array) -> Expr:
        """Add up a result's blocks in double-double; return the sum, rounded once."""
        scope, blocks = self._scope, self._blocks
        start = scope.bind(apply("widen", self._init.at(), type=F64))
        high = scope.mutable(F64, start)
        low = scope.mutable(F64, Constant(F64, 0.0))
        size = scope.mutable(F64, apply("abs", start))
        with scope.over((blocks, self._run)) as (block, neighbour):
            place = self._place(self._column(kept, neighbour), block)
            scope.call("hlo_dd_add", Address(high), Address(low), scope.load(totals, place))
            scope.assign(size, apply("add", size, scope.load(magnitudes, place)))
        scope.assign(high, apply("add", high, low))

        def addends(sums: Sequence[Variable], add: Callable[[Expr], None]) -> None:
            with scope.over((*self._reduced, self._run)) as (*row, neighbour):
                add(self._at(self._column(kept, neighbour), row))

        # 8 more roundings: of the magnitudes, and of the pair to one double.
        sums = high, size, ix.constant(self._rows + 8)
        return decided_sum(scope, self._init, sums, addends)

    def _column(self, kept: Sequence[Expr], neighbour: Expr) -> Sequence[Expr]:
        """Return the index of one of a result's columns."""
        if self._run == 1:
            return kept
        place = ix.add(ix.multiply(ix.linearize(kept, self._dims), self._run), neighbour)
        return [self._scope.bind(i) for i in ix.delinearize(place, self._kept)]
