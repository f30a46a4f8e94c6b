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
from backend_c.ir.loop_ir import Constant, Expr, Load
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import as_type, masked
from backend_c.kernels.parts.contraction.factors import Factors, Read
from hlo.types import F32, F64, PRED, S32, ElementType

_NO_UNIT = 1000  # zero divides by any power of two
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
    """Write the packing of one factor: ``panel``, and ``squares`` and ``units`` of its lines."""

    def __init__(
        self, lines: FactorLines, factors: Factors, tiles: int, scope: Scope, is_frozen: bool = True
    ) -> None:
        self._lines, self._factors, self._scope = lines, factors, scope
        count = tiles * lines.width
        self.panel = scope.scratch(lines.packed, count * factors.k, frozen=is_frozen)
        self.squares = scope.scratch(F64, count, frozen=is_frozen)
        self.units = scope.scratch(S32, count, frozen=is_frozen)
        self._k_dims = factors.k_dims or (factors.k,)
        self._is_by_lines = self._has_runs()

    def _has_runs(self) -> bool:
        """Return whether to pack line by line: where the steps of a line lie beside each other in
        memory, or its place in memory takes divisions; else lines do."""
        lines, scope, last = self._lines, self._scope, self._k_dims[-1]
        if last < _RUN:
            return False
        before = [ix.constant(0)] * (len(self._k_dims) - 1)
        with scope.undone(), scope.draft((lines.count, last)) as (line, step):
            k = ix.linearize((*before, step), self._k_dims)
            value, _ = lines.read(ix.constant(0), line, k)
        if not isinstance(value, Load):
            return False
        along = ix.coefficients(value.offset)
        return along.get(step) == 1 or (step in along and line not in along)

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
            scope.store(self.units, ix.add(first, lane), Constant(S32, _NO_UNIT))
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
            unit = scope.mutable(S32, Constant(S32, _NO_UNIT))
            with scope.over(outer) as before:
                # Neighbours in a line are stored apart, which is no work for vectors.
                with scope.loop(last) as step:
                    k = ix.linearize((*before, step), self._k_dims)
                    self._store(first, lane, k, self._value(tile, lane, k))
                with scope.loop(last, "lanes", (squares,)) as step:
                    k = ix.linearize((*before, step), self._k_dims)
                    wide = scope.bind(apply("widen", self._value(tile, lane, k), type=F64))
                    square = apply("multiply", wide, wide)
                    scope.assign(squares, apply("add", squares, square))
                with scope.loop(last, "lanes", (unit,), "min") as step:
                    k = ix.linearize((*before, step), self._k_dims)
                    own = apply("unit", self._value(tile, lane, k), type=S32)
                    scope.assign(unit, apply("minimum", unit, own))
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
