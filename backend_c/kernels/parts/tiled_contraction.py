"""Write contractions of f32 and narrower factors: packing, register tiles of f64 sums, rounding.

The scheme of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS
34(3), 2008: both factors are packed into panels whose elements stand in the order in which the
inner kernel reads them; the inner kernel (``hlo_tile``) keeps an 8 x 16 tile of sums in registers.
What packing computes (converts, transposes, masks) is a fused prologue, what is done to each sum
before it is stored a fused epilogue.
"""

from __future__ import annotations

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Address, Array, Constant, Expr, Pointer, Variable
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction_loops import (
    Write,
    as_type,
    counted,
    exact_sum_of_products,
)
from backend_c.kernels.parts.factors import Factors, Read
from hlo.types import F32, F64, PRED, S32, ElementType

ROWS, COLUMNS = 8, 16  # of a tile, as in runtime/hlo_tile.h
_BLOCK = 4  # tiles of rows that share the right panels while they are in the cache


class TiledContraction:
    """Write one contraction."""

    def __init__(
        self, factors: Factors, element_type: ElementType, write: Write, scope: Scope
    ) -> None:
        self.factors, self.type, self.write, self.scope = factors, element_type, write, scope
        self.row_tiles = -(-factors.m // ROWS)
        self.column_tiles = -(-factors.n // COLUMNS)
        # Left factors are broadcast one at a time, so they are widened once, when packed; right
        # factors are read in vectors and widened in registers, which takes half the bandwidth.
        self.lhs = self._packed(F64, factors.lhs, factors.m, ROWS)
        self.rhs = self._packed(F32, factors.rhs, factors.n, COLUMNS)

    def _packed(
        self, packed: ElementType, read: Read, count: int, width: int
    ) -> tuple[Array, Array, Array]:
        """Write the packing of a factor; return its panels, squared norms and units.

        Panels are [batch][tile][k][width], zero beyond ``count``. Per row or column, the squared
        norm serves the error bound (Cauchy-Schwarz: ||a|| ||b|| >= sum |a b|), and the unit is the
        exponent of a power of two that divides every factor: if no sum reaches 2**52 units, no
        addition rounded.
        """
        scope, factors = self.scope, self.factors
        tiles = -(-count // width)
        lines = factors.batch * tiles * width
        panel = scope.scratch(packed, lines * factors.k, frozen=True)
        squares = scope.scratch(F64, lines, frozen=True)
        units = scope.scratch(S32, lines, frozen=True)
        with nest.outer(scope, (factors.batch, tiles), factors.k * width) as (b, tile):
            first = ix.multiply(ix.add(ix.multiply(b, tiles), tile), width)
            self._clear(squares, units, first, width)
            with scope.loop(factors.k) as k, scope.loop(width, "lanes") as lane:
                place = ix.add(ix.multiply(tile, width), lane)
                value = as_type(self._factor_or_zero(read, b, place, k, count, width), F32)
                value = scope.bind(value)
                start = ix.multiply(first, factors.k)
                offset = ix.add(start, ix.multiply(k, width), lane)
                wide = scope.bind(apply("widen", value, type=F64))
                scope.store(panel, offset, wide if packed is F64 else value)
                total = ix.add(first, lane)
                square = apply("add", scope.load(squares, total), apply("multiply", wide, wide))
                scope.store(squares, total, square)
                unit = apply("unit", value, type=S32)
                scope.store(units, total, apply("minimum", scope.load(units, total), unit))
        return panel, squares, units

    def _clear(self, squares: Array, units: Array, first: Expr, width: int) -> None:
        """Write the initial norms and units; zero divides by any power of two."""
        with self.scope.loop(width, "lanes") as lane:
            self.scope.store(squares, ix.add(first, lane), Constant(F64, 0.0))
            self.scope.store(units, ix.add(first, lane), Constant(S32, 1000))

    def _factor_or_zero(
        self, read: Read, b: Expr, place: Expr, k: Expr, count: int, width: int
    ) -> Expr:
        """Build a factor: zero beyond the last row or column, where nothing may be read."""
        clamped = ix.clamp(0, place, count - 1)
        value, conditions = read(b, clamped, k)
        if count % width:
            beyond = apply("compare-LT", place, ix.constant(count), type=PRED)
            conditions = (*conditions, beyond)
        return counted(value, conditions)

    def emit(self) -> None:
        """Write the loops over tiles; threads share blocks of row tiles, or column tiles."""
        blocks = -(-self.row_tiles // _BLOCK)
        batch, work = self.factors.batch, ROWS * _BLOCK * self.factors.k
        # Threads need several shares each to finish together; with few rows, columns give more of
        # them.
        if batch * blocks >= 8 or blocks >= self.column_tiles:
            cost = work * self.column_tiles * COLUMNS
            threads = nest.outer(self.scope, (batch, blocks), cost)
            with threads as (b, row_block), self.scope.loop(self.column_tiles) as column_tile:
                self._tiles(b, row_block, column_tile)
        else:
            cost = work * blocks * COLUMNS
            threads = nest.outer(self.scope, (batch, self.column_tiles), cost)
            with threads as (b, column_tile), self.scope.loop(blocks) as row_block:
                self._tiles(b, row_block, column_tile)

    def _tiles(self, b: Expr, row_block: Expr, column_tile: Expr) -> None:
        """Write the tiles of a block of rows in one column of tiles."""
        first = ix.multiply(row_block, _BLOCK)
        count = ix.clamp(0, ix.subtract(self.row_tiles, first), _BLOCK)
        # The same right panel serves all tiles of the block while it is in the cache.
        with self.scope.loop(count) as place:
            self._tile(b, self.scope.bind(ix.add(first, place)), column_tile)

    def _tile(self, b: Expr, row_tile: Expr, column_tile: Expr) -> None:
        """Write one tile: multiply, round, repair what is not finite, store."""
        scope, k = self.scope, self.factors.k
        tile = scope.local(F64, ROWS * COLUMNS)
        rows = ix.multiply(ix.add(ix.multiply(b, self.row_tiles), row_tile), ROWS)
        columns = ix.multiply(ix.add(ix.multiply(b, self.column_tiles), column_tile), COLUMNS)
        scope.call(
            "hlo_tile",
            Pointer(self.lhs[0], ix.multiply(rows, k)),
            Pointer(self.rhs[0], ix.multiply(columns, k)),
            ix.constant(k),
            Pointer(tile, ix.constant(0)),
        )
        first_row, first_column = ix.multiply(row_tile, ROWS), ix.multiply(column_tile, COLUMNS)
        row_count = ix.clamp(0, ix.subtract(self.factors.m, first_row), ROWS)
        column_count = ix.clamp(0, ix.subtract(self.factors.n, first_column), COLUMNS)
        results, finite = self._rounded(tile, rows, columns)
        # A factor that does not count is a zero in its panel, and zero times infinity is NaN:
        # totals that are not finite are added again from the factors that count.
        with (
            scope.when(apply("compare-EQ", finite, Constant(S32, 0), type=PRED)),
            scope.loop(row_count) as i,
            scope.loop(column_count) as j,
        ):
            place = scope.bind(ix.add(ix.multiply(i, COLUMNS), j))
            is_finite = apply("is-finite", scope.load(tile, place), type=PRED)
            with scope.when(apply("not", is_finite, type=PRED)):
                at = b, ix.add(first_row, i), ix.add(first_column, j)
                exact = exact_sum_of_products(self.factors, (F32, F32), self.type, at, scope)
                scope.store(results, place, as_type(exact, F32))
        with scope.loop(row_count) as i, scope.loop(column_count, "lanes") as j:
            result = scope.bind(scope.load(results, ix.add(ix.multiply(i, COLUMNS), j)))
            m, n = ix.add(first_row, i), ix.add(first_column, j)
            self.write(self.factors.place(b, m, n), (as_type(result, self.type),))

    def _rounded(self, tile: Array, rows: Expr, columns: Expr) -> tuple[Array, Variable]:
        """Write the rounding of a tile's totals; return results, and 0 unless all are finite."""
        scope, k = self.scope, self.factors.k
        results = scope.local(F32, ROWS * COLUMNS)
        finite = scope.mutable(S32, Constant(S32, 1))
        left = [Pointer(array, rows) for array in self.lhs[1:]]
        right = [Pointer(array, columns) for array in self.rhs[1:]]
        scope.call(
            f"hlo_tile_round_{self.type}",
            Pointer(tile, ix.constant(0)),
            Pointer(self.lhs[0], ix.multiply(rows, k)),
            Pointer(self.rhs[0], ix.multiply(columns, k)),
            *(left[0], right[0], left[1], right[1]),
            ix.constant(k),
            Pointer(results, ix.constant(0)),
            Address(finite),
        )
        return results, finite
