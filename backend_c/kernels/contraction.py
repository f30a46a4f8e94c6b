"""dot and convolution: one packed, tiled product of matrices.

Factors of f32 and narrower are packed into panels and multiplied in f64 tiles
(runtime/hlo_tile.h); each sum is rounded once where its error bound decides the rounding, and the
rest is added up exactly. Integers and wider floats take plain loops.
"""

from __future__ import annotations

from collections.abc import Callable

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Address, Array, Constant, Expr, Pointer, Variable
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.convolution_factors import convolution_factors
from backend_c.kernels.parts.exact_sum import PARTS, Accumulator
from backend_c.kernels.parts.factors import Factors, Read, dot_factors
from hlo.attributes import ConvolutionDimensions, Window
from hlo.errors import Unsupported
from hlo.types import F32, F64, PRED, S32, ArrayShape, ElementType

__all__ = ["convolution", "dot"]

Types = tuple[ElementType, ElementType]
Write = Callable[[tuple[Expr, ...], tuple[Expr, ...]], None]

ROWS, COLUMNS = 8, 16  # of a tile, as in runtime/hlo_tile.h
_BLOCK = 4  # tiles of rows that share the right panels while they are in the cache


def dot(
    lhs: Element,
    rhs: Element,
    *,
    shape: ArrayShape,
    lhs_contracting_dims: tuple[int, ...] = (),
    rhs_contracting_dims: tuple[int, ...] = (),
    lhs_batch_dims: tuple[int, ...] = (),
    rhs_batch_dims: tuple[int, ...] = (),
    operand_precision: tuple[str, ...] = (),
    algorithm: str = "",
    write: Writer,
    block: Scope,
) -> None:
    types = lhs.shape.element_type, rhs.shape.element_type
    factors = dot_factors(
        lhs, rhs, (lhs_batch_dims, rhs_batch_dims), (lhs_contracting_dims, rhs_contracting_dims)
    )
    write.sizes(0, factors.sizes)
    contract(factors, types, shape.element_type, write, block)


def convolution(
    lhs: Element,
    rhs: Element,
    *,
    shape: ArrayShape,
    dim_labels: ConvolutionDimensions,
    window: Window = Window(),  # noqa: B008  # frozen
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_precision: tuple[str, ...] = (),
    algorithm: str = "",
    convolution_kind: str = "",
    sparsity_config: str = "",
    write: Writer,
    block: Scope,
) -> None:
    if sparsity_config.strip("{} "):
        raise Unsupported(f"a convolution of sparse operands: {sparsity_config}")
    groups = feature_group_count, batch_group_count
    types = lhs.shape.element_type, rhs.shape.element_type
    factors = convolution_factors(lhs, rhs, shape, dim_labels, window, groups)
    write.sizes(0, factors.sizes)
    contract(factors, types, shape.element_type, write, block)


def contract(
    factors: Factors, types: Types, result: ElementType, write: Write, scope: Scope
) -> None:
    """The contraction of factors of ``types``. To a result of another kind (an integer or pred for
    floats, pred for integers) the sum is converted from the wider of them."""
    if 0 in (factors.batch, factors.m, factors.n):
        return
    common = max(types, key=_width)
    if _KINDS[result.kind] < min(_KINDS[common.kind], _KINDS["float"]):
        wide = PARTS.get(common, common)

        def converted(index: tuple[Expr, ...], values: tuple[Expr, ...]) -> None:
            write(index, (apply("convert", values[0], type=result),))

        contract(factors, types, wide, converted, scope)
    elif result.is_float or result.is_complex:
        _contract_floats(factors, types, result, write, scope)
    else:
        _integer_loops(factors, result, write, scope)


_KINDS = {"pred": 0, "unsigned": 1, "signed": 1, "float": 2, "complex": 3}


def _width(element_type: ElementType) -> tuple[int, int]:
    return _KINDS[element_type.kind], element_type.bits


def _contract_floats(
    factors: Factors, types: Types, result: ElementType, write: Write, scope: Scope
) -> None:
    of_narrow = all(t.is_float and t.bits <= 32 for t in types)
    is_long = any(t.is_complex or (t.is_integer and t.bits == 64) for t in types)
    if factors.k and of_narrow and result.is_float and result is not F64:
        _Tiled(factors, result, write, scope).emit()
    elif factors.k and result is F64 and not is_long:
        _WideLoops(factors, types, write, scope).emit()
    else:
        _exact_loops(factors, types, result, write, scope)


def _counted(value: Expr, conditions: tuple[Expr, ...]) -> Expr:
    """The factor, or zero where it does not count."""
    zero = Constant(value.type, 0.0 if value.type.is_float else 0)
    for condition in conditions:
        value = apply("select", condition, value, zero, type=value.type)
    return value


