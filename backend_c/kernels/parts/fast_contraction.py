"""Write contractions in plain sums (fast mode): packing, tiles of sums in registers, epilogue.

The scheme of Goto and van de Geijn, as runtime/hlo_gemm.h has it: both factors are packed into
panels, threads share blocks of the result, and each block is summed over all of k before its
epilogue. Neither sizes of blocks nor the order of sums depend on the number of threads.
"""

from __future__ import annotations

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Writer
from backend_c.ir.loop_ir import Address, Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction_loops import (
    Write,
    as_type,
    counted,
    exact_sum_of_products,
)
from backend_c.kernels.parts.factors import Factors, Read
from backend_c.kernels.parts.strided_access import (
    factor_pointer,
    factor_strides,
    result_array,
    result_offset,
)
from hlo.types import PRED, S32, ElementType

# Multiples of the rows and of the columns of every processor's tile (runtime/hlo_gemm.h).
_ROWS, _COLUMNS = 84, 64
# At most so many strips of columns make a block: they share its packed rows while these are in the
# L2 cache. 16 take 7 % less time than 4 (4096x768x3072); threads need several blocks each.
_STRIPS = 16
_BLOCKS = 16
_MOST_TILE_ROWS, _MOST_TILE_COLUMNS = 14, 32
_STEPS = 64  # of computed factors that are written to the stack before they are packed


def is_padded(factors: Factors) -> bool:
    """Return whether only the left factor says that it does not count, as a convolution's padding.

    It is a zero in its panel then, and zero times infinity is NaN: sums that are not finite are
    looked at again.
    """
    zero = ix.constant(0)
    return bool(factors.lhs(zero, zero, zero)[1]) and not factors.rhs(zero, zero, zero)[1]


