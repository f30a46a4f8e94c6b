"""Multiply a matrix and a few vectors by blocks of threads: bound by memory.

A block has lines of the matrix, or of the matrices of a batch. Its threads are neighbours where
the matrix is: along lines that lie side by side, else along steps. Threads of a line share its
steps, of which each adds up every so-many'th for all vectors; a tree reduction in shared memory
adds their sums. Long sums of few lines are divided among blocks, too, and a launch adds those
parts up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import zero
from backend_c.ir.loop_ir import Array, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction.strided_access import has_lines_side_by_side
from backend_c.kernels.parts.contraction_in_blocks.added_products import AddedProducts
from backend_c.kernels.parts.contraction_in_blocks.block_products import (
    ENOUGH,
    THREADS,
    BlockProduct,
)
from backend_c.kernels.parts.contraction_in_blocks.block_staging import Sizes
from backend_c.kernels.parts.contraction_in_blocks.block_tiles import Finish, Place
from hlo.types import PRED

# Lines of a block: 8 of f32 are the least that memory gives at a time.
_SIDE_BY_SIDE, _APART = (32, 16, 8), (8, 4, 2, 1)
_WARP = 32
_LEAST = 4  # steps of a thread, for which adding up what threads have pays
_LONG = 32  # the same of blocks
_TOGETHER = 8  # steps that do not wait for each other

_FinishPart = Callable[[Sequence[Expr], Place, Expr], None]  # of a part of a sum, by its number


class _Shares(NamedTuple):
    """Divide the work: ``lines`` per block, ``threads`` per line, ``blocks`` per sum.

    A thread has ``steps`` steps, of which ``together`` are unrolled.
    """

    lines: int
    threads: int
    blocks: int
    steps: int
    together: int


class BlockVectors:
    """Write the products of a matrix and a few vectors, for blocks of threads."""

    def __init__(self, factors: Factors, product: BlockProduct, scope: Scope) -> None:
        self._factors, self._product, self._scope = factors, product, scope
        self._sums = AddedProducts(factors, product, scope)
        self._few, self._lines = sorted((factors.m, factors.n))
        self._all = factors.batch * self._lines
        self._is_row = factors.m < factors.n  # whether the rows of lhs are the vectors
        matrix = factors.rhs if self._is_row else factors.lhs
        sizes = factors.batch, self._lines, factors.k
        self._side_by_side = has_lines_side_by_side(matrix, sizes, scope)
        self._shares = _shares(sizes, self._side_by_side, product)
        shares = self._shares
        self._length = shares.threads * shares.steps  # of a block's part of a sum
        # Those that an addend goes through: of its thread, of halves, of parts.
        self.roundings = shares.steps + shares.threads.bit_length() + shares.blocks

    def emit(self, finish: Finish) -> None:
        """Write all sums; ``finish`` is the epilogue of each."""
        factors, scope, parts = self._factors, self._scope, self._shares.blocks
        if parts == 1:
            self._blocks(lambda sums, place, part: finish(sums, place, None))
            return
        dims = parts, factors.batch, factors.m, factors.n
        kind, count = self._product.sums, dims[0] * dims[1] * dims[2] * dims[3]
        arrays = [scope.scratch(kind, count, frozen=True) for _ in range(self._product.parts)]

        def store(sums: Sequence[Expr], place: Place, part: Expr) -> None:
            for array, value in zip(arrays, sums, strict=True):
                scope.store(array, ix.linearize((part, *place), dims), value)

        self._blocks(store)
        with nest.outer(scope, dims[1:], parts) as (b, m, n):
            totals = [scope.mutable(kind, zero(kind)) for _ in arrays]
            with scope.loop(parts, "lanes", totals) as part:
                for total, array in zip(totals, arrays, strict=True):
                    value = scope.load(array, ix.linearize((part, b, m, n), dims))
                    scope.assign(total, self._sums.added(total, value))
            finish([scope.bind(total) for total in totals], (b, m, n), None)

    def _blocks(self, finish: _FinishPart) -> None:
        """Write the sums, or parts of them, block by block."""
        scope, shares = self._scope, self._shares
        dims = shares.blocks, -(-self._all // shares.lines)
        elements = self._few * shares.lines * shares.threads
        with scope.blocks(dims[0] * dims[1], THREADS) as number:
            part, block = map(scope.bind, ix.delinearize(number, dims))
            first = scope.bind(ix.multiply(block, shares.lines))
            start = scope.bind(ix.multiply(part, self._length))
            kept = [scope.shared(self._product.sums, elements) for _ in range(self._product.parts)]
            with scope.loop(shares.lines * shares.threads, "threads") as unit:
                self._add_up(first, start, unit, kept)
            scope.barrier()
            self._halve(kept)
            with scope.loop(self._few * shares.lines, "threads") as number:
                vector, own = ix.delinearize(number, (self._few, shares.lines))
                line = ix.add(first, own)
                with self._within(line):
                    at = self._at(vector, own, ix.constant(0))
                    sums = [scope.bind(scope.load(array, at)) for array in kept]
                    finish(sums, self._place(line, vector), part)
            scope.barrier()

    def _within(self, line: Expr) -> AbstractContextManager[None]:
        """Open an ``if`` for lines that exist, or nothing if all do."""
        if ix.bounds(line)[1] < self._all:
            return nullcontext()
        return self._scope.when(apply("compare-LT", line, ix.constant(self._all), type=PRED))

    def _place(self, number: Expr, vector: Expr) -> Place:
        """Return the (batch, row, column) of a result, from its line's number among all batches."""
        inside = ix.clamp(0, number, self._all - 1)
        b, line = map(self._scope.bind, ix.delinearize(inside, (self._factors.batch, self._lines)))
        return (b, vector, line) if self._is_row else (b, line, vector)

    def _at(self, vector: Expr, line: Expr, thread: Expr) -> Expr:
        """Return the offset of a thread's partial sum in shared memory, neighbours side by side."""
        shares = self._shares
        if self._side_by_side:
            dims = self._few, shares.threads, shares.lines
            return ix.linearize((vector, thread, line), dims)
        return ix.linearize((vector, line, thread), (self._few, shares.lines, shares.threads))

    def _add_up(self, first: Expr, start: Expr, unit: Expr, kept: Sequence[Array]) -> None:
        """Write the partial sums of one thread, from line ``first`` and step ``start`` of its
        block on."""
        scope, shares, k = self._scope, self._shares, self._factors.k
        if self._side_by_side:
            thread, own = map(scope.bind, ix.delinearize(unit, (shares.threads, shares.lines)))
        else:
            own, thread = map(scope.bind, ix.delinearize(unit, (shares.lines, shares.threads)))
        line = ix.add(first, own)
        places = [self._place(line, ix.constant(vector)) for vector in range(self._few)]
        sums = [self._sums.zeros() for _ in places]
        begin = scope.bind(ix.add(start, thread))
        with scope.loop(shares.steps // shares.together) as turn:
            before = ix.multiply(turn, shares.together * shares.threads)
            for number in range(shares.together):
                step = scope.bind(ix.add(begin, before, number * shares.threads))
                there = []
                if ix.bounds(step)[1] >= k:
                    there.append(apply("compare-LT", step, ix.constant(k), type=PRED))
                step = scope.bind(ix.clamp(0, step, k - 1))
                for place, parts in zip(places, sums, strict=True):
                    self._sums.add(parts, place, step, *there)
        for vector, parts in enumerate(sums):
            at = self._at(ix.constant(vector), own, thread)
            for array, value in zip(kept, parts, strict=True):
                scope.store(array, at, value)

    def _halve(self, kept: Sequence[Array]) -> None:
        """Write the tree reduction of the partial sums of the threads of each line."""
        scope, shares, left = self._scope, self._shares, self._shares.threads
        # A power of two, as THREADS and all of _SIDE_BY_SIDE and _APART are.
        while left > 1:
            left //= 2
            dims = self._few, left, shares.lines
            with scope.loop(dims[0] * dims[1] * dims[2], "threads") as number:
                if self._side_by_side:
                    vector, thread, own = ix.delinearize(number, dims)
                else:
                    vector, own, thread = ix.delinearize(number, (dims[0], dims[2], dims[1]))
                one, other = (self._at(vector, own, ix.add(thread, n)) for n in (0, left))
                for array in kept:
                    value = self._sums.added(scope.load(array, one), scope.load(array, other))
                    scope.store(array, one, value)
            scope.barrier()


def _shares(sizes: Sizes, side_by_side: bool, product: BlockProduct) -> _Shares:
    """Divide the lines and steps of a matrix among blocks and threads.

    Blocks have as many lines as leave enough of them for all multiprocessors; with fewer lines
    more threads share each, as long as there are steps for these.
    """
    batch, count, k = sizes
    most = max(_WARP if not side_by_side else THREADS // _SIDE_BY_SIDE[0], k // _LEAST)
    usable = [
        lines
        for lines in (_SIDE_BY_SIDE if side_by_side else _APART)
        if THREADS // lines <= most
    ]  # fmt: skip
    lines = next((n for n in usable if batch * count >= n * ENOUGH), usable[-1])
    threads = THREADS // lines
    blocks = 1
    if product.sums is not PRED:  # whose parts no block combines
        wanted = ENOUGH // -(-batch * count // lines)
        blocks = max(min(wanted, k // (threads * _LONG)), 1)
    steps = -(-k // (threads * blocks))
    together = min(steps, _TOGETHER)
    steps = -(-steps // together) * together
    return _Shares(lines, threads, -(-k // (threads * steps)), steps, together)
