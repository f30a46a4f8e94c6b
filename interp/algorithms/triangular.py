"""Compute Cholesky factors and solve triangular systems, batched: exact products, each step rounded
once.

These define the ops ``cholesky`` and ``triangular-solve``; LAPACK's routines use them, too.
"""

from __future__ import annotations

import math

import numpy as np

from hlo.types import ElementType
from hlo.values import Array
from interp.exact import complex_arithmetic
from interp.exact.conversion import type_of
from interp.exact.dots import dot_exact
from interp.exact.rounding import rounded
from interp.exact.sums import component_type


@np.errstate(all="ignore")
def cholesky_factor(operand: Array, lower: bool) -> Array:
    """Return the factor L (or U, its conjugate transpose) of each matrix, read from one triangle.

    Column j: c = A[j:, j] - L[j:, :j] conj(L[j, :j]), the product exact and rounded once, then the
    difference; L[j, j] = sqrt(c[0]) and L[i, j] = c[i] / L[j, j]. If c[0] is not above 0, the whole
    matrix is NaN. The other triangle of the result is 0. Row j of U is found likewise, from row j.
    """
    element_type, size = type_of(operand), operand.shape[-1]
    part = component_type(element_type) if element_type.is_complex else element_type
    source = operand if lower else operand.swapaxes(-1, -2)
    matrices = source.reshape(math.prod(operand.shape[:-2]), size, size)
    factor = np.zeros(matrices.shape, operand.dtype)
    failed = np.zeros(len(matrices), np.bool_)
    for j in range(size):
        row = factor[:, j, :j, None].conj()
        product = dot_exact(factor[:, j:, :j], row, element_type)[..., 0]
        column = _componentwise(np.subtract, part, matrices[:, j:, j], product)
        pivot = column[:, 0].real.astype(np.float64)
        # Not `pivot <= 0`: NaN fails, too.
        failed |= ~(pivot > 0)
        root = np.where(failed, 1.0, rounded(np.sqrt(pivot), part).astype(np.float64))
        column[failed] = 0
        factor[:, j:, j] = _componentwise(np.divide, part, column, root[:, None])
        factor[:, j, j] = root.astype(part.numpy)
    factor[failed] = complex(np.nan, np.nan) if element_type.is_complex else np.nan
    factor = factor if lower else factor.swapaxes(-1, -2)
    return factor.reshape(operand.shape)


def _adjoint(matrices: Array) -> Array:
    transposed = matrices.swapaxes(-1, -2)
    return transposed.conj() if matrices.dtype.kind == "c" else transposed


def _componentwise(operation: np.ufunc, part: ElementType, one: Array, other: Array) -> Array:
    """Apply an operation to the real and imaginary parts (a real ``other`` to both), in float64 and
    then rounded: for - * / on types up to f32 that equals one rounding."""
    # 53 >= 2 * 24 + 2 bits: rounding to float64 first changes no - * / or sqrt of f32 (Figueroa,
    # "When is double rounding innocuous?", 1995).
    if one.dtype.kind != "c":
        return rounded(operation(one.astype(np.float64), other.astype(np.float64)), part)
    result = np.empty(one.shape, one.dtype)
    others = (other.real, other.imag) if other.dtype.kind == "c" else (other, other)
    result.real = _componentwise(operation, part, one.real, others[0])
    result.imag = _componentwise(operation, part, one.imag, others[1])
    return result


@np.errstate(all="ignore")
def triangular_solution(
    a: Array, b: Array, *, left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: str
) -> Array:
    """Solve op(a) x = b (``left_side``) or x op(a) = b for x, reading one triangle of a.

    Substitution takes the unknowns in the order that needs only known ones: x_i = (b_i - s) / a_ii,
    where the dot product s of the known ones is exact and rounded once; so are the difference and
    the quotient.
    """
    matrix = a
    if transpose_a in ("TRANSPOSE", "ADJOINT"):
        matrix = _adjoint(a) if transpose_a == "ADJOINT" else a.swapaxes(-1, -2)
        lower = not lower
    if not left_side:
        matrix, b, lower = matrix.swapaxes(-1, -2), b.swapaxes(-1, -2), not lower
    if not lower:
        matrix, b = matrix[..., ::-1, ::-1], b[..., ::-1, :]
    size, columns = b.shape[-2:]
    batch = math.prod(b.shape[:-2])
    matrices, right = matrix.reshape(batch, size, size), b.reshape(batch, size, columns)
    x = _substituted(matrices, right, unit_diagonal).reshape(b.shape)
    x = x if lower else x[..., ::-1, :]
    return x if left_side else x.swapaxes(-1, -2)


def _substituted(matrices: Array, right: Array, unit_diagonal: bool) -> Array:
    """Solve lower triangular systems by forward substitution."""
    element_type = type_of(right)
    part = component_type(element_type) if element_type.is_complex else element_type
    x = np.zeros(right.shape, right.dtype)
    for i in range(right.shape[1]):
        product = dot_exact(matrices[:, i : i + 1, :i], x[:, :i], element_type)[:, 0]
        rest = _componentwise(np.subtract, part, right[:, i], product)
        if not unit_diagonal:
            pivot = np.broadcast_to(matrices[:, i, i, None], rest.shape)
            if element_type.is_complex:
                rest = complex_arithmetic.divide(rest, pivot)
            else:
                rest = _componentwise(np.divide, part, rest, pivot)
        x[:, i] = rest
    return x
