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
from backend_c.kernels.parts.contraction.contraction_loops import (
    Write,
    as_type,
    exact_sum_of_products,
)
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction.packed_panels import FactorLines, PackedPanels
from hlo.types import F32, F64, PRED, S32, ElementType

ROWS, COLUMNS = 8, 16  # of a tile, as in runtime/hlo_tile.h
_BLOCK = 4  # tiles of rows that share the right panels while they are in the cache
_SHARES = 64  # of blocks that are packed one after the other
_CACHED = 1 << 20  # packed factors: 8 MB, of which a thread's share still is in a cache when read
# Products that take the time of one operation, as in fast_contraction: 32 of the exact grain size,
# a quarter of fast's, are as many as 8 there.
_PRODUCTS = 32


def padded_results(factors: Factors) -> int:
    """Return how many results whole tiles have, those beyond the last row and column included."""
    return -(-factors.m // ROWS) * ROWS * -(-factors.n // COLUMNS) * COLUMNS


class TiledContraction:
    """Write one exact contraction of f32 and narrower factors, tile by tile."""

    def __init__(
        self, factors: Factors, element_type: ElementType, write: Write, scope: Scope
    ) -> None:
        self.factors, self.type, self.write, self.scope = factors, element_type, write, scope
        self.row_tiles = -(-factors.m // ROWS)
        self.column_tiles = -(-factors.n // COLUMNS)
        # Left factors are broadcast one at a time, so they are widened once, when packed; right
        # factors are read in vectors and widened in registers, which takes half the bandwidth.
        left = FactorLines(F64, factors.lhs, factors.m, ROWS)
        right = FactorLines(F32, factors.rhs, factors.n, COLUMNS)
        rows = self.row_tiles * factors.batch
        # Patches of a convolution may be many times its input: then each share of the threads packs
        # a block of rows after the other into its own memory.
        self._shares = 0
        most = scope.settings.most_packed
        block, blocks = _BLOCK * ROWS * factors.k, -(-self.row_tiles // _BLOCK) * factors.batch
        if rows * ROWS * factors.k > (most if blocks < _SHARES else min(most, _CACHED)):
            self._shares = max(1, min(_SHARES, blocks, most // block))
            rows = self._shares * _BLOCK
        # Panels that are packed again and again must be read where the text reads them.
        self._left = PackedPanels(left, factors, rows, scope, is_frozen=not self._shares)
        right_tiles = self.column_tiles * factors.batch
        self._right = PackedPanels(right, factors, right_tiles, scope)
        if not self._shares:
            self._left.pack_all()
        self._right.pack_all()

    def emit(self) -> None:
        """Write the loops over tiles; threads share blocks of row tiles, or column tiles."""
        blocks = -(-self.row_tiles // _BLOCK)
        if self._shares:
            self._by_shares(blocks)
            return
        batch, work = self.factors.batch, ROWS * _BLOCK * self.factors.k * COLUMNS // _PRODUCTS
        # Threads need several shares each to finish together; with few rows, columns give more of
        # them.
        if batch * blocks >= 8 or blocks >= self.column_tiles:
            cost = work * self.column_tiles
            threads = nest.outer(self.scope, (batch, blocks), cost)
            with threads as (b, row_block), self.scope.loop(self.column_tiles) as column_tile:
                self._tiles(b, row_block, column_tile)
        else:
            cost = work * blocks
            threads = nest.outer(self.scope, (batch, self.column_tiles), cost)
            with threads as (b, column_tile), self.scope.loop(blocks) as row_block:
                self._tiles(b, row_block, column_tile)

    def _by_shares(self, blocks: int) -> None:
        """Write the loops over shares of threads, each of which packs its blocks of rows in
        turn."""
        scope, dims = self.scope, (self.factors.batch, blocks)
        cost = _BLOCK * ROWS * self.factors.k * COLUMNS // _PRODUCTS
        with nest.in_shares(scope, dims, self._shares, cost) as (share, (b, row_block)):
            packed = scope.bind(ix.multiply(share, _BLOCK))
            first = scope.bind(ix.multiply(row_block, _BLOCK))
            tiles = ix.clamp(0, ix.subtract(self.row_tiles, first), _BLOCK)
            with scope.loop(tiles) as place:
                line = ix.multiply(ix.add(packed, place), ROWS)
                self._left.pack((b, ix.add(first, place)), line)
            with scope.loop(self.column_tiles) as column_tile, scope.loop(tiles) as place:
                line = ix.multiply(ix.add(packed, place), ROWS)
                self._tile(b, scope.bind(ix.add(first, place)), column_tile, line)

    def _tiles(self, b: Expr, row_block: Expr, column_tile: Expr) -> None:
        """Write the tiles of a block of rows that share one right panel."""
        first = ix.multiply(row_block, _BLOCK)
        count = ix.clamp(0, ix.subtract(self.row_tiles, first), _BLOCK)
        # The same right panel serves all tiles of the block while it is in the cache.
        with self.scope.loop(count) as place:
            tile = self.scope.bind(ix.add(first, place))
            line = ix.multiply(ix.add(ix.multiply(b, self.row_tiles), tile), ROWS)
            self._tile(b, tile, column_tile, line)

    def _tile(self, b: Expr, row_tile: Expr, column_tile: Expr, rows: Expr) -> None:
        """Write one tile: multiply, round, repair what is not finite, store.

        Its left factors are packed from line ``rows`` on.
        """
        scope, k = self.scope, self.factors.k
        tile = scope.local(F64, ROWS * COLUMNS)
        columns = ix.multiply(ix.add(ix.multiply(b, self.column_tiles), column_tile), COLUMNS)
        scope.call(
            "hlo_tile",
            Pointer(self._left.panel, ix.multiply(rows, k)),
            Pointer(self._right.panel, ix.multiply(columns, k)),
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
        """Write the rounding of a tile's totals; return results, and a flag: 0 unless all are
        finite."""
        scope, k = self.scope, self.factors.k
        results = scope.local(F32, ROWS * COLUMNS)
        finite = scope.mutable(S32, Constant(S32, 1))
        left, right = self._left, self._right
        scope.call(
            f"hlo_tile_round_{self.type}",
            Pointer(tile, ix.constant(0)),
            Pointer(left.panel, ix.multiply(rows, k)),
            Pointer(right.panel, ix.multiply(columns, k)),
            *(Pointer(left.squares, rows), Pointer(right.squares, columns)),
            *(Pointer(left.units, rows), Pointer(right.units, columns)),
            ix.constant(k),
            Pointer(results, ix.constant(0)),
            Address(finite),
        )
        return results, finite
