"""Transforms and factors: near what NumPy says, and bit for bit what their definitions say."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from fraction_sums import exact_sum, same_bits
from hypothesis import given
from hypothesis import strategies as st

from hlo.elementary import roots_of_unity
from hlo.types import F32, F64
from hlo.values import Array
from interp.ops.linear_algebra import cholesky, fft, triangular_solve


def relative_error(one: Array, other: Array) -> float:
    assert one.shape == other.shape
    return float(np.abs(one - other).max() / np.abs(other).max())


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 12, 13, 30, 64, 97, 360])
def test_transforms_of_every_length(length: int) -> None:
    random = np.random.default_rng(length)
    values = random.standard_normal((3, length)) + 1j * random.standard_normal((3, length))
    given_length, limit = {"fft_length": (length,)}, 1e-14
    assert relative_error(fft(values, fft_type="FFT", **given_length), np.fft.fft(values)) < limit
    assert relative_error(fft(values, fft_type="IFFT", **given_length), np.fft.ifft(values)) < limit
    half = fft(values.real, fft_type="RFFT", **given_length)
    assert relative_error(half, np.fft.rfft(values.real)) < limit
    back = fft(half, fft_type="IRFFT", **given_length)
    assert relative_error(back, values.real) < limit


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transforms_over_several_dimensions(dtype: type[np.generic]) -> None:
    values = np.random.default_rng(0).standard_normal((2, 6, 10, 7)).astype(dtype)
    limit = 1e-6 if dtype is np.float32 else 1e-14
    half = fft(values, fft_type="RFFT", fft_length=(6, 10, 7))
    assert half.dtype == (np.complex64 if dtype is np.float32 else np.complex128)
    assert relative_error(half, np.fft.rfftn(values, axes=(1, 2, 3))) < limit
    back = fft(half, fft_type="IRFFT", fft_length=(6, 10, 7))
    assert back.dtype == dtype
    assert relative_error(back, values) < limit
    noise = half + 1j * np.where(np.arange(4) == 0, 1, 0).astype(dtype)
    one = fft(half, fft_type="IRFFT", fft_length=(7,))
    assert same_bits(fft(noise, fft_type="IRFFT", fft_length=(7,)), one)  # of DC: ignored


def by_definition(x: list[complex], inverse: bool) -> list[complex]:
    """The recursion as the language of this project states it, one number at a time."""
    n = len(x)
    if n == 1:
        return x
    p = next(p for p in range(2, n + 1) if n % p == 0)
    m = n // p
    y = [by_definition(x[r::p], inverse) for r in range(p)]
    cosines, sines = (part.tolist() for part in roots_of_unity(n))
    result = []
    for k in range(n):
        total = y[0][k % m]
        for r in range(1, p):
            j = r * k % n
            a, b = cosines[j], sines[j] if inverse else -sines[j]
            c, d = y[r][k % m].real, y[r][k % m].imag
            total = complex(total.real + (a * c - b * d), total.imag + (a * d + b * c))
        result.append(total)
    return result


@given(length=st.integers(1, 30), inverse=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_a_transform_by_its_definition(length: int, inverse: bool, seed: int) -> None:
    parts = np.random.default_rng(seed).standard_normal((2, length)).astype(np.float32)
    values = (parts[0] + 1j * parts[1]).astype(np.complex64)
    expected = np.array(by_definition(values.astype(np.complex128).tolist(), inverse))
    if inverse:
        expected = (expected.real / length) + 1j * (expected.imag / length)
    result = fft(values, fft_type="IFFT" if inverse else "FFT", fft_length=(length,))
    assert np.array_equal(result, expected.astype(np.complex64))


def test_transforms_of_nothing() -> None:
    empty = np.zeros((0, 4), np.complex64)
    assert fft(empty, fft_type="FFT", fft_length=(4,)).shape == (0, 4)
    assert fft(empty.T, fft_type="FFT", fft_length=(0,)).shape == (4, 0)
    assert fft(np.zeros((2, 0), np.float32), fft_type="RFFT", fft_length=(0,)).shape == (2, 1)


@pytest.mark.parametrize("n", [*range(1, 40), 97, 360, 1000, 1024])
def test_roots_of_unity_are_rounded_once(n: int) -> None:
    cosines, sines = roots_of_unity(n)
    with mpmath.workprec(200):
        angles = [mpmath.mpf(2 * j) / n for j in range(n)]
        expected = [[float(f(x)) + 0.0 for x in angles] for f in (mpmath.cospi, mpmath.sinpi)]
    assert same_bits(cosines, np.array(expected[0]))
    assert same_bits(sines, np.array(expected[1]))


def positive_definite(size: int, dtype: Any, batch: int = 3) -> Array:
    random = np.random.default_rng(size)
    values = random.standard_normal((batch, size, size, 2))
    complex_ = np.dtype(dtype).kind == "c"
    matrix = values[..., 0] + 1j * values[..., 1] if complex_ else values[..., 0]
    squared = matrix @ matrix.conj().swapaxes(1, 2)
    return (squared + squared.conj().swapaxes(1, 2) + np.eye(size)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_cholesky_factors(dtype: type[np.generic]) -> None:
    matrix = positive_definite(7, dtype)
    lower = cholesky(matrix, lower=True)
    assert lower.dtype == dtype
    limit = 1e-5 if np.dtype(dtype) in (np.float32, np.complex64) else 1e-14
    assert relative_error(lower, np.linalg.cholesky(matrix)) < limit
    assert np.array_equal(cholesky(matrix), lower.conj().swapaxes(1, 2))
    garbage = np.where(np.tri(7) == 1, matrix, np.full_like(matrix, np.nan))
    assert np.array_equal(cholesky(garbage, lower=True), lower)  # reads only one triangle


def test_a_factor_by_its_definition() -> None:
    (matrix,) = positive_definite(6, np.float32, batch=1)
    factor = np.zeros_like(matrix)
    for j in range(6):
        for i in range(j, 6):
            products = factor[i, :j].astype(np.float64) * factor[j, :j]  # exact
            rest = matrix[i, j] - exact_sum([0.0, *products], F32)
            factor[i, j] = np.sqrt(rest) if i == j else rest / factor[j, j]
    assert same_bits(cholesky(matrix, lower=True), factor)


def test_a_matrix_that_has_no_factor_is_nan_alone() -> None:
    matrix = positive_definite(4, np.float32)
    matrix[1, 2, 2] = -1
    result = cholesky(matrix, lower=True)
    assert np.isnan(result[1]).all()
    assert same_bits(result[[0, 2]], cholesky(matrix[[0, 2]], lower=True))
    assert np.isnan(cholesky(np.full((2, 2), np.nan, np.float32))).all()
    assert np.isnan(cholesky(np.zeros((1, 1), np.float32))).all()
    assert cholesky(np.zeros((3, 0, 0), np.float32)).shape == (3, 0, 0)


@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit_diagonal", [True, False])
@pytest.mark.parametrize("transpose_a", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT", ""])
def test_triangular_systems(
    left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: str
) -> None:
    random = np.random.default_rng(1)
    triangle = random.standard_normal((2, 5, 5)) + 4 * np.eye(5)
    other = np.triu(np.ones((5, 5)), 1) if lower else np.tril(np.ones((5, 5)), -1)
    right = random.standard_normal((2, 5, 3) if left_side else (2, 3, 5))
    x = triangular_solve(
        np.where(other == 1, np.nan, triangle),  # reads only one triangle
        right,
        left_side=left_side,
        lower=lower,
        unit_diagonal=unit_diagonal,
        transpose_a=transpose_a,
    )
    matrix = np.where(other == 1, 0, triangle)
    if unit_diagonal:
        matrix = matrix * (1 - np.eye(5)) + np.eye(5)
    if transpose_a in ("TRANSPOSE", "ADJOINT"):
        matrix = matrix.swapaxes(1, 2)
    assert np.allclose(matrix @ x if left_side else x @ matrix, right)


def test_a_triangular_system_by_its_definition() -> None:
    random = np.random.default_rng(2)
    for dtype, element_type in ((np.float32, F32), (np.float64, F64)):
        a = (random.integers(-9, 9, (4, 4)) + 20 * np.eye(4)).astype(dtype)
        b = random.standard_normal(4).astype(dtype)
        x: list[Any] = []
        for i in range(4):
            if element_type is F32:
                products = [float(p) * float(q) for p, q in zip(a[i], x, strict=False)]
                x.append((b[i] - exact_sum([0.0, *products], F32)) / a[i, i])
        result = triangular_solve(a, b[:, None], left_side=True, lower=True)
        assert element_type is F64 or same_bits(result[:, 0], np.array(x))
        assert np.allclose(np.tril(a) @ result[:, 0], b)
