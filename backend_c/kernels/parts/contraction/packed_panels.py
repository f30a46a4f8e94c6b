"""Pack factors of f32 and narrower types into the panels that an exact product reads.

A panel has the lines (rows of the left factor, columns of the right one) of a tile beside each
other, step by step of the contraction: [tile][k][width], zero beyond the last line. Beside it stand
two numbers of each line. The squared norm serves the error bound (Cauchy-Schwarz: ||a|| ||b|| >=
sum |a b|). The unit is the exponent of a power of two that divides every factor: if no sum reaches
2**52 units, no addition rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import as_type, masked
from backend_c.kernels.parts.contraction.factors import Factors, Read
from backend_c.kernels.parts.contraction.line_norms import NO_UNIT, add_squares, lower_unit
from backend_c.kernels.parts.contraction.strided_access import has_lines_side_by_side
from hlo.types import F32, F64, PRED, S32, ElementType

# Steps that lie beside each other in memory, for which a loop of their own pays: the features of a
# convolution's input, not the colours of an image.
_RUN = 16


@dataclass(frozen=True, slots=True)
class FactorLines:
    """Describe one factor: the type it is packed in, its reader, its lines, the lines of a tile."""

    packed: ElementType
    read: Read
    count: int
    width: int


class PackedPanels:
    """Write the packing of one factor: ``panel``, and ``squares`` and ``units`` of its lines.

    Must be constructed outside loops.
    """

    def __init__(
        self, lines: FactorLines, factors: Factors, tiles: int, scope: Scope, is_frozen: bool = True
    ) -> None:
        self._lines, self._factors, self._scope = lines, factors, scope
        count = tiles * lines.width
        self.panel = scope.scratch(lines.packed, count * factors.k, frozen=is_frozen)
        self.squares = scope.scratch(F64, count, frozen=is_frozen)
        self.units = scope.scratch(S32, count, frozen=is_frozen)
        self._k_dims = factors.k_dims or (factors.k,)
        # Also where the place of a line takes divisions, which each step would make again.
        sizes = factors.batch, lines.count, factors.k
        has_runs = self._k_dims[-1] >= _RUN
        self._is_by_lines = has_runs and not has_lines_side_by_side(lines.read, sizes, scope)

    def pack_all(self) -> None:
        """Write the packing of the whole factor, into tiles [batch][tile]."""
        lines, factors = self._lines, self._factors
        tiles = -(-lines.count // lines.width)
        work = factors.k * lines.width
        with nest.outer(self._scope, (factors.batch, tiles), work) as (b, tile):
            line = ix.multiply(ix.add(ix.multiply(b, tiles), tile), lines.width)
            self.pack((b, tile), line)

    def pack(self, tile: tuple[Expr, Expr], first: Expr) -> None:
        """Write the packing of one (batch, tile) to the panel's lines from ``first`` on."""
        if self._is_by_lines:
            self._pack_by_lines(tile, first)
        else:
            self._pack_by_steps(tile, first)

    def _pack_by_steps(self, tile: tuple[Expr, Expr], first: Expr) -> None:
        """Write the packing of a tile step by step, its lines in lanes."""
        scope, width = self._scope, self._lines.width
        with scope.loop(width, "lanes") as lane:
            scope.store(self.squares, ix.add(first, lane), Constant(F64, 0.0))
            scope.store(self.units, ix.add(first, lane), Constant(S32, NO_UNIT))
        with scope.loop(self._factors.k) as k, scope.loop(width, "lanes") as lane:
            value = self._value(tile, lane, k)
            self._store(first, lane, k, value)
            line, wide = ix.add(first, lane), scope.bind(apply("widen", value, type=F64))
            square = apply("multiply", wide, wide)
            scope.store(self.squares, line, apply("add", scope.load(self.squares, line), square))
            unit = apply("unit", value, type=S32)
            scope.store(self.units, line, apply("minimum", scope.load(self.units, line), unit))

    def _pack_by_lines(self, tile: tuple[Expr, Expr], first: Expr) -> None:
        """Write the packing of a tile line by line, the last dimension of its steps in lanes."""
        scope, (*outer, last) = self._scope, self._k_dims
        with scope.loop(self._lines.width) as lane:
            squares = scope.mutable(F64, Constant(F64, 0.0))
            unit = scope.mutable(S32, Constant(S32, NO_UNIT))
            with scope.over(outer) as before:

                def k_of(step: Expr) -> Expr:
                    return ix.linearize((*before, step), self._k_dims)

                def value(step: Expr) -> Expr:
                    return self._value(tile, lane, k_of(step))

                # Neighbours in a line are stored apart, which is no work for vectors.
                with scope.loop(last) as step:
                    self._store(first, lane, k_of(step), value(step))
                add_squares(scope, last, squares, value)
                lower_unit(scope, last, unit, value)
            scope.store(self.squares, ix.add(first, lane), squares)
            scope.store(self.units, ix.add(first, lane), unit)

    def _store(self, first: Expr, lane: Expr, k: Expr, value: Expr) -> None:
        """Store a factor of f32 in the panel, in the panel's type."""
        start = ix.multiply(first, self._factors.k)
        offset = ix.add(start, ix.multiply(k, self._lines.width), lane)
        wide = apply("widen", value, type=F64) if self._lines.packed is F64 else value
        self._scope.store(self.panel, offset, wide)

    def _value(self, tile: tuple[Expr, Expr], lane: Expr, k: Expr) -> Expr:
        """Return a factor as f32: zero where it does not count, or beyond the last line, where
        nothing may be read."""
        lines, (b, number) = self._lines, tile
        place = ix.add(ix.multiply(number, lines.width), lane)
        value, conditions = lines.read(b, ix.clamp(0, place, lines.count - 1), k)
        if lines.count % lines.width:
            beyond = apply("compare-LT", place, ix.constant(lines.count), type=PRED)
            conditions = (*conditions, beyond)
        return self._scope.bind(as_type(masked(value, conditions), F32))
