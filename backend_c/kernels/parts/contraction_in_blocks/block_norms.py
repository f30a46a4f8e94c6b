"""Bound the errors of sums of products by the norms of their factors, for blocks of threads.

Each line of a factor has its squared norm, for the error bound (Cauchy-Schwarz:
||a|| ||b|| >= sum |a b|), and its unit: the exponent of a power of two that divides every factor.
If no sum reaches 2**52 units, no addition rounded.
"""

from __future__ import annotations

from functools import partial

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Array, Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import as_type, masked
from backend_c.kernels.parts.contraction.factors import Read
from backend_c.kernels.parts.contraction.line_norms import NO_UNIT, add_squares, lower_unit
from backend_c.kernels.parts.contraction.strided_access import has_lines_side_by_side
from backend_c.kernels.parts.contraction_in_blocks.block_staging import Sizes
from hlo.types import F32, F64, S32

_CHUNK = 256  # steps that a thread adds up, where threads have lines of their own


class Norms:
    """Compute the norms and units of one factor's lines, and load those of a tile into shared
    memory.

    Must be constructed outside loops.
    """

    def __init__(self, read: Read, sizes: Sizes, lines: int, scope: Scope) -> None:
        self._read, self._sizes, self._scope, self._lines = read, sizes, scope, lines
        batch, count, k = sizes
        is_across = has_lines_side_by_side(read, sizes, scope)
        self._chunks = -(-k // _CHUNK) if is_across else 1
        self._squares = scope.scratch(F64, self._chunks * batch * count, frozen=True)
        self._units = scope.scratch(S32, self._chunks * batch * count, frozen=True)
        if is_across:
            self._by_chunks()
        else:
            self._by_lines()
        self._norms: Array | None = None
        self._line_units: Array | None = None

    def _value(self, b: Expr, line: Expr, step: Expr) -> Expr:
        """Return a factor as f32, zero where it does not count."""
        value, conditions = self._read(b, line, step)
        return self._scope.bind(as_type(masked(value, conditions), F32))

    def _by_lines(self) -> None:
        """Write norms of row-major lines: the threads of a block share a line."""
        scope, (batch, count, k) = self._scope, self._sizes
        with nest.outer(scope, (batch, count), k) as (b, line):
            place = ix.linearize((b, line), (batch, count))
            value = partial(self._value, b, line)
            total = scope.mutable(F64, Constant(F64, 0.0))
            add_squares(scope, k, total, value)
            scope.store(self._squares, place, total)
            unit = scope.mutable(S32, Constant(S32, NO_UNIT))
            lower_unit(scope, k, unit, value)
            scope.store(self._units, place, unit)

    def _by_chunks(self) -> None:
        """Write norms of column-major lines: each thread has a chunk of steps of one line."""
        scope, (batch, count, k) = self._scope, self._sizes
        dims = self._chunks, batch, count
        with nest.flat(scope, dims, min(k, _CHUNK)) as (chunk, b, line):
            first = scope.bind(ix.multiply(chunk, _CHUNK))
            b, line = scope.bind(b), scope.bind(line)
            total = scope.mutable(F64, Constant(F64, 0.0))
            unit = scope.mutable(S32, Constant(S32, NO_UNIT))
            with scope.loop(ix.clamp(0, ix.subtract(k, first), _CHUNK)) as step:
                value = self._value(b, line, ix.clamp(0, ix.add(first, step), k - 1))
                wide = scope.bind(apply("widen", value, type=F64))
                scope.assign(total, apply("add", total, apply("multiply", wide, wide)))
                scope.assign(unit, apply("minimum", unit, apply("unit", value, type=S32)))
            place = ix.linearize((chunk, b, line), dims)
            scope.store(self._squares, place, total)
            scope.store(self._units, place, unit)

    def declare(self) -> None:
        """Declare the shared memory of a tile's norms, inside the loop over blocks."""
        self._norms = self._scope.shared(F64, self._lines)
        self._line_units = self._scope.shared(S32, self._lines)

    def bring(self, b: Expr, first: Expr) -> None:
        """Load the norms of the tile's lines from ``first`` on into shared memory."""
        scope, (_, count, _) = self._scope, self._sizes
        assert self._norms is not None and self._line_units is not None
        with scope.loop(self._lines, "threads") as own:
            line = scope.bind(ix.clamp(0, ix.add(first, own), count - 1))
            norm, unit = self.at(b, line)
            scope.store(self._norms, own, norm)
            scope.store(self._line_units, own, unit)

    def at(self, b: Expr, line: Expr) -> tuple[Expr, Expr]:
        """Return (norm, unit) of a line, combined from its chunks in memory."""
        scope, (batch, count, _) = self._scope, self._sizes
        total = scope.mutable(F64, Constant(F64, 0.0))
        unit = scope.mutable(S32, Constant(S32, NO_UNIT))
        with scope.loop(self._chunks) as chunk:
            place = ix.linearize((chunk, b, line), (self._chunks, batch, count))
            scope.assign(total, apply("add", total, scope.load(self._squares, place)))
            scope.assign(unit, apply("minimum", unit, scope.load(self._units, place)))
        return apply("sqrt", total), unit

    def of(self, own: Expr) -> tuple[Expr, Expr]:
        """Return (norm, unit) of a line of the tile from shared memory."""
        assert self._norms is not None and self._line_units is not None
        return self._scope.load(self._norms, own), self._scope.load(self._line_units, own)


def magnitude(lhs: tuple[Expr, Expr], rhs: tuple[Expr, Expr]) -> Expr:
    """Return an upper bound on the sum of magnitudes of products; 0 if no addition rounded."""
    units = apply("add", lhs[1], rhs[1])
    return apply("sum-magnitude", lhs[0], rhs[0], units, type=F64)
