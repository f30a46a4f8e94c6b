"""Write sums of few products for blocks of threads, each of which adds up some results alone.

Tiles of such products would be mostly empty: small matrices of a batch, convolutions with a group
for each feature or a few, outer products. Neighbouring threads have neighbouring results; each has
a strip of them in another dimension, pixels of a row or rows of a matrix, so that what it loads
serves several sums. Products are written one after the other, so that loads do not wait for each
other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import INDEX, Expr, Variable, variables
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction_in_blocks.added_products import AddedProducts
from backend_c.kernels.parts.contraction_in_blocks.block_products import (
    ENOUGH,
    THREADS,
    BlockProduct,
)
from backend_c.kernels.parts.contraction_in_blocks.block_tiles import Finish

STRIP = 8  # results of a thread
_UNROLLED = 32  # steps in a row
_TOGETHER = 8  # steps in a row, of more that have no dimension of their own


class ThreadSums:
    """Write the sums of a contraction, a strip of results for each thread."""

    def __init__(self, factors: Factors, product: BlockProduct, scope: Scope) -> None:
        self._factors, self._scope = factors, scope
        self._sums = AddedProducts(factors, product, scope)
        self.roundings = factors.k

    def emit(self, finish: Finish) -> None:
        """Write the loop over the strips of all threads."""
        factors, scope = self._factors, self._scope
        order = _order_of_results(factors)
        along = "n" if order[-1] == "m" else "m"
        strip = _strip(factors, along)
        extents = {"b": factors.batch, "m": factors.m, "n": factors.n}
        extents[along] //= strip
        cost = factors.k * strip
        with nest.flat(scope, tuple(extents[d] for d in order), cost) as index:
            first = dict(zip(order, map(scope.bind, index)))
            places = []
            for number in range(strip):
                there = ix.add(ix.multiply(first[along], strip), number)
                b, m, n = ((first | {along: there})[d] for d in "bmn")
                places.append((b, m, n))
            sums = [self._sums.zeros() for _ in places]
            with self._steps() as steps:
                for step in steps:
                    for place, parts in zip(places, sums, strict=True):
                        self._sums.add(parts, place, step)
            for place, parts in zip(places, sums, strict=True):
                finish([scope.bind(part) for part in parts], place, None)

    @contextmanager
    def _steps(self) -> Iterator[Sequence[Expr]]:
        """Open loops over k; yield the steps of one iteration, which are unrolled."""
        dims = [extent for extent in self._factors.k_dims or (self._factors.k,) if extent > 1]
        inner: list[int] = []
        while dims and math.prod(inner) * dims[-1] <= _UNROLLED:
            inner.insert(0, dims.pop())
        if dims and not inner:
            inner = [_divisor(dims[-1], _TOGETHER)]
            dims[-1] //= inner[0]
        row = math.prod(inner)
        with self._scope.over(dims) as outer:
            first = ix.multiply(ix.linearize(outer, dims), row)
            yield [ix.add(first, step) for step in range(row)]


def _order_of_results(factors: Factors) -> str:
    """Return a permutation of "bmn", from the slowest to the fastest dimension of the result in
    memory."""
    sizes = {"b": factors.batch, "m": factors.m, "n": factors.n}
    some = {d: Variable(INDEX, f"any_{d}", 0, size - 1) for d, size in sizes.items()}
    index = [set(variables(i)) for i in factors.place(some["b"], some["m"], some["n"])]

    def last(d: str) -> int:
        """Return the last dimension of the result that depends on an index; -1 if none does."""
        found = (at for at, names in enumerate(index) if some[d].name in names)
        return max(found, default=-1) if sizes[d] > 1 else -1

    return "".join(sorted(sizes, key=last))


def _strip(factors: Factors, along: str) -> int:
    """Return the length of strips: it divides a row of pixels, and leaves work for all threads."""
    extent = factors.n if along == "n" else (factors.m_dims or (factors.m,))[-1]
    results = factors.batch * factors.m * factors.n
    return _divisor(extent, min(STRIP, max(results // (ENOUGH * THREADS), 1)))


def _divisor(extent: int, most: int) -> int:
    """Return the largest divisor of an extent that is at most ``most``."""
    return next(n for n in range(most, 0, -1) if extent % n == 0)
