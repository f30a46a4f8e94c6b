"""Compute exact cumulative sums of floats by many threads: a scan of superaccumulators.

There are three launches, as in scans by any monoid: a thread adds up a chunk of a scan; one scans
the sums of the chunks, and leaves what is before each; then threads go on from there, and round at
every element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Array, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.reduction.exact_sum import Accumulator
from hlo.types import PRED, S64, ElementType

_LEAST, _MOST = 64, 1024  # elements of a chunk: about as many as there are chunks


def has_chunks(steps: int, scope: Scope) -> bool:
    """Return whether threads share a scan of ``steps`` steps."""
    return nest.has_blocks(scope) and steps >= 2 * _LEAST


@dataclass(frozen=True)
class RunningSums:
    """Describe scans of ``steps`` steps, one at each index of ``dims``, the other dimensions.

    ``begin(sum, index)`` writes what is added before the first step, ``add(sum, index, step)`` what
    a step brings, ``write(index, step, value)`` a result.
    """

    scope: Scope
    element_type: ElementType
    dims: tuple[int, ...]
    steps: int
    begin: Callable[[Accumulator, Sequence[Expr]], None]
    add: Callable[[Accumulator, Sequence[Expr], Expr], None]
    write: Callable[[Sequence[Expr], Expr, Expr], None]

    def emit(self) -> None:
        """Write the three loops: sums of chunks, their exclusive scan, the results."""
        scope = self.scope
        half = 1 << (self.steps.bit_length() + 1) // 2
        length = min(max(half, _LEAST), _MOST)
        dims = -(-self.steps // length), *self.dims
        words = Accumulator.words(self.element_type)
        elements = words
        for extent in dims:
            elements *= extent
        sums = scope.scratch(S64, elements)

        def place(chunk: Expr, index: Sequence[Expr]) -> Expr:
            return ix.multiply(ix.linearize((chunk, *index), dims), words)

        with nest.outer(scope, dims, length) as (chunk, *index):
            total = Accumulator(scope, self.element_type)
            self._chunk(total, chunk, index, length, None)
            total.save(sums, place(chunk, index))
        with nest.outer(scope, self.dims, dims[0]) as index_of_scan:
            self._before(sums, dims[0], index_of_scan, place)
        with nest.outer(scope, dims, 16 * length) as (chunk, *index):
            running = Accumulator(scope, self.element_type)
            running.load(sums, place(chunk, index))
            self._chunk(running, chunk, index, length, self.write)

    def _before(
        self,
        sums: Array,
        chunks: int,
        index: Sequence[Expr],
        place: Callable[[Expr, Sequence[Expr]], Expr],
    ) -> None:
        """Replace the chunks' sums by their exclusive prefix sums."""
        running = Accumulator(self.scope, self.element_type)
        own = Accumulator(self.scope, self.element_type)
        with self.scope.loop(chunks) as chunk:
            at = self.scope.bind(place(chunk, index))
            own.load(sums, at)
            running.save(sums, at)
            running.merge(own)

    def _chunk(
        self,
        total: Accumulator,
        chunk: Expr,
        index: Sequence[Expr],
        length: int,
        write: Callable[[Sequence[Expr], Expr, Expr], None] | None,
    ) -> None:
        """Add the steps of a chunk to ``total``; store each result if ``write`` is given."""
        scope = self.scope
        with scope.when(apply("compare-EQ", chunk, ix.constant(0), type=PRED)):
            self.begin(total, index)
        first = scope.bind(ix.multiply(chunk, length))
        with scope.loop(ix.clamp(0, ix.subtract(self.steps, first), length)) as own:
            step = ix.clamp(0, ix.add(first, own), self.steps - 1)
            self.add(total, index, step)
            if write is not None:
                write(index, step, total.so_far())
