"""Write exact cumulative sums: reduce-windows of floats that only grow, in one of three ways.

Blocks of threads share a scan in chunks; scans that lie side by side are lanes; others are added up
one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.reduction.block_running_sums import RunningSums, has_chunks
from backend_c.kernels.parts.reduction.exact_column_prefix_sums import WIDTH, ColumnPrefixSums
from backend_c.kernels.parts.reduction.exact_prefix_sum import ExactPrefixSum
from backend_c.kernels.parts.reduction.exact_sum import Accumulator
from backend_c.kernels.parts.reduction.running_window import Growth

_FEWEST = 8  # neighbouring scans that are worth lanes
_Index = tuple[Expr, ...]


@dataclass(frozen=True)
class CumulativeSums:
    """Describe the exact sums of windows that grow, from ``init``, at the ``positions`` of windows.

    ``where(conditions)`` opens a block that runs if conditions of a step hold.
    """

    scope: Scope
    positions: tuple[int, ...]
    where: Callable[[Sequence[Expr]], AbstractContextManager[None]]
    growing: Growth
    operand: Element
    init: Element

    def emit(self, write: Writer) -> None:
        """Write the loops; ``write(index, (value,))`` writes a result."""
        scope, d = self.scope, self.growing.dimension
        dims = (*self.positions[:d], *self.positions[d + 1 :])
        if has_chunks(self.growing.positions, scope):
            self._in_chunks(dims, write)
        elif self._has_columns():
            self._in_columns(dims, write)
        else:
            with nest.outer(scope, dims, 16 * self.growing.positions) as other:
                self._by_one(other, write)

    def _at(self, other: Sequence[Expr], position: Expr) -> _Index:
        """Return the index at a position of the scan at indices of the other dimensions."""
        d = self.growing.dimension
        return (*other[:d], position, *other[d:])

    def _before(self, other: Sequence[Expr], number: Expr) -> Expr:
        """Return an addend that is in the first window."""
        return self.operand.at(*self._at(other, self.growing.element_before(number)))

    def _addend(self, other: Sequence[Expr], step: Expr) -> Expr:
        """Return the addend that a step brings."""
        return self.operand.at(*self._at(other, self.growing.element(step)[0]))

    def _written(self, write: Writer, other: Sequence[Expr], step: Expr, value: Expr) -> None:
        """Write the result of a step."""
        write(self._at(other, self.growing.window_position(step)), (value,))

    def _by_one(self, other: Sequence[Expr], write: Writer) -> None:
        """Write one scan by one thread."""

        def addend(step: Expr, add: Callable[[Expr], None]) -> None:
            with self.where(self.growing.element(step)[1]):
                add(self._addend(other, step))

        ExactPrefixSum(
            self.scope,
            self.init.at(),
            self.growing.before,
            self.growing.positions,
            lambda number, add: add(self._before(other, number)),
            addend,
        ).emit(lambda step, value: self._written(write, other, step, value))

    def _has_columns(self) -> bool:
        """Return whether neighbouring scans of real numbers lie side by side, enough for lanes."""
        is_real = not self.init.shape.element_type.is_complex
        is_across = self.growing.dimension < len(self.positions) - 1
        has_lanes = self.scope.settings.has_lanes
        return is_real and is_across and has_lanes and self.positions[-1] >= _FEWEST

    def _in_columns(self, dims: Sequence[int], write: Writer) -> None:
        """Write strips of neighbouring scans."""
        scope, steps = self.scope, self.growing.positions
        *outer, last = dims
        with nest.outer(scope, (*outer, -(-last // WIDTH)), 16 * steps) as (*above, strip):
            first = scope.bind(ix.multiply(strip, WIDTH))
            count = scope.bind(ix.clamp(0, ix.subtract(last, first), WIDTH))

            def other(column: Expr) -> _Index:
                return (*above, ix.clamp(0, ix.add(first, column), last - 1))

            ColumnPrefixSums(
                scope,
                self.init.at(),
                count,
                self.growing.before,
                steps,
                lambda number, column: self._before(other(column), number),
                lambda step, column: self._addend(other(column), step),
                lambda step: self.where(self.growing.element(step)[1]),
            ).emit(
                lambda step, column, value: self._written(write, other(column), step, value),
                lambda column: self._by_one(other(column), write),
            )

    def _in_chunks(self, dims: tuple[int, ...], write: Writer) -> None:
        """Write scans whose chunks are added up by many threads."""
        scope, growing = self.scope, self.growing

        def begin(total: Accumulator, other: Sequence[Expr]) -> None:
            total.add(self.init.at())
            with scope.loop(growing.before) as number:
                total.add(self._before(other, number))

        def add(total: Accumulator, other: Sequence[Expr], step: Expr) -> None:
            with self.where(growing.element(step)[1]):
                total.add(self._addend(other, step))

        RunningSums(
            scope,
            self.operand.shape.element_type,
            dims,
            growing.positions,
            begin,
            add,
            lambda other, step, value: self._written(write, other, step, value),
        ).emit()
