"""Lay out the panels of runtime/hlo_factor.h: 64 lanes, step by step, in real numbers.

A complex number is two real ones in each direction, [re -im; im re], of which a right-hand side
keeps the first column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import as_type
from hlo.types import F32, F64, PARTS, PRED, ElementType

BLOCK = 64  # lanes of a panel, and steps that are solved together (HLO_FACTOR_PITCH)
WIDTH = 32  # lanes of a task (HLO_FACTOR_WIDTH)
TILE = 8  # steps of a tile (HLO_FACTOR_TILE)
AREA = BLOCK * BLOCK


# From an index, the factor's element there (None beside the triangle) and 0 or 1 + the first column
# without a factor: what is stored.
Result = Callable[[tuple[Expr, ...], Expr | None, Expr], Expr]


class Numbers(NamedTuple):
    """Describe a matrix element: its type, that of sums, and its real parts (2 if complex)."""

    element_type: ElementType
    sums: ElementType
    parts: int

    @property
    def edge(self) -> int:
        """Return the number of elements along an edge of a block."""
        return BLOCK // self.parts

    def of(self, value: Expr) -> tuple[Expr, ...]:
        """Split an element into its real numbers."""
        if self.parts == 1:
            return (as_type(value, self.sums),)
        return tuple(apply(name, value, type=self.sums) for name in ("real", "imag"))

    def element(self, numbers: Sequence[Expr]) -> Expr:
        """Join real numbers to an element."""
        if self.parts == 1:
            return as_type(numbers[0], self.element_type)
        return apply("complex", *numbers, type=self.element_type)

    def with_real_diagonal(self, value: Expr, is_diagonal: Expr) -> Expr:
        """Return an element of a Hermitian matrix, with a zero imaginary part on the diagonal.

        What the operand has there means nothing.
        """
        if self.parts == 1:
            return value
        real, imag = self.of(value)
        zero = Constant(self.sums, 0.0)
        return self.element((real, apply("select", is_diagonal, zero, imag, type=self.sums)))

    def real_matrix(self, value: Expr) -> dict[tuple[int, int], Expr]:
        """Return the real numbers of an element by (row, column) in [re -im; im re]."""
        if self.parts == 1:
            return {(0, 0): self.of(value)[0]}
        real, imag = self.of(value)
        return {(0, 0): real, (0, 1): apply("negate", imag), (1, 0): imag, (1, 1): real}


@dataclass(frozen=True, slots=True)
class System:
    """Describe a triangular system, op(a) x = b or x op(a) = b, by the flags of
    triangular-solve."""

    left_side: bool
    lower: bool
    unit: bool
    is_transposed: bool
    is_conjugate: bool

    @property
    def is_across(self) -> bool:
        """Return whether the rows of T, the triangle that is solved with, are the columns of
        ``a``."""
        # x op(a) = b is op(a)^T x^T = b^T: the right side transposes once more.
        return self.is_transposed == self.left_side

    @property
    def is_forward(self) -> bool:
        """Return whether steps are solved in the order of the rows of ``a``."""
        return self.lower != self.is_across

    def extents(self, dims: Sequence[int]) -> tuple[tuple[int, ...], int, int]:
        """Return (batch dims, rows of ``a``, right-hand sides per system) of a ``b`` of some
        dims."""
        *batch, rows, columns = dims
        size, vectors = (rows, columns) if self.left_side else (columns, rows)
        return tuple(batch), size, vectors


def numbers_of(element_type: ElementType) -> Numbers:
    """Return the representation of a type's elements in fast mode."""
    part = PARTS.get(element_type, element_type)
    return Numbers(element_type, F64 if part is F64 else F32, 2 if element_type.is_complex else 1)


def blocks(extent: int, size: int = BLOCK) -> int:
    """Return the number of blocks that cover an extent."""
    return -(-extent // size)


def rest(extent: int, first: Expr, size: int) -> Expr:
    """Return the length of the block at ``first``: ``size``, or less at the end of the extent."""
    return ix.clamp(0, ix.subtract(extent, first), size)


def transpose(source: Pointer, target: Pointer, scope: Scope) -> None:
    """Write the transposition of a block of 64 x 64 numbers; rows have a pitch of 64 on both
    sides."""
    width = source.array.element_type.bits // 8
    pitch = ix.constant(BLOCK)
    scope.call(f"hlo_transpose_tile_{width}", source, pitch, target, pitch, pitch, pitch)


def fill(array: Array, start: Expr, is_diagonal: Expr | None, scope: Scope) -> None:
    """Write zeros to a block, or minus the identity if it is on the diagonal."""
    zero = Constant(array.element_type, 0.0)
    with scope.loop(BLOCK) as row, scope.loop(BLOCK, "lanes") as column:
        value: Expr = zero
        if is_diagonal is not None:
            # What is solved is kept negated (runtime/hlo_factor.h).
            one = Constant(array.element_type, -1.0)
            is_here = apply("and", is_diagonal, compare("EQ", row, column), type=PRED)
            value = apply("select", is_here, one, zero, type=array.element_type)
        scope.store(array, ix.add(start, ix.multiply(row, BLOCK), column), value)


def compare(direction: str, lhs: Expr, rhs: Expr) -> Expr:
    """Return a comparison of indices."""
    return apply(f"compare-{direction}", lhs, rhs, type=PRED)


def negated(value: Expr) -> Expr:
    """Return minus a value."""
    return apply("negate", value)
