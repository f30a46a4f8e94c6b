"""Provide the factors of a fast contraction in memory, as runtime/hlo_gemm.h reads them.

Left factors may lie anywhere at constant pitches; right factors are packed into panels, or read in
place where steps are rows of whole panels and too few rows share them for packing to pay.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Array, Expr, Pointer
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.contraction.contraction_loops import as_type, masked
from backend_c.kernels.parts.contraction.factors import Factors, Read
from backend_c.kernels.parts.contraction.products import Product
from backend_c.kernels.parts.contraction.strided_access import (
    Strides,
    factor_pointer,
    factor_strides,
    has_lines_side_by_side,
)
from hlo.types import ElementType

WIDEST = 32  # columns of the widest tile
_VECTOR = 16  # columns of its vectors: a multiple of those of all others
_FEW_ROWS = 128  # for which packing right factors takes longer than reading them in place
_ROWS_OF_LINES = 32  # the same, of right factors with steps side by side
_LONG_LINES = 256  # steps of them: in shorter ones adding up the lanes takes longer than packing
_SHARES, _FEWEST_SHARES = 64, 16  # of blocks that are copied one after the other
_LEAST_RUN = 7  # steps: shorter runs take longer to pack than their places to compute
_STEPS = 64  # of computed right factors that are written to the stack before they are packed


Pair = tuple[Expr, Expr]
Pitches = tuple[int, int]  # of lines and of steps


# Maps a batch, a first column, a number of columns and an address to nothing: writes a packing.
Packing = Callable[[Expr, Expr, Expr, Pointer], None]


class Side(NamedTuple):
    """Locate a factor in memory: the address of a (batch, line), the pitches of lines and steps."""

    address: Callable[[Expr, Expr], Pointer]
    line_pitch: int
    step_pitch: int


def stored_factors(
    read: Read, dims: tuple[int, int, int], element_type: ElementType, scope: Scope
) -> Array:
    """Write all factors that ``read`` returns for indices of ``dims`` to scratch, row-major and
    converted to a type; return it."""
    array = scope.scratch(element_type, math.prod(dims), frozen=True)
    with nest.split(scope, dims) as index:
        value = as_type(masked(*read(*index)), element_type)
        scope.store(array, ix.linearize(index, dims), value)
    return array


def left_in_place(factors: Factors, product: Product, rows: int) -> Side | None:
    """Return the left factors where they are; None if they have to be copied, by blocks of
    ``rows``."""
    read, sizes = factors.lhs, (factors.batch, factors.m, factors.k)
    strides = factor_strides(read, sizes, product.left)
    # Steps at the pitch of a long row are pages apart: that pays for few rows only.
    may_be_apart = factors.m <= rows and product.room is None
    if strides is None or not (strides.step == 1 or may_be_apart):
        return None
    return Side(lambda b, row: factor_pointer(read, b, row, ix.constant(0)), *strides)


class LeftCopies:
    """Copy left factors by blocks of ``rows``: all at once, or one in each share of the threads.

    Patches of a convolution, and the rows of a ragged dot once for each group, may be many times
    their operand: then ``shares`` is the number of shares, each of which has memory for one block.
    """

    def __init__(self, factors: Factors, product: Product, rows: int, scope: Scope) -> None:
        self._factors, self._scope = factors, scope
        self._width = min(factors.m, rows)
        self._area = self._width * factors.k
        self.blocks = -(-factors.m // self._width)
        count, most = factors.batch * self.blocks, scope.settings.most_packed
        self.shares = 0
        if count * self._area > most:
            self.shares = min(count, max(_FEWEST_SHARES, min(_SHARES, most // self._area)))
        elements = (self.shares or count) * self._area
        # Blocks that are written again and again must be read where the text reads them.
        self._array = scope.scratch(product.left, elements, frozen=not self.shares)
        in_order = product.room is not None
        across = has_lines_side_by_side(factors.lhs, (factors.batch, factors.m, factors.k), scope)
        self._is_transposed = across and in_order
        self._pitches = (1, self._width) if across and not in_order else (factors.k, 1)

    def whole(self) -> Side:
        """Write all copies; return where they are."""
        with nest.outer(self._scope, (self._factors.batch, self.blocks), self._area) as (b, block):
            self.write(b, block, self._number(b, block))
        return Side(
            lambda b, row: self._address(self._number(b, ix.divide(row, self._width))),
            *self._pitches,
        )

    def of_share(self, share: Expr) -> Side:
        """Return where the block of a share is."""
        return Side(lambda b, row: self._address(share), *self._pitches)

    def _number(self, b: Expr, block: Expr) -> Expr:
        return ix.add(ix.multiply(b, self.blocks), block)

    def _address(self, number: Expr) -> Pointer:
        return Pointer(self._array, ix.multiply(number, self._area))

    def write(self, b: Expr, block: Expr, number: Expr) -> None:
        """Write the copy of a block to the place of a number, that of its share if there are
        shares."""
        scope, factors, width = self._scope, self._factors, self._width
        first = scope.bind(ix.multiply(block, width))
        count = scope.bind(ix.clamp(0, ix.subtract(factors.m, first), width))
        start = scope.bind(ix.multiply(number, self._area))
        if self._is_transposed:
            into = Pointer(self._array, start)
            _transpose_out(factors, (b, first, count), into, width, scope)
        else:
            place = b, first, ix.constant(0)
            counts = count, ix.constant(factors.k)
            _write_out(factors.lhs, place, counts, (self._array, start, self._pitches), scope)


def _transpose_out(
    factors: Factors, place: tuple[Expr, Expr, Expr], into: Pointer, width: int, scope: Scope
) -> None:
    """Write left factors that lie column-major in memory out row-major, by tiles.

    ``place`` is the batch, the first line, and the number of lines, at most ``width``.
    """
    (b, first, count), k = place, factors.k
    element_type = into.array.element_type
    steps = min(k, _STEPS)
    strides = factor_strides(factors.lhs, (factors.batch, factors.m, k), element_type)
    function = f"hlo_transpose_tile_{max(element_type.bits, 8) // 8}"
    if strides is not None and strides.line == 1:
        source = factor_pointer(factors.lhs, b, first, ix.constant(0))
        sizes = ix.constant(k), count
        scope.call(function, source, ix.constant(strides.step), into, ix.constant(k), *sizes)
        return
    buffer = scope.local(element_type, width * steps)
    with scope.loop(-(-k // steps)) as block:
        start = scope.bind(ix.multiply(block, steps))
        here = scope.bind(ix.clamp(0, ix.subtract(k, start), steps))
        target = buffer, ix.constant(0), (1, width)
        _write_out(factors.lhs, (b, first, start), (count, here), target, scope)
        source = Pointer(buffer, ix.constant(0))
        end = Pointer(into.array, ix.add(into.offset, start))
        scope.call(function, source, ix.constant(width), end, ix.constant(k), here, count)


def right_factors(
    factors: Factors, product: Product, strip: int, scope: Scope, run: int = 1
) -> Side:
    """Return the right factors in memory: in place, or packed into panels (with step pitch 0).

    ``run`` steps, from multiples of it on, may lie side by side.
    """
    read, k = factors.rhs, factors.k
    strides = strides_in_place(factors, product)
    if strides is not None:
        return Side(lambda b, column: factor_pointer(read, b, column, ix.constant(0)), *strides)
    pitch = -(-factors.n // WIDEST) * WIDEST
    panels = scope.scratch(product.panel, factors.batch * pitch * product.rows(k), frozen=True)
    pack = packing(factors, product, strip, scope, run)

    def address(b: Expr, column: Expr) -> Pointer:
        place = ix.add(ix.multiply(b, pitch), column)
        return Pointer(panels, ix.multiply(place, product.rows(k)))

    width = min(factors.n, strip)
    with nest.outer(scope, (factors.batch, -(-factors.n // width)), width * k) as (b, number):
        first = scope.bind(ix.multiply(number, width))
        count = scope.bind(ix.clamp(0, ix.subtract(factors.n, first), width))
        pack(b, first, count, address(b, first))
    return Side(address, 1, 0)


def lines_in_place(factors: Factors, product: Product) -> Side | None:
    """Return the right factors where they are, if each line has its steps side by side and too few
    rows share them for packing to pay; None if not."""
    strides = factor_strides(factors.rhs, (factors.batch, factors.n, factors.k), product.right)
    is_worth_packing = factors.m > _ROWS_OF_LINES or factors.k < _LONG_LINES
    is_plain = product.sums.is_float and product.room is None
    if strides is None or strides.step != 1 or is_worth_packing or not is_plain:
        return None
    return Side(lambda b, n: factor_pointer(factors.rhs, b, n, ix.constant(0)), *strides)


def strides_in_place(factors: Factors, product: Product) -> Strides | None:
    """Return the strides of right factors that are read in place; None if they are to be packed."""
    strides = factor_strides(factors.rhs, (factors.batch, factors.n, factors.k), product.right)
    # In place the kernel reads whole vectors of columns; a step pitch of 0 would tell it that
    # factors are packed.
    is_worth_packing = factors.m > _FEW_ROWS or factors.n % _VECTOR or product.room is not None
    if strides is None or strides.line != 1 or strides.step <= 0 or is_worth_packing:
        return None
    return strides


def packing(factors: Factors, product: Product, strip: int, scope: Scope, run: int = 1) -> Packing:
    """Return the function that writes code to pack a strip of right factors.

    Its arguments are the batch, the first column, the number of columns and the target address.
    Must be called outside loops.
    """
    read, k, element_type = factors.rhs, factors.k, product.right
    sizes = factors.batch, factors.n, k
    strides = factor_strides(read, sizes, element_type)
    lines_in_order = has_lines_side_by_side(read, sizes, scope)
    width = min(factors.n, strip)

    def pack(source: Pointer, pitches: Pitches, count: Expr, steps: Pair, target: Pointer) -> None:
        arguments = *map(ix.constant, pitches), count, *steps, ix.constant(k)
        scope.call(f"hlo_gemm_{product.name}_pack", source, *arguments, target)

    def pack_computed(b: Expr, first: Expr, count: Expr, target: Pointer) -> None:
        steps = min(k, _steps_of_runs(run))
        buffer = scope.local(element_type, width * steps)
        pitches = (1, width) if lines_in_order else (steps, 1)
        with scope.loop(-(-k // steps)) as block:
            start = ix.multiply(block, steps)  # by its form places are known without divisions
            here = scope.bind(ix.clamp(0, ix.subtract(k, start), steps))
            into = buffer, ix.constant(0), pitches
            _write_out(read, (b, first, start), (count, here), into, scope)
            pack(Pointer(buffer, ix.constant(0)), pitches, count, (start, here), target)

    def pack_in_memory(b: Expr, first: Expr, count: Expr, target: Pointer) -> None:
        assert strides is not None
        source = factor_pointer(read, b, first, ix.constant(0))
        pack(source, strides, count, (ix.constant(0), ix.constant(k)), target)

    return pack_computed if strides is None else pack_in_memory


def _steps_of_runs(run: int) -> int:
    """Choose the steps that are written out at a time: within one run, if that is not too few, so
    that none of them divides to find its place."""
    whole = max(steps for steps in range(1, _STEPS + 1) if run % steps == 0)
    return whole if whole >= _LEAST_RUN else _STEPS


def _write_out(
    read: Read,
    place: tuple[Expr, Expr, Expr],
    counts: Pair,
    into: tuple[Array, Expr, Pitches],
    scope: Scope,
) -> None:
    """Write computed factors to an array of the given pitches; the one of pitch 1 is the lanes.

    ``place`` is the first (batch, line, step), ``counts`` are those of lines and steps.
    """
    (b, first, start), (array, offset, pitches) = place, into
    inner = pitches.index(1)
    with scope.loop(counts[1 - inner]) as outer, scope.loop(counts[inner], "lanes") as lane:
        line, step = (lane, outer) if inner == 0 else (outer, lane)
        value, conditions = read(b, ix.add(first, line), ix.add(start, step))
        at = ix.add(offset, ix.multiply(line, pitches[0]), ix.multiply(step, pitches[1]))
        scope.store(array, at, as_type(masked(value, conditions), array.element_type))
