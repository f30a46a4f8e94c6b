"""Enclose Fourier transforms, Cholesky and LU factors, and triangular systems.

Bounds are those of error analysis, which hold for every usual algorithm, not of one. Numbers in
parentheses are theorems of Higham, "Accuracy and Stability of Numerical Algorithms", 2002.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hlo.types import ElementType
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.boolean_masks import is_always
from interp.envelope.enclosure import (
    Enclosure,
    all_certain,
    anything,
    between,
    finfo,
    point,
    rounded_down,
    rounded_up,
    where,
)
from interp.exact.conversion import type_of
from interp.ops import linear_algebra as exact
from interp.ops.elementwise import complex_

__all__ = ["cholesky", "fft", "triangular_solve"]

# A transform of N points errs by at most so many units per level of log2 N, of its norm (24.1), and
# this leaves room for the detours of lengths that are not smooth.
_FFT_UNITS = 8.0
# Below the normal range a product errs by up to half of the least number, or by the least normal
# one where it is flushed, whatever its size. A result depends on fewer than two values of all
# levels per point, each of a few products; a length that is not smooth is a convolution, three
# transforms of more than twice the length.
_FFT_LOST = 32.0
_CONTRACTING = 0.5  # what is added up without end is at most twice the first term
_LEAST_UNIT = 2.0**-48  # the rules themselves compute in float64
_TINY = 2.0**-1074  # the least number of float64
_SMALL = 0.1  # a first-order bound holds for perturbations below this


def fft(operand: Enclosure, *, fft_type: str, fft_length: tuple[int, ...]) -> Enclosure:
    """Enclose a Fourier transform: the error of each element is bounded relative to the norm of all
    elements of its transform."""
    given: dict[str, Any] = {"fft_type": fft_type, "fft_length": fft_length}
    value = exact.fft(operand.low, **given)
    if budget.current() is budget.EXACT and all_certain(operand):
        return point(value)
    points = math.prod(fft_length)
    axes = tuple(range(-len(fft_length), 0))
    middle, radius = _middle(operand)
    norm = _norm(middle, axes)
    spread = 2 * radius.sum(axis=axes, keepdims=True)
    units = _FFT_UNITS * (math.log2(max(points, 1)) + 2) * _unit(value)
    least = _least(type_of(value.real))
    lost = _FFT_LOST * points * least
    error = 2 * units * math.sqrt(points) * (norm + spread) + spread + lost
    if fft_type in ("IFFT", "IRFFT"):
        error = error / max(points, 1) + least
    total = 2 * (np.abs(middle) + radius).sum(axis=axes, keepdims=True)
    error = np.where(total < _most(value) / 2, error, np.inf)  # in between it may overflow
    wide = exact.fft(middle.astype(np.float64 if fft_type == "RFFT" else np.complex128), **given)
    return _around(wide, np.broadcast_to(error, value.shape), value.dtype)


def _norm(values: Array, axes: tuple[int, ...]) -> Array:
    """Compute the Euclidean norm without underflow of the squares."""
    magnitudes = np.abs(values)
    largest = magnitudes.max(axis=axes, keepdims=True, initial=0.0)
    scaled = magnitudes / np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * np.sqrt((scaled**2).sum(axis=axes, keepdims=True)))


def cholesky(operand: Enclosure, *, lower: bool = False) -> Enclosure:
    """Enclose Cholesky factors of usual algorithms, blocked inversion included."""
    value = exact.cholesky(operand.low, lower=lower)
    if budget.current() is budget.EXACT and all_certain(operand):
        return point(value)
    return factored(operand, 4 * operand.shape[-1] + 8, lower=lower)


def factored(operand: Enclosure, units: int, *, lower: bool) -> Enclosure:
    """Enclose Cholesky factors with a backward error of ``units`` roundings of ``|L| |L*|`` (10.3),
    by the perturbation bound of J.-g. Sun ("Componentwise perturbation bounds for some matrix
    decompositions", 1992); anything where a matrix is nearly singular, or not positive definite."""
    middle, radius = _middle(operand)
    factor = exact.cholesky(middle, lower=lower)
    if not lower:
        factor = _transposed(factor).conj()
    magnitudes, inverse = np.abs(factor), np.abs(_inverse(factor))
    tiny = operand.shape[-1] * _least(type_of(operand.low.real))  # of products that underflow
    backward = units * _unit(operand.low) * (magnitudes @ _transposed(magnitudes)) + tiny
    change = inverse @ (backward + _symmetric(radius, lower)) @ _transposed(inverse)
    known = np.asarray((change.sum(axis=-1) < _CONTRACTING).all(axis=-1))[..., None, None]
    change = np.where(known, change, 0.0)
    # The sum of change + change² + …, which converges since its row sums are below 1: so the bound
    # holds to all orders, not just the first. As they are below a half, the system has a condition
    # number of at most 3, and 1.01 covers the roundings of float64.
    all_orders = np.linalg.solve(np.eye(operand.shape[-1]) - change, change)
    error = np.where(known, 1.01 * magnitudes @ np.tril(all_orders), np.inf)
    if not lower:
        factor, error = _transposed(factor).conj(), _transposed(error)
    dtype = operand.low.dtype
    triangle = np.tril(error) if lower else np.triu(error)
    return _around(factor, np.where(known, triangle, np.inf), dtype)


def eliminated(operand: Enclosure) -> tuple[Enclosure, Array, Array]:
    """Enclose LU factors of ``P A`` by partial pivoting, in one matrix: U, and L below its diagonal
    of ones. The backward error is some roundings of ``|L| |U|`` (9.3), its effect bounded by J.-G.
    Sun (as in :func:`factored`). Return the factors, the pivots from 0, and a mask of the matrices
    whose pivots are certain: anything is legal where a matrix is nearly singular, or a candidate
    nearly as large as the pivot."""
    middle, radius = _middle(operand)
    factors, order, pivots = _pivoted(middle)
    size = operand.shape[-1]
    lower, upper = np.tril(factors, -1) + np.eye(size), np.triu(factors)
    units, tiny = (4 * size + 8) * _unit(operand.low), size * _least(type_of(operand.low.real))
    around = np.take_along_axis(radius, order[..., None], -2)
    product = np.abs(lower) @ np.abs(upper)
    backward = units * product + around + tiny
    change = np.abs(_inverse(lower)) @ backward @ np.abs(_inverse(upper))
    known = np.asarray((change.sum(axis=-1) < _CONTRACTING).all(axis=-1))
    known = known & (product < _most(operand.low) / 2).all(axis=(-2, -1))
    change = np.where(known[..., None, None], change, 0.0)
    all_orders = 1.01 * np.linalg.solve(np.eye(size) - change, change)
    error = np.tril(np.abs(lower) @ np.tril(all_orders, -1), -1)
    relative = np.diagonal(all_orders, axis1=-2, axis2=-1) + 8 * _unit(operand.low)
    known = known & _is_largest(np.tril(lower, -1), upper, error, relative)
    error = error + np.triu(np.triu(all_orders) @ np.abs(upper))
    error = np.where(known[..., None, None], error, np.inf)
    return _around(factors, error, operand.low.dtype), pivots, known


def _pivoted(matrices: Array) -> tuple[Array, Array, Array]:
    """Factor with partial pivoting by LAPACK's magnitude; return the packed factors, the
    permutation of the rows, and the row that each was exchanged with."""
    factors, size = matrices.copy(), matrices.shape[-1]
    order = np.broadcast_to(np.arange(size), matrices.shape[:-1]).copy()
    pivots = order.copy()
    for k in range(size):
        best = k + _magnitude(factors[..., k:, k]).argmax(axis=-1)
        pivots[..., k] = best
        rows = np.broadcast_to(np.arange(size), order.shape).copy()
        rows[..., k] = best
        np.put_along_axis(rows, best[..., None], k, -1)
        factors = np.take_along_axis(factors, rows[..., None], -2)
        order = np.take_along_axis(order, rows, -1)
        factors[..., k + 1 :, k] /= factors[..., k, k, None]
        factors[..., k + 1 :, k + 1 :] -= (
            factors[..., k + 1 :, k, None] * factors[..., None, k, k + 1 :]
        )
    return factors, order, pivots


def _magnitude(values: Array) -> Array:
    """Compute the magnitude by which LAPACK chooses pivots: |re| + |im|."""
    return np.asarray(np.abs(values.real) + np.abs(values.imag))


def _is_largest(lower: Array, upper: Array, error: Array, relative: Array) -> Array:
    """Test whether every pivot exceeds the candidates below it, by LAPACK's magnitude, with an
    absolute error ``error`` of the multipliers and a relative one of the pivots."""
    pivots = np.diagonal(upper, axis1=-2, axis2=-1)[..., None, :]
    slack = error + 2 * relative[..., None, :]
    candidates = _magnitude(lower * pivots) + math.sqrt(2) * slack * np.abs(pivots)
    is_below = np.tri(upper.shape[-1], k=-1, dtype=np.bool_)
    return np.asarray(((candidates < _magnitude(pivots)) | ~is_below).all(axis=(-2, -1)))


def indefinite(operand: Enclosure, *, lower: bool) -> Array:
    """Test for matrices for which every algorithm fails. A computed factor is that of a positive
    definite matrix within the bound (10.3), and the distance to the nearest one is at least the
    magnitude of the least, negative eigenvalue."""
    middle, radius = _middle(operand)
    matrix = _symmetric(middle, lower)
    known = np.asarray(np.isfinite(matrix).all(axis=(-2, -1)))[..., None, None]
    matrix, around = np.where(known, matrix, 0), np.where(known, _symmetric(radius, lower), 0)
    least = np.linalg.eigvalsh(matrix).min(axis=-1, initial=0.0)
    largest = np.abs(matrix).max(axis=(-2, -1), initial=0.0) + around.max(axis=(-2, -1), initial=0)
    size = operand.shape[-1]
    units = (4 * size + 8) * _unit(operand.low)
    nearest = size * (units / (1 - units) * largest + around.max(axis=(-2, -1), initial=0.0))
    return np.asarray((units < _SMALL) & (least < -2 * nearest))


def _symmetric(matrix: Array, lower: bool) -> Array:
    """Complete a Hermitian matrix from the triangle that is stored."""
    if lower:
        return np.asarray(np.tril(matrix) + _transposed(np.tril(matrix, -1)).conj())
    return np.asarray(np.triu(matrix) + _transposed(np.triu(matrix, 1)).conj())


def triangular_solve(
    a: Enclosure,
    b: Enclosure,
    *,
    left_side: bool = False,
    lower: bool = False,
    unit_diagonal: bool = False,
    transpose_a: str = "",
) -> Enclosure:
    """Enclose solutions by substitution (8.2) and by blocked inversion (14.2), which is less
    accurate."""
    given: dict[str, Any] = {"left_side": left_side, "lower": lower}
    given |= {"unit_diagonal": unit_diagonal, "transpose_a": transpose_a}
    value = exact.triangular_solve(a.low, b.low, **given)
    if budget.current() is budget.EXACT and all_certain(a) and all_certain(b):
        return point(value)
    (matrix, matrix_radius), (right, right_radius) = (
        (_operated(x, lower, unit_diagonal, transpose_a) for x in _middle(a)),
        _middle(b),
    )
    if unit_diagonal:
        matrix_radius = np.tril(matrix_radius, -1) + np.triu(matrix_radius, 1)
    if not left_side:
        matrix, matrix_radius = _transposed(matrix), _transposed(matrix_radius)
        right, right_radius = _transposed(right), _transposed(right_radius)
    lost = a.shape[-1] * _least(type_of(value.real))  # of sums of products that underflow
    right_radius = right_radius + lost
    exponents = _exponents_of_diagonals(matrix)
    matrix, right = (_divided(x, exponents) for x in (matrix, np.abs(right)))
    matrix_radius, right_radius = (
        _divided(x, exponents) + _TINY for x in (matrix_radius, right_radius)
    )
    inverse = _inverse_bound(matrix)
    most = inverse @ right
    units = 4 * (a.shape[-1] + 2) * _unit(value)
    magnitudes = np.abs(matrix) @ most
    # Of an inverted block underflow takes elements before they meet the right sides.
    of_inverse = np.minimum(inverse, _divided(np.asarray(lost), -_transposed(exponents))) @ right
    right_radius = right_radius + np.abs(matrix) @ of_inverse
    error = inverse @ (units * magnitudes + matrix_radius @ most + right_radius)
    # An unknown or a product may overflow, which goes into the rows that are solved later.
    largest = np.maximum(_divided(magnitudes, -exponents), most)
    fits = (largest < _most(value) / 2).all(axis=-2, keepdims=True)
    error = np.where(fits, error, np.inf)
    change = (inverse @ (units * np.abs(matrix) + matrix_radius)).sum(axis=-1)
    change = change.max(axis=-1, initial=0.0)[..., None, None]  # of the inverse, to first order
    error = np.where(change < _CONTRACTING, error / (1 - np.minimum(change, _CONTRACTING)), np.inf)
    wide = exact.triangular_solve(*(_middle(x)[0] for x in (a, b)), **given)
    return _around(wide, error if left_side else _transposed(error), value.dtype)


def _exponents_of_diagonals(matrix: Array) -> Array:
    """Return the binary exponents of the diagonal elements, one for each row. Rows are divided by
    these powers of two, as the inverse of a matrix of large numbers underflows."""
    diagonals = np.abs(np.diagonal(matrix, axis1=-2, axis2=-1))[..., None]
    return np.where(np.isfinite(diagonals), np.frexp(diagonals)[1], 0)


def _divided(values: Array, exponents: Array) -> Array:
    """Divide by powers of two, exactly but for what becomes subnormal, which loses less than
    ``_TINY``."""
    if values.dtype.kind != "c":
        return np.asarray(np.ldexp(values, -exponents))
    return complex_(*(np.ldexp(part, -exponents) for part in (values.real, values.imag)))


def _inverse_bound(matrix: Array) -> Array:
    """Bound the magnitudes of the inverse of a triangular matrix, with what underflow takes of
    them."""
    inverse, size = np.abs(_inverse(matrix)), matrix.shape[-1]
    return np.asarray(inverse + inverse @ (np.abs(matrix) @ np.full((size, size), size * _TINY)))


def _operated(matrix: Array, lower: bool, unit_diagonal: bool, transpose_a: str) -> Array:
    """Take the stored triangle, with its unit diagonal, transposed or adjoint as asked."""
    triangle = np.tril(matrix) if lower else np.triu(matrix)
    if unit_diagonal:
        diagonal = np.arange(matrix.shape[-1])
        triangle[..., diagonal, diagonal] = 1
    if transpose_a == "ADJOINT":
        return _transposed(triangle).conj()
    return _transposed(triangle) if transpose_a == "TRANSPOSE" else triangle


def _transposed(matrices: Array) -> Array:
    return matrices.swapaxes(-1, -2)


def _inverse(matrices: Array) -> Array:
    """Invert triangular matrices; NaN where one is singular. A lower triangle is reversed to an
    upper one, in which NumPy's elimination meets no zero pivot."""
    size = matrices.shape[-1]
    diagonal = np.arange(size)
    usable = np.isfinite(matrices).all(axis=(-1, -2)) & (
        matrices[..., diagonal, diagonal] != 0
    ).all(axis=-1)
    safe = np.where(usable[..., None, None], matrices, np.eye(size))
    if np.tril(safe, -1).any():
        inverse = np.linalg.inv(safe[..., ::-1, ::-1])[..., ::-1, ::-1]
    else:
        inverse = np.linalg.inv(safe)
    return np.where(usable[..., None, None], inverse, np.nan)


def _unit(value: Array) -> float:
    """Return u, half an ulp of 1 in the element type: whatever a peer computes in, intermediate
    values are stored in that type."""
    return float(max(2.0 ** -(finfo(type_of(value.real).numpy).nmant + 1), _LEAST_UNIT))


def _most(value: Array) -> float:
    return float(finfo(type_of(value.real).numpy).max)


def _middle(operand: Enclosure) -> tuple[Array, Array]:
    """Return midpoints, in float64 or complex128, and radii; NaN where an end is not finite. Radii
    include flushing of subnormals."""
    wide = np.complex128 if operand.element_type.is_complex else np.float64
    low, high = operand.low.astype(wide), operand.high.astype(wide)
    middle = low if operand.is_point else low + (high - low) / 2
    finite = np.isfinite(low) & np.isfinite(high) & ~operand.nan
    radius = np.where(finite, np.abs(high - middle), np.nan)
    if budget.current().flushes:
        part = type_of(operand.low.real)
        tiny = float(finfo(part.numpy).smallest_normal)
        radius = radius + np.where(np.abs(middle) < 2 * tiny, np.abs(middle), 0.0)
        if operand.element_type.is_complex:
            # Either component of a large complex number may be subnormal: its magnitude hides that.
            radius = radius + 2 * tiny * (middle != 0)
    return np.where(finite, middle, np.nan), radius


def _around(value: Array, error: Array, dtype: np.dtype[Any]) -> Enclosure:
    """Enclose values with an absolute error; anything where either is not finite, or may
    overflow."""
    element_type = type_of(np.empty(0, dtype))
    part = type_of(np.empty(0, dtype).real)
    info = finfo(part.numpy)
    known = np.isfinite(value) & (np.abs(value) + error < float(info.max) / 2)
    error = np.where(known, error + _least(part), 0.0)
    value = np.where(known, value, 0)
    low, high = np.empty(value.shape, dtype), np.empty(value.shape, dtype)
    if not element_type.is_complex:
        low, high = rounded_down(value - error, part), rounded_up(value + error, part)
    else:
        for name in ("real", "imag"):
            setattr(low, name, rounded_down(getattr(value, name) - error, part))
            setattr(high, name, rounded_up(getattr(value, name) + error, part))
    result = between(low, high, np.asarray(False))
    return (
        result if is_always(known) else where(known, result, anything(result.shape, element_type))
    )


def _least(part: ElementType) -> float:
    info = finfo(part.numpy)
    return float(info.smallest_normal if budget.current().flushes else info.smallest_subnormal)