def _integer_loops(factors: Factors, element_type: ElementType, write: Write, scope: Scope) -> None:
    """Products and sums wrap in the result's type; the columns of a block are the lanes."""
    width = min(factors.n, 64)
    panels = -(-factors.n // width)
    dims = (factors.batch, factors.m, panels)
    with nest.outer(scope, dims, factors.k * width) as (b, m, panel):
        sums = scope.local(element_type, width)
        columns = ix.clamp(0, ix.subtract(factors.n, ix.multiply(panel, width)), width)
        with scope.loop(columns, "lanes") as lane:
            scope.store(sums, lane, _zero(element_type))
        with scope.loop(factors.k) as k:
            left = _counted(*factors.lhs(b, m, k))
            left = scope.bind(_as(left, element_type))
            with scope.loop(columns, "lanes") as lane:
                n = ix.add(ix.multiply(panel, width), lane)
                right = _as(_counted(*factors.rhs(b, n, k)), element_type)
                product = apply("multiply", left, right)
                total = apply("add", scope.load(sums, lane), product)
                scope.store(sums, lane, total)
        with scope.loop(columns, "lanes") as lane:
            n = ix.add(ix.multiply(panel, width), lane)
            write(factors.place(b, m, n), (scope.load(sums, lane),))


def _zero(element_type: ElementType) -> Constant:
    return Constant(element_type, False if element_type is PRED else 0)


def _as(value: Expr, element_type: ElementType) -> Expr:
    return value if value.type is element_type else apply("convert", value, type=element_type)


def _exact_loops(
    factors: Factors, types: Types, element_type: ElementType, write: Write, scope: Scope
) -> None:
    """Every sum in a superaccumulator: for what is rare."""
    dims = (factors.batch, factors.m, factors.n)
    with nest.outer(scope, dims, 64 * max(factors.k, 1)) as (b, m, n):
        result = _exactly(factors, types, element_type, (b, m, n), scope)
        write(factors.place(b, m, n), (result,))


class _WideLoops:
    """f64 sums in double-double, the columns of a block in lanes; exact where that is in doubt."""

    def __init__(self, factors: Factors, types: Types, write: Write, scope: Scope) -> None:
        self.factors, self.types, self.write, self.scope = factors, types, write, scope
        self.width = min(factors.n, 64)

    def emit(self) -> None:
        factors, scope = self.factors, self.scope
        panels = -(-factors.n // self.width)
        work = 8 * factors.k * self.width
        with nest.outer(scope, (factors.batch, factors.m, panels), work) as (b, m, panel):
            first = scope.bind(ix.multiply(panel, self.width))
            columns = ix.clamp(0, ix.subtract(factors.n, first), self.width)
            sums = self._added(b, m, first, columns)
            with scope.loop(columns) as lane:
                n = ix.add(first, lane)
                result = self._rounded(sums, lane, (b, m, n))
                self.write(factors.place(b, m, n), (result,))

    def _added(self, b: Expr, m: Expr, first: Expr, columns: Expr) -> tuple[Array, ...]:
        """High and low parts of the sums, and the sums of magnitudes."""
        scope, factors = self.scope, self.factors
        sums = high, low, magnitudes = tuple(scope.local(F64, self.width) for _ in range(3))
        with scope.loop(columns, "lanes") as lane:
            for array in sums:
                scope.store(array, lane, Constant(F64, 0.0))
        with scope.loop(factors.k) as k:
            left = scope.bind(_as(_counted(*factors.lhs(b, m, k)), F64))
            with scope.loop(columns, "lanes") as lane:
                n = ix.add(first, lane)
                right = scope.bind(_as(_counted(*factors.rhs(b, n, k)), F64))
                pair = Pointer(high, lane), Pointer(low, lane)
                scope.call("hlo_dd_add_product", *pair, left, right)
                magnitude = apply("abs", apply("multiply", left, right))
                scope.store(magnitudes, lane, apply("add", scope.load(magnitudes, lane), magnitude))
        return sums

    def _rounded(self, sums: tuple[Array, ...], lane: Expr, place: tuple[Expr, ...]) -> Expr:
        scope, (b, m, n) = self.scope, place
        result = scope.mutable(F64, Constant(F64, 0.0))
        loaded = [scope.load(array, lane) for array in sums]
        count = ix.constant(self.factors.k)
        known = apply("dot-decided", *loaded, count, Address(result), type=PRED)
        with scope.when(apply("not", known, type=PRED)):
            scope.assign(result, _exactly(self.factors, self.types, F64, (b, m, n), scope))
        return result


def _exactly(
    factors: Factors,
    types: Types,
    element_type: ElementType,
    place: tuple[Expr, ...],
    scope: Scope,
) -> Expr:
    """The sum of the products that count, in a superaccumulator, rounded once."""
    b, m, n = place
    accumulator = Accumulator(scope, element_type, factors=types)
    with scope.loop(factors.k) as k:
        left, counts = factors.lhs(b, m, k)
        right, _ = factors.rhs(b, n, k)
        accumulator.add_product(left, right, counts)
    return accumulator.rounded()


class _Tiled:
    """A contraction of f32 and narrower factors while it is written."""

    def __init__(
        self, factors: Factors, element_type: ElementType, write: Write, scope: Scope
    ) -> None:
        self.factors, self.type, self.write, self.scope = factors, element_type, write, scope
        self.row_tiles = -(-factors.m // ROWS)
        self.column_tiles = -(-factors.n // COLUMNS)
        self.lhs = self._packed(F64, factors.lhs, factors.m, ROWS)
        self.rhs = self._packed(F32, factors.rhs, factors.n, COLUMNS)

    def _packed(
        self, packed: ElementType, read: Read, count: int, width: int
    ) -> tuple[Array, Array, Array]:
        """Panels of a factor: [batch][tile][k][width], zero beyond ``count``; with the squared
        norm of each row or column, and the exponent of a power of two that divides all of it."""
        scope, factors = self.scope, self.factors
        tiles = -(-count // width)
        places = factors.batch * tiles * width
        panel = scope.scratch(packed, places * factors.k, frozen=True)
        squares = scope.scratch(F64, places, frozen=True)
        units = scope.scratch(S32, places, frozen=True)
        with nest.outer(scope, (factors.batch, tiles), factors.k * width) as (b, tile):
            first = ix.multiply(ix.add(ix.multiply(b, tiles), tile), width)
            self._clear(squares, units, first, width)
            with scope.loop(factors.k) as k, scope.loop(width, "lanes") as lane:
                place = ix.add(ix.multiply(tile, width), lane)
                value = _as(self._inside(read, b, place, k, count, width), F32)
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
        with self.scope.loop(width, "lanes") as lane:
            self.scope.store(squares, ix.add(first, lane), Constant(F64, 0.0))
            self.scope.store(units, ix.add(first, lane), Constant(S32, 1000))

    def _inside(self, read: Read, b: Expr, place: Expr, k: Expr, count: int, width: int) -> Expr:
        """A factor; zero beyond the last row or column, where nothing may be read."""
        clamped = ix.clamp(0, place, count - 1)
        value, conditions = read(b, clamped, k)
        if count % width:
            beyond = apply("compare-LT", place, ix.constant(count), type=PRED)
            conditions = (*conditions, beyond)
        return _counted(value, conditions)

    def emit(self) -> None:
        """Blocks of row tiles over the threads, or column tiles where there are few rows."""
        blocks = -(-self.row_tiles // _BLOCK)
        batch, work = self.factors.batch, ROWS * _BLOCK * self.factors.k
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
        first = ix.multiply(row_block, _BLOCK)
        count = ix.clamp(0, ix.subtract(self.row_tiles, first), _BLOCK)
        with self.scope.loop(count) as place:
            self._tile(b, self.scope.bind(ix.add(first, place)), column_tile)

    def _tile(self, b: Expr, row_tile: Expr, column_tile: Expr) -> None:
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
        with (
            scope.when(apply("compare-EQ", finite, Constant(S32, 0), type=PRED)),
            scope.loop(row_count) as i,
            scope.loop(column_count) as j,
        ):
            place = scope.bind(ix.add(ix.multiply(i, COLUMNS), j))
            is_finite = apply("is-finite", scope.load(tile, place), type=PRED)
            with scope.when(apply("not", is_finite, type=PRED)):
                at = b, ix.add(first_row, i), ix.add(first_column, j)
                exact = _exactly(self.factors, (F32, F32), self.type, at, scope)
                scope.store(results, place, _as(exact, F32))
        with scope.loop(row_count) as i, scope.loop(column_count, "lanes") as j:
            result = scope.bind(scope.load(results, ix.add(ix.multiply(i, COLUMNS), j)))
            m, n = ix.add(first_row, i), ix.add(first_column, j)
            self.write(self.factors.place(b, m, n), (_as(result, self.type),))

    def _rounded(self, tile: Array, rows: Expr, columns: Expr) -> tuple[Array, Variable]:
        """The totals of a tile rounded once where they are finite; 0 unless all are."""
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
