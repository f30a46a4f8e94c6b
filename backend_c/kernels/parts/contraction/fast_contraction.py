"""Write contractions in plain sums (fast mode): packing, tiles of sums in registers, epilogue.

The scheme of Goto and van de Geijn, as runtime/hlo_gemm.h has it: right factors are packed into
panels, left factors are read where they lie, or written out if they are computed; threads share
blocks of the result, each of which is summed over all of k before its epilogue. Neither sizes of
blocks nor the order of sums depend on the number of threads.
"""

from __future__ import annotations

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Writer
from backend_c.ir.loop_ir import INDEX, Address, Array, Constant, Expr, Pointer, Variable
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import (
    Write,
    as_type,
    exact_sum_of_products,
)
from backend_c.kernels.parts.contraction.factor_memory import (
    WIDEST,
    LeftCopies,
    Side,
    left_in_place,
    lines_in_place,
    packing,
    right_factors,
    strides_in_place,
)
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction.finished_rows import write_rows
from backend_c.kernels.parts.contraction.products import Product
from backend_c.kernels.parts.contraction.strided_access import result_array, result_offset
from hlo.types import PARTS, PRED, S32, U32, ElementType

# Multiples of the rows (14, 12, 6 or 4) and of the columns of every tile (hlo_gemm_tiles.h), and of
# the 16 rows of AMX; tiles of 14 rows, which narrow types have too, leave 12 of 96.
ROWS, COLUMNS = 84, 64
_NARROW_ROWS = 96
# At most so many strips of columns make a block: they share its left factors while these are in the
# L2 cache. 16 take 7 % less time than 4 (4096x768x3072); threads need several blocks each.
_STRIPS = 16
_BLOCKS = 16
# Products, added up in registers, that take the time of one operation on elements in memory, which
# is what the grain size counts: fewer are not worth waking a thread.
_PRODUCTS = 8
# Where so few blocks of rows share a strip of right factors, the thread that packs it uses it up,
# while it is in the L2 cache: so many elements of a panel at most.
_FEW_ROW_BLOCKS = 4
_TOGETHER = 4  # strips of sums that one call writes to the stack
_VECTOR = 8  # columns of most vectors
_PAGE = 4096  # bytes, as HLO_GEMM_PAGE
_STRIP = 1 << 16  # words of narrow types: 256 KiB
_PLAIN_STRIP = 1 << 12  # of f32 or f64: beside left factors and sums in the L1 cache


def is_padded(factors: Factors) -> bool:
    """Return whether left factors have conditions that right ones lack, as a convolution's padding.

    They are zeros in memory then, and zero times infinity is NaN: sums that are not finite are
    added again from the factors that count.
    """
    sizes = factors.batch, factors.m, factors.n, factors.k
    b, m, n, k = (Variable(INDEX, f"any_{d}", 0, size - 1) for d, size in zip("bmnk", sizes))
    left, right = factors.lhs(b, m, k)[1], factors.rhs(b, n, k)[1]
    # Conditions of both (a bounded k) make zeros of both factors.
    return bool(left) and set(left) != set(right)


