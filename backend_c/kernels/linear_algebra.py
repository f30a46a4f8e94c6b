"""Write fft, cholesky and triangular-solve: loops around the runtime's routines.

The routines are in runtime/hlo_fft.h, hlo_cholesky.h and hlo_triangular.h.
"""

from __future__ import annotations

import math

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.bounded_elements import identity_beyond, zero_beyond
from backend_c.ir.element import Element, Writer, widened, zero
from backend_c.ir.loop_ir import Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.factor_panels import System
from backend_c.kernels.parts.factorisation import cholesky_and_substitution as factorisation
from backend_c.kernels.parts.factorisation.block_exact_cholesky import ExactBlockCholesky
from backend_c.kernels.parts.factorisation.cholesky_and_substitution import ROUTINES, in_memory
from backend_c.kernels.parts.factorisation.exact_triangular import exact_triangular_solve
from backend_c.kernels.parts.factorisation.fast_cholesky import fast_cholesky
from backend_c.kernels.parts.factorisation.fast_triangular import fast_triangular_solve
from backend_c.kernels.parts.fourier.block_columns import BlockColumns
from backend_c.kernels.parts.fourier.fast_transforms import FastTransform, has_fast_transform
from backend_c.kernels.parts.fourier.fourier import Columns, Emit, Read
from backend_c.kernels.parts.fourier.fourier_plan import axes_in_order
from hlo.errors import Unsupported
from hlo.types import F32, F64, PRED, S32, ElementType

__all__ = ["cholesky", "fft", "triangular_solve"]

_Index = tuple[Expr, ...]


def fft(
    operand: Element, *, fft_type: str, fft_length: tuple[int, ...], write: Writer, block: Scope
) -> None:
    """result = the discrete Fourier transform of the operand over its last dimensions.

    The last dimension first, but for IRFFT, which has it last; divided by the number of elements
    (IFFT, IRFFT) and rounded at the very end; in ``fast`` numerics in the type of the result.
    """
    dims, result = operand.shape.dims, write.shapes[0]
    if operand.sizes:
        write.sizes(0, (*operand.sizes[:-1], ix.constant(result.dims[-1])))
    if 0 in result.dims:
        return
    if 0 in dims or 0 in fft_length:
        zero = Constant(result.element_type, 0.0)
        with nest.flat(block, result.dims) as index:
            write(index, (zero,))
        return
    is_fast = block.settings.is_fast and has_fast_transform(result, fft_length, block)
    kind = FastTransform if is_fast else _Transform
    kind(operand, fft_type, fft_length, write, block).emit()


class _Transform:
    """Write one exact fft in f64: transforms along one dimension after the other."""

    def __init__(
        self,
        operand: Element,
        fft_type: str,
        fft_length: tuple[int, ...],
        write: Writer,
        scope: Scope,
    ) -> None:
        self._operand, self._write, self._scope = operand, write, scope
        self._type, self._length = fft_type, fft_length
        self._is_inverse = fft_type in ("IFFT", "IRFFT")
        self._axes = axes_in_order(fft_type, fft_length, operand.shape.rank)

    def emit(self) -> None:
        """Write all transforms; all but the last leave their results in f64 workspace.

        Workspace has the operand's dims (RFFT: the result's).
        """
        result = self._write.shapes[0].dims
        between = result if self._type == "RFFT" else self._operand.shape.dims
        *axes, last = self._axes
        read: Read = self._operand_at
        if axes:
            array = self._scope.scratch(F64, 2 * math.prod(between))
            for axis in axes:
                self._columns(between, axis).emit(read, self._keep(array, between), is_half=False)
                read = self._kept(array, between)
        is_half = self._type == "IRFFT"
        self._columns(result, last).emit(read, self._write_result, is_half=is_half)

    def _columns(self, dims: tuple[int, ...], axis: int) -> Columns | BlockColumns:
        """Return the writer of the transforms along an axis."""
        length = self._length[axis - len(dims)]
        kind = BlockColumns if nest.has_blocks(self._scope) else Columns
        return kind(self._scope, dims, axis, length, self._is_inverse)

    def _operand_at(self, index: _Index) -> tuple[Expr, Expr]:
        """Return the real and imaginary part of an element of the operand, in f64."""
        value = self._operand.at(*index)
        if not value.type.is_complex:
            return widened(value), Constant(F64, 0.0)
        part = _part(value.type)
        real, imag = (widened(apply(name, value, type=part)) for name in ("real", "imag"))
        return real, imag

    def _keep(self, array: Array, dims: tuple[int, ...]) -> Emit:
        """Return a writer of complex numbers to workspace."""

        def keep(index: _Index, real: Expr, imag: Expr) -> None:
            place = ix.multiply(ix.linearize(index, dims), 2)
            self._scope.store(array, place, real)
            self._scope.store(array, ix.add(place, 1), imag)

        return keep

    def _kept(self, array: Array, dims: tuple[int, ...]) -> Read:
        """Return a reader of complex numbers from workspace."""

        def kept(index: _Index) -> tuple[Expr, Expr]:
            place = ix.multiply(ix.linearize(index, dims), 2)
            return self._scope.load(array, place), self._scope.load(array, ix.add(place, 1))

        return kept

    def _write_result(self, index: _Index, real: Expr, imag: Expr) -> None:
        """Write an element of the result: divided, rounded once."""
        element_type = self._write.shapes[0].element_type
        total = Constant(F64, float(math.prod(self._length)))
        parts = [apply("divide", x, total) if self._is_inverse else x for x in (real, imag)]
        if not element_type.is_complex:
            self._write(index, (apply("round", parts[0], type=element_type),))
            return
        rounded = [apply("round", x, type=_part(element_type)) for x in parts]
        self._write(index, (apply("complex", *rounded, type=element_type),))


