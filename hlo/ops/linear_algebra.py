"""Infer the shapes of fft, cholesky and triangular-solve.

Sources: ``InferFftShape``, ``InferCholeskyShape`` and ``InferTriangularSolveShape`` of XLA's
``shape_inference.cc``.
"""

from __future__ import annotations

from hlo.ops.constraints import array, arrays, require
from hlo.ops.element_types import require_element_type
from hlo.types import C64, C128, F32, F64, PARTS, ArrayShape, bounded

__all__ = ["cholesky", "fft", "triangular_solve"]

_WHOLES = {F32: C64, F64: C128}


def fft(operand: ArrayShape, *, fft_type: str, fft_length: tuple[int, ...]) -> ArrayShape:
    """C1: a known type, on c64/c128, or f32/f64 for RFFT; C2: 1 to 3 lengths, no more than
    dimensions; C3: that are the operand's (for IRFFT the last is length / 2 + 1)."""
    source = array("C1", operand)
    known = fft_type in ("FFT", "IFFT", "RFFT", "IRFFT")
    require("C1", known, f"fft_type={fft_type}: one of FFT, IFFT, RFFT, IRFFT")
    require_element_type("C1", "fft", source)
    wanted = _WHOLES if fft_type == "RFFT" else PARTS
    require("C1", source.element_type in wanted, f"{fft_type} of {source}")
    rank = len(fft_length)
    require("C2", 1 <= rank <= min(3, source.rank), f"{rank} lengths for {source}")
    # XLA keeps a size of 0 in place of 0 // 2 + 1.
    last = fft_length[-1] // 2 + 1 if fft_length[-1] else 0
    expected = (*fft_length[:-1], last if fft_type == "IRFFT" else fft_length[-1])
    same = source.dims[source.rank - rank :] == expected
    text = "{" + ",".join(map(str, fft_length)) + "}"
    require("C3", same, f"fft_length={text} does not fit {source}")
    dims = (*source.dims[:-1], last if fft_type == "RFFT" else fft_length[-1])
    real = {"RFFT": _WHOLES, "IRFFT": PARTS}.get(fft_type, {})
    return bounded(real.get(source.element_type, source.element_type), dims, source.dynamic)


def _square(label: str, opcode: str, shape: ArrayShape) -> None:
    square = shape.rank >= 2 and shape.dims[-1] == shape.dims[-2]
    require(label, square, f"{shape} is not of square matrices")
    require_element_type(label, opcode, shape)


def cholesky(operand: ArrayShape, *, lower: bool = False) -> ArrayShape:
    """C1: square matrices of floats or complex numbers."""
    source = array("C1", operand)
    _square("C1", "cholesky", source)
    return bounded(source.element_type, source.dims, source.dynamic)


def triangular_solve(
    a: ArrayShape,
    b: ArrayShape,
    *,
    left_side: bool = False,
    lower: bool = False,
    unit_diagonal: bool = False,
    transpose_a: str = "",
) -> ArrayShape:
    """C1: square matrices; C2: right sides of the same type, batch and size; C3: a known
    transposition."""
    matrix, right = arrays("C1", (a, b))
    _square("C1", "triangular-solve", matrix)
    same = matrix.element_type is right.element_type and matrix.rank == right.rank
    same = same and matrix.dims[:-2] == right.dims[:-2]
    same = same and right.dims[-2 if left_side else -1] == matrix.dims[-1]
    require("C2", same, f"{matrix} and {right} do not fit, left_side={str(left_side).lower()}")
    known = transpose_a in ("", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT", "TRANSPOSE_INVALID")
    require("C3", known, f"transpose_a={transpose_a}: NO_TRANSPOSE, TRANSPOSE or ADJOINT")
    return bounded(right.element_type, right.dims, right.dynamic)