class FastContraction:
    """Write one contraction to results of type ``result`` as a packed matrix product."""

    def __init__(
        self,
        factors: Factors,
        product: Product,
        result: ElementType,
        write: Write,
        scope: Scope,
    ) -> None:
        self.factors, self.write, self.scope = factors, write, scope
        self.product, self.sums, self.result = product, product.sums, result
        self.rows = ROWS if product.room is None else _NARROW_ROWS
        self.is_padded = self.sums.is_float and is_padded(factors)
        self.stored = None if self.is_padded else result_array(write, factors, self.sums)
        self.copies: LeftCopies | None = None
        self.right: Side
        self.left = self._left_factors()
        lines = lines_in_place(factors, product) if self._has_plain_rows() else None
        self.reads_lines = lines is not None
        self.in_strips = lines is None and self.copies is None and self._has_strips()
        if lines is not None:
            self.right = lines
        elif self.in_strips:
            self.pack = packing(factors, product, COLUMNS, scope)
        else:
            self.right = right_factors(factors, product, COLUMNS, scope)
        self.least: Array | None = None
        if product.is_checked:
            self._find_least()

    def _left_factors(self) -> Side:
        """Return the left factors in memory; set ``copies`` if each share of threads copies its
        blocks."""
        place = left_in_place(self.factors, self.product, self.rows)
        if place is not None:
            return place
        copies = LeftCopies(self.factors, self.product, self.rows, self.scope)
        if not copies.shares:
            return copies.whole()
        self.copies = copies
        return copies.of_share(ix.constant(0))

    def _has_plain_rows(self) -> bool:
        """Return whether the steps of each row of the left factors lie side by side."""
        return self.copies is None and not self.is_padded and self.left.step_pitch == 1

    def _has_strips(self) -> bool:
        """Return whether threads share strips of columns, each packed by its thread, over all
        rows."""
        factors, product = self.factors, self.product
        row_blocks, strips = -(-factors.m // self.rows), -(-factors.n // COLUMNS)
        most = _STRIP if product.room is not None else _PLAIN_STRIP
        return (
            row_blocks <= _FEW_ROW_BLOCKS
            and factors.batch * strips >= _BLOCKS
            and min(factors.n, COLUMNS) * product.rows(factors.k) <= most
            and strides_in_place(factors, product) is None
        )

    def _find_least(self) -> None:
        """Call hlo_gemm_bf16_least for each block of rows, unless each share calls it for its own.

        Instructions of bf16 (AMX, AVX-512) flush subnormal factors and sums: they are used where
        the least magnitudes of both sides prove that there are none.
        """
        scope, factors = self.scope, self.factors
        blocks = -(-factors.m // self.rows)
        self.least = scope.scratch(U32, factors.batch * blocks, frozen=self.copies is None)
        if self.copies is not None:
            return
        cost = min(factors.m, self.rows) * factors.k // 16
        with nest.outer(scope, (factors.batch, blocks), cost) as (b, block):
            self._find_least_of_block(b, block)

    def _find_least_of_block(self, b: Expr, block: Expr) -> None:
        """Write the call of hlo_gemm_bf16_least for a block of rows."""
        assert self.least is not None
        scope, factors = self.scope, self.factors
        first = scope.bind(ix.multiply(block, self.rows))
        scope.call(
            f"hlo_gemm_{self.product.name}_least",
            self.left.address(b, first),
            ix.constant(self.left.line_pitch),
            ix.clamp(0, ix.subtract(factors.m, first), self.rows),
            ix.constant(factors.k),
            Pointer(self.least, ix.add(ix.multiply(b, -(-factors.m // self.rows)), block)),
        )

    def emit(self) -> None:
        """Write the loops over blocks of the result, which threads share."""
        factors = self.factors
        row_blocks = -(-factors.m // self.rows)
        strips = -(-factors.n // COLUMNS)
        if self.in_strips:
            self._emit_strips(row_blocks, strips)
            return
        if self.copies is not None:
            self._emit_shares(self.copies, strips)
            return
        shared = _STRIPS
        while shared > 1 and factors.batch * row_blocks * -(-strips // shared) < _BLOCKS:
            shared //= 2
        # All as wide as the last one: threads get as many blocks each, not as many strips.
        shared = -(-strips // -(-strips // shared))
        together = self._together(shared)
        dims = (factors.batch, -(-strips // shared), row_blocks)
        products = min(factors.m, self.rows) * min(factors.n, COLUMNS * shared) * factors.k
        cost = products // _PRODUCTS
        with nest.outer(self.scope, dims, cost) as (b, column_block, row_block):
            first = ix.multiply(column_block, shared)
            count = ix.clamp(0, ix.subtract(strips, first), shared)
            with self.scope.loop(ix.divide(ix.add(count, together - 1), together)) as place:
                strip = self.scope.bind(ix.add(first, ix.multiply(place, together)))
                first_column = ix.multiply(strip, COLUMNS)
                width = COLUMNS * together
                self._strip(b, ix.multiply(row_block, self.rows), first_column, width)

    def _emit_shares(self, copies: LeftCopies, strips: int) -> None:
        """Write the loops over shares of threads, each of which copies its blocks of rows in
        turn."""
        factors, scope = self.factors, self.scope
        dims, together = (factors.batch, copies.blocks), self._together(_STRIPS)
        cost = min(factors.m, self.rows) * factors.n * factors.k // _PRODUCTS
        with nest.in_shares(scope, dims, copies.shares, cost) as (share, (b, block)):
            self.left = copies.of_share(share)
            copies.write(b, block, share)
            if self.least is not None:
                self._find_least_of_block(b, block)
            with scope.loop(-(-strips // together)) as strip:
                width = COLUMNS * together
                first_column = scope.bind(ix.multiply(strip, width))
                self._strip(b, ix.multiply(block, self.rows), first_column, width)

    def _together(self, shared: int) -> int:
        """Return how many strips one call of the inner kernel covers.

        Narrow types convert left factors to words, or load tiles of AMX, once for each call; so are
        rows copied that lie pages apart.
        """
        apart = self.left.line_pitch * self.product.left.bits % (8 * _PAGE) == 0
        if self.product.room is None and not (apart and self.left.step_pitch == 1):
            return 1
        return shared if self.stored is not None else min(shared, _TOGETHER)

    def _emit_strips(self, row_blocks: int, strips: int) -> None:
        """Write the loop over strips of columns, each packed by the thread that uses it."""
        factors, product, scope = self.factors, self.product, self.scope
        cost = factors.m * min(factors.n, COLUMNS) * factors.k // _PRODUCTS
        room = -(-min(factors.n, COLUMNS) // WIDEST) * WIDEST * product.rows(factors.k)
        with nest.outer(scope, (factors.batch, strips), cost) as (b, strip):
            first = scope.bind(ix.multiply(strip, COLUMNS))
            count = scope.bind(ix.clamp(0, ix.subtract(factors.n, first), COLUMNS))
            panels = Pointer(scope.local(product.panel, room), ix.constant(0))
            self.pack(b, first, count, panels)
            self.right = Side(lambda b, column: panels, 1, 0)
            with scope.loop(row_blocks) as row_block:
                self._strip(b, ix.multiply(row_block, self.rows), first)

    def _strip(self, b: Expr, first_row: Expr, first_column: Expr, width: int = COLUMNS) -> None:
        """Write one block of rows by one strip of columns: products, repair, epilogue, stores."""
        scope, factors = self.scope, self.factors
        rows = scope.bind(ix.clamp(0, ix.subtract(factors.m, first_row), self.rows))
        columns = scope.bind(ix.clamp(0, ix.subtract(factors.n, first_column), width))
        at = b, first_row, first_column
        if self.stored is not None:
            array, strides = self.stored
            assert isinstance(self.write, Writer)
            offset = result_offset(self.write, factors, at)
            self._multiply(at, (rows, columns), Pointer(array, offset), strides.line)
            return
        pitch = min(factors.n, width)
        sums = scope.local(self.sums, min(factors.m, self.rows) * pitch)
        self._multiply(at, (rows, columns), Pointer(sums, ix.constant(0)), pitch)
        if self.is_padded:
            self._repair(sums, pitch, (rows, columns), at)
        if pitch == factors.n and pitch % _VECTOR and not self.result.is_complex:
            self._write_rows(sums, rows, at)
            return
        # The parts of a complex result lie side by side.
        parts = 2 if self.result.is_complex else 1
        part = PARTS.get(self.result, self.result)
        with scope.loop(rows) as i, scope.loop(ix.divide(columns, parts), "lanes") as j:
            column = ix.multiply(j, parts)
            at_parts = [ix.add(ix.multiply(i, pitch), column, part) for part in range(parts)]
            total = [scope.bind(scope.load(sums, offset)) for offset in at_parts]
            value = (
                as_type(total[0], self.result)
                if parts == 1
                else apply("complex", *(as_type(one, part) for one in total), type=self.result)
            )
            place = factors.place(b, ix.add(first_row, i), ix.add(first_column, column))
            self.write(place, (value,))

    def _write_rows(self, sums: Array, rows: Expr, first: tuple[Expr, Expr, Expr]) -> None:
        """Write the results of a block of whole rows that are no whole vectors."""
        scope, factors, (b, first_row, _) = self.scope, self.factors, first

        def store(row: Expr, column: Expr, number: Expr) -> None:
            total = scope.bind(scope.load(sums, number))
            place = factors.place(b, ix.add(first_row, row), column)
            self.write(place, (as_type(total, self.result),))

        write_rows(scope, rows, min(factors.m, self.rows), factors.n, store)

    def _multiply(
        self,
        at: tuple[Expr, Expr, Expr],
        counts: tuple[Expr, Expr],
        into: Pointer,
        pitch: int,
    ) -> None:
        """Call the inner kernel on a block of rows and a strip of columns."""
        b, first_row, first_column = at
        left, right = self.left, self.right
        k = ix.constant(self.factors.k)
        lhs = left.address(b, first_row), ix.constant(left.line_pitch)
        rhs = right.address(b, first_column)
        function = f"hlo_gemm_{self.product.name}"
        if self.reads_lines:
            pitches = ix.constant(right.line_pitch), *counts, k
            self.scope.call(f"{function}_lines", *lhs, rhs, *pitches, into, ix.constant(pitch))
            return
        if self.product.room is None:
            steps = ix.constant(left.step_pitch), rhs, ix.constant(right.step_pitch)
            self.scope.call(function, *lhs, *steps, *counts, k, into, ix.constant(pitch))
            return
        checked = []
        if self.least is not None:
            blocks = -(-self.factors.m // self.rows)
            block = ix.divide(first_row, self.rows)
            checked = [self.scope.load(self.least, ix.add(ix.multiply(b, blocks), block))]
        self.scope.call(function, *lhs, rhs, *counts, k, into, ix.constant(pitch), *checked)

    def _repair(
        self, sums: Array, pitch: int, counts: tuple[Expr, Expr], first: tuple[Expr, Expr, Expr]
    ) -> None:
        """Recompute the sums that are not finite, from the factors that count."""
        scope, (b, first_row, first_column) = self.scope, first
        finite = scope.mutable(S32, Constant(S32, 1))
        start = Pointer(sums, ix.constant(0))
        function = f"hlo_gemm_{self.sums}_all_finite"
        scope.call(function, start, *counts, ix.constant(pitch), Address(finite))
        with (
            scope.when(apply("compare-EQ", finite, Constant(S32, 0), type=PRED)),
            scope.loop(counts[0]) as i,
            scope.loop(counts[1]) as j,
        ):
            place = scope.bind(ix.add(ix.multiply(i, pitch), j))
            is_finite = apply("is-finite", scope.load(sums, place), type=PRED)
            with scope.when(apply("not", is_finite, type=PRED)):
                at = b, ix.add(first_row, i), ix.add(first_column, j)
                types = self.sums, self.sums
                exact = exact_sum_of_products(self.factors, types, self.sums, at, scope)
                scope.store(sums, place, exact)
