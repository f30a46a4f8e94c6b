"""Fourier transforms, Cholesky factors and triangular systems."""

from __future__ import annotations

import numpy as np

from hlo.types import F32, F64, ElementType
from hlo.values import Array
from interp.algorithms.fourier import Parts, hermitian, transformed
from interp.algorithms.triangular import cholesky_factor, triangular_solution
from interp.exact.rounding import rounded

__all__ = ["cholesky", "fft", "triangular_solve"]


@np.errstate(all="ignore")
def fft(operand: Array, *, fft_type: str, fft_length: tuple[int, ...]) -> Array:
    """Transform over the last ``len(fft_length)`` dimensions, the last first (IRFFT: it last); in
    float64 throughout (:mod:`interp.algorithms.fourier`), divided by the number of elements (IFFT,
    IRFFT) and rounded at the very end."""
    last = operand.ndim - 1
    axes = [last - i for i in range(len(fft_length))]
    inverse, halved = fft_type in ("IFFT", "IRFFT"), fft_type in ("RFFT", "IRFFT")
    part = F64 if operand.dtype.itemsize // (1 + (operand.dtype.kind == "c")) == 8 else F32
    dims = list(operand.shape)
    if halved:
        dims[last] = fft_length[-1] // 2 + 1 if fft_type == "RFFT" else fft_length[-1]
    result = np.zeros(dims, _result_type(part, is_real=fft_type == "IRFFT"))
    if not operand.size or not result.size or 0 in fft_length:
        return result
    parts = Parts(operand.real.astype(np.float64), operand.imag.astype(np.float64))
    for axis in axes[1:] if fft_type == "IRFFT" else axes:
        parts = transformed(parts, axis, inverse)
        if fft_type == "RFFT" and axis == last:
            parts = Parts(*(x[..., : dims[last]] for x in parts))
    if fft_type == "IRFFT":
        parts = transformed(hermitian(parts, fft_length[-1]), last, inverse)
    total = float(np.prod(fft_length)) if inverse else 1.0
    if fft_type == "IRFFT":
        return rounded(parts.real / total, part)
    result.real, result.imag = (rounded(x / total, part) for x in parts)
    return result


def _result_type(part: ElementType, is_real: bool) -> type[np.generic]:
    if is_real:
        return np.float64 if part is F64 else np.float32
    return np.complex128 if part is F64 else np.complex64


def cholesky(operand: Array, *, lower: bool = False) -> Array:
    """Return the factor L (or U, its conjugate transpose) of each matrix, read from one
    triangle."""
    return cholesky_factor(operand, lower)


def triangular_solve(
    a: Array,
    b: Array,
    *,
    left_side: bool = False,
    lower: bool = False,
    unit_diagonal: bool = False,
    transpose_a: str = "",
) -> Array:
    """Solve op(a) x = b (``left_side``) or x op(a) = b for x, reading one triangle of a."""
    return triangular_solution(
        a,
        b,
        left_side=left_side,
        lower=lower,
        unit_diagonal=unit_diagonal,
        transpose_a=transpose_a,
    )