class FastContraction:
    """Write one contraction whose sums have the type ``sums``."""

    def __init__(
        self,
        factors: Factors,
        types: tuple[ElementType, ElementType],
        write: Write,
        scope: Scope,
    ) -> None:
        self.factors, self.write, self.scope = factors, write, scope
        self.sums, self.result = types
        self.is_padded = is_padded(factors)
        self.stored = None if self.is_padded else result_array(write, factors, self.sums)

    def emit(self) -> None:
        """Write the packing of both factors, then the blocks."""
        factors = self.factors
        # Room for the panel that the last row or column begins, on any processor.
        row_pitch = factors.m + _MOST_TILE_ROWS - 1
        column_pitch = -(-factors.n // _MOST_TILE_COLUMNS) * _MOST_TILE_COLUMNS
        rows = self._packed("rows", factors.lhs, factors.m, row_pitch)
        columns = self._packed("columns", factors.rhs, factors.n, column_pitch)
        row_blocks = -(-factors.m // _ROWS)
        strips = -(-factors.n // _COLUMNS)
        shared = _STRIPS
        while shared > 1 and factors.batch * row_blocks * -(-strips // shared) < _BLOCKS:
            shared //= 2
        dims = (factors.batch, -(-strips // shared), row_blocks)
        cost = min(factors.m, _ROWS) * min(factors.n, _COLUMNS * shared) * factors.k
        with nest.outer(self.scope, dims, cost) as (b, column_block, row_block):
            first = ix.multiply(column_block, shared)
            count = ix.clamp(0, ix.subtract(strips, first), shared)
            with self.scope.loop(count) as place:
                strip = self.scope.bind(ix.add(first, place))
                at = ix.multiply(row_block, _ROWS), ix.multiply(strip, _COLUMNS)
                pointers = (
                    self._panel(rows, b, row_pitch, at[0]),
                    self._panel(columns, b, column_pitch, at[1]),
                )
                self._strip(pointers, b, *at)

    def _panel(self, panels: Array, b: Expr, pitch: int, line: Expr) -> Pointer:
        """Return the address of the panel that begins with a line."""
        return Pointer(panels, ix.multiply(ix.add(ix.multiply(b, pitch), line), self.factors.k))

    def _packed(self, kind: str, read: Read, lines: int, pitch: int) -> Array:
        """Write the packing of a factor's ``kind``, its rows or columns; return the panels."""
        scope, factors = self.scope, self.factors
        strip = _ROWS if kind == "rows" else _COLUMNS
        panels = scope.scratch(self.sums, factors.batch * pitch * factors.k, frozen=True)
        strides = factor_strides(read, (factors.batch, lines, factors.k), self.sums)
        strips = -(-lines // strip)
        with nest.outer(scope, (factors.batch, strips), strip * factors.k) as (b, number):
            first = scope.bind(ix.multiply(number, strip))
            count = scope.bind(ix.clamp(0, ix.subtract(lines, first), strip))
            target = self._panel(panels, b, pitch, first)
            if strides is None:
                self._computed(kind, read, (b, first, count), strip, target)
            else:
                source = factor_pointer(read, b, first, ix.constant(0))
                steps = ix.constant(0), ix.constant(factors.k)
                self._pack(kind, source, (strides.line, strides.step), count, steps, target)
        return panels

    def _pack(
        self,
        kind: str,
        source: Pointer,
        pitches: tuple[int, int],
        count: Expr,
        steps: tuple[Expr, Expr],
        target: Pointer,
    ) -> None:
        """Call the packing of lines in memory: ``steps`` are the first one and how many."""
        self.scope.call(
            f"hlo_gemm_{self.sums}_pack_{kind}",
            source,
            *map(ix.constant, pitches),
            count,
            *steps,
            ix.constant(self.factors.k),
            target,
        )

    def _computed(
        self, kind: str, read: Read, place: tuple[Expr, Expr, Expr], strip: int, target: Pointer
    ) -> None:
        """Write the packing of factors that are computed, or of another type."""
        scope, k = self.scope, self.factors.k
        b, first, count = place
        steps = min(k, _STEPS)
        buffer = scope.local(self.sums, strip * steps)
        with scope.loop(-(-k // steps)) as block:
            start = scope.bind(ix.multiply(block, steps))
            here = scope.bind(ix.clamp(0, ix.subtract(k, start), steps))
            with scope.loop(count) as line, scope.loop(here, "lanes") as step:
                value, conditions = read(b, ix.add(first, line), ix.add(start, step))
                value = as_type(counted(value, conditions), self.sums)
                scope.store(buffer, ix.add(ix.multiply(line, steps), step), value)
            source = Pointer(buffer, ix.constant(0))
            self._pack(kind, source, (steps, 1), count, (start, here), target)

    def _strip(
        self, pointers: tuple[Pointer, Pointer], b: Expr, first_row: Expr, first_column: Expr
    ) -> None:
        """Write the sums of a strip of columns in a block of rows, and what is done with them."""
        scope, factors = self.scope, self.factors
        rows = scope.bind(ix.clamp(0, ix.subtract(factors.m, first_row), _ROWS))
        columns = scope.bind(ix.clamp(0, ix.subtract(factors.n, first_column), _COLUMNS))
        counts = rows, columns, ix.constant(factors.k)
        if self.stored is not None:
            array, strides = self.stored
            assert isinstance(self.write, Writer)
            offset = result_offset(self.write, factors, (b, first_row, first_column))
            into, pitch = Pointer(array, offset), strides.line
            scope.call(f"hlo_gemm_{self.sums}", *pointers, *counts, into, ix.constant(pitch))
            return
        pitch = min(factors.n, _COLUMNS)
        sums = scope.local(self.sums, min(factors.m, _ROWS) * pitch)
        into = Pointer(sums, ix.constant(0))
        scope.call(f"hlo_gemm_{self.sums}", *pointers, *counts, into, ix.constant(pitch))
        if self.is_padded:
            self._repair(sums, pitch, (rows, columns), (b, first_row, first_column))
        with scope.loop(rows) as i, scope.loop(columns, "lanes") as j:
            total = scope.bind(scope.load(sums, ix.add(ix.multiply(i, pitch), j)))
            m, n = ix.add(first_row, i), ix.add(first_column, j)
            self.write(factors.place(b, m, n), (as_type(total, self.result),))

    def _repair(
        self, sums: Array, pitch: int, counts: tuple[Expr, Expr], first: tuple[Expr, Expr, Expr]
    ) -> None:
        """Write the sums that are not finite again, from the factors that count."""
        scope, (b, first_row, first_column) = self.scope, first
        finite = scope.mutable(S32)
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