def _part(element_type: ElementType) -> ElementType:
    """Return the type of a complex type's components."""
    return F32 if element_type.bits == 64 else F64


def cholesky(operand: Element, *, lower: bool = False, write: Writer, block: Scope) -> None:
    """result = L with L L^H = operand (``lower``), or U with U^H U = operand.

    Only that triangle is read; the other one of the result is 0. A matrix without a factor gives
    NaN.
    """
    size = operand.shape.dims[-1]
    count = math.prod(operand.shape.dims[:-2])
    write.sizes(0, operand.sizes)
    if not size * count:
        return
    element_type = operand.shape.element_type
    if block.settings.is_fast:

        def result(index: _Index, value: Expr | None, failed: Expr) -> Expr:
            return _or_nan(value or zero(element_type), failed)

        fast_cholesky(identity_beyond(operand), lower, write, result, block)
        return
    if nest.has_blocks(block):
        whole = identity_beyond(operand)
        ExactBlockCholesky(whole, block, lower=lower, write=write).emit(keeps_other=False)
        return
    array = in_memory(identity_beyond(operand), block)
    with nest.outer(block, (count,), size**3) as (matrix,):
        start = ix.multiply(matrix, size * size)
        if element_type not in ROUTINES:
            # An upper factor is a lower one transposed: both read and store unconjugated.
            def place(row: Expr, column: Expr) -> Expr:
                at = (row, column) if lower else (column, row)
                return ix.add(start, ix.linearize(at, (size, size)))

            def source(row: Expr, column: Expr) -> Expr:
                return block.load(array, place(row, column))

            factorisation.cholesky(source, write.arrays[0], place, size, block)
            return
        function = f"hlo_cholesky_{element_type}"
        target = Pointer(write.arrays[0], start)
        is_lower = Constant(S32, int(lower))
        block.call(function, Pointer(array, start), target, ix.constant(size), is_lower)


def triangular_solve(
    a: Element,
    b: Element,
    *,
    left_side: bool = False,
    lower: bool = False,
    unit_diagonal: bool = False,
    transpose_a: str = "",
    write: Writer,
    block: Scope,
) -> None:
    """result = x with op(a) x = b (``left_side``), or x op(a) = b.

    Every column, or row, of b is solved on its own.
    """
    write.sizes(0, b.sizes)
    if 0 in b.shape.dims:
        return
    system = System(
        left_side,
        lower,
        unit_diagonal,
        is_transposed=transpose_a in ("TRANSPOSE", "ADJOINT"),
        is_conjugate=transpose_a == "ADJOINT",
    )
    right = zero_beyond(b, b.sizes) if b.sizes else b
    # Zeros, not what memory has there: the zeros beside the identity would make NaN of infinities.
    solve = fast_triangular_solve if block.settings.is_fast else exact_triangular_solve
    solve(identity_beyond(a), right, system, write, block)


def potrf(operand: Element, lower: bool, write: Writer, block: Scope) -> None:
    """Write a Cholesky factor and info as LAPACK does; the other triangle is the operand's.

    For fast mode, and for blocks of threads.
    """

    batch = write.shapes[1].dims
    if not operand.shape.elements:  # matrices without columns have a factor
        with nest.flat(block, batch) as index:
            write.some((1,), index, (Constant(S32, 0),))
        return

    def result(index: _Index, value: Expr | None, failed: Expr) -> Expr:
        return operand.at(*index) if value is None else _or_nan(value, failed)

    if block.settings.is_fast:
        info = fast_cholesky(operand, lower, write, result, block)
    else:
        exact = ExactBlockCholesky(operand, block, lower=lower, write=write)
        info = exact.emit(keeps_other=True)
    with nest.flat(block, batch) as index:
        write.some((1,), index, (block.load(info, ix.linearize(index, batch)),))


def _or_nan(value: Expr, failed: Expr) -> Expr:
    """Build a select: the value, or NaN (in both components) if a matrix has no factor."""
    is_factor = apply("compare-EQ", failed, Constant(S32, 0), type=PRED)
    nothing = factorisation.number(value.type, float("nan"))
    return apply("select", is_factor, value, nothing, type=value.type)


def routine_type(operand: Element, opcode: str) -> ElementType:
    """Return the operand's type if the runtime has LAPACK's routine for it; else raise
    Unsupported."""
    element_type = operand.shape.element_type
    if operand.sizes or element_type not in ROUTINES:
        raise Unsupported(f"{opcode} of {operand.shape} in C: f32 and f64 of static sizes are")
    return element_type
