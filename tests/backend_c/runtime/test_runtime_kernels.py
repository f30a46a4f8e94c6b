"""Transforms, factors and random bits of the runtime against their definitions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from c_driver import BUILDS, Driver

_PROTOTYPES = """
void fft(double *values, double *scratch, const double *cosines, const double *sines,
         int64_t n, int64_t lanes, int inverse);
int32_t potrf_f32(float *matrix, int64_t n, int64_t row, int64_t column);
int32_t potrf_f64(double *matrix, int64_t n, int64_t row, int64_t column);
void cholesky_f32(const float *matrix, float *factor, int64_t n, int lower);
void cholesky_f64(const double *matrix, double *factor, int64_t n, int lower);
void philox(uint64_t key, uint64_t low, uint64_t high, int64_t n, uint32_t *words);
void philox_wide(uint64_t key, uint64_t low, uint64_t high, int64_t n, uint64_t *words);
void threefry(uint64_t key, uint64_t counter, int64_t n, uint64_t *words);
"""

_SOURCE = """
#include "hlo_cholesky.h"
#include "hlo_fft.h"
#include "hlo_random.h"
PROTOTYPES
void fft(double *values, double *scratch, const double *cosines, const double *sines,
         int64_t n, int64_t lanes, int inverse) {
    hlo_fft(values, scratch, cosines, sines, n, lanes, inverse);
}
int32_t potrf_f32(float *matrix, int64_t n, int64_t row, int64_t column) {
    return hlo_potrf_f32(matrix, n, row, column);
}
int32_t potrf_f64(double *matrix, int64_t n, int64_t row, int64_t column) {
    return hlo_potrf_f64(matrix, n, row, column);
}
void cholesky_f32(const float *matrix, float *factor, int64_t n, int lower) {
    hlo_cholesky_f32(matrix, factor, n, lower);
}
void cholesky_f64(const double *matrix, double *factor, int64_t n, int lower) {
    hlo_cholesky_f64(matrix, factor, n, lower);
}
void philox(uint64_t key, uint64_t low, uint64_t high, int64_t n, uint32_t *words) {
    for (int64_t i = 0; i < n; ++i) words[i] = hlo_philox_u32(key, low, high, (uint64_t)i);
}
void philox_wide(uint64_t key, uint64_t low, uint64_t high, int64_t n, uint64_t *words) {
    for (int64_t i = 0; i < n; ++i) words[i] = hlo_philox_u64(key, low, high, (uint64_t)i);
}
void threefry(uint64_t key, uint64_t counter, int64_t n, uint64_t *words) {
    for (int64_t i = 0; i < n; ++i) words[i] = hlo_threefry(key, counter + (uint64_t)i);
}
"""


@pytest.fixture(scope="module", params=BUILDS)
def c(request: pytest.FixtureRequest) -> Driver:
    return Driver(_SOURCE, _PROTOTYPES, request.param)


# ---- Fourier transforms ----


def _transform(x: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """The definition, on pairs (re, im): x[n, 2], roots[n, 2]."""
    n = len(x)
    if n == 1:
        return x
    p = next(f for f in range(2, n + 1) if n % f == 0)
    m = n // p
    parts = [_transform(x[r::p], roots[::p]) for r in range(p)]
    made = np.empty_like(x)
    for k in range(m):
        for q in range(p):
            total = parts[0][k].copy()
            for r in range(1, p):
                (a, b), (cosine, sine) = parts[r][k], roots[r * (k + q * m) % n]
                total += (a * cosine - b * sine, a * sine + b * cosine)
            made[k + q * m] = total
    return made


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 8, 12, 15, 16, 30, 49, 97, 128, 360])
@pytest.mark.parametrize("inverse", [False, True])
def test_fft(c: Driver, n: int, inverse: bool) -> None:
    lanes = 3
    x = np.random.default_rng(n).standard_normal((n, lanes, 2))
    angles = 2 * np.pi * np.arange(n) / n
    cosines, sines = np.cos(angles), np.sin(angles)
    values = x.copy()
    c.call("fft", values, np.empty_like(x), cosines, sines, n, lanes, int(inverse))
    roots = np.stack([cosines, sines if inverse else -sines], -1)
    for lane in range(lanes):
        assert (values[:, lane] == _transform(x[:, lane], roots)).all()
    signal = x[..., 0] + 1j * x[..., 1]
    expected = np.fft.ifft(signal, axis=0) * n if inverse else np.fft.fft(signal, axis=0)
    np.testing.assert_allclose(values[..., 0] + 1j * values[..., 1], expected, atol=1e-9)


# ---- Cholesky ----


def _rounded_dot(x: np.ndarray, y: np.ndarray) -> Any:
    exact = sum((Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), y.tolist())), Fraction(0))
    if x.dtype == np.float64:
        return np.float64(exact)
    numerator = np.longdouble(exact.numerator) / np.longdouble(exact.denominator)
    nearest = np.float32(float(exact))
    assert abs(float(numerator) - float(exact)) < 1e-9  # and no tie of f32 in these matrices
    return nearest


def _factor(matrix: np.ndarray) -> np.ndarray:
    n = len(matrix)
    lower = np.zeros_like(matrix)
    for j in range(n):
        sums = [_rounded_dot(lower[i, :j], lower[j, :j]) for i in range(j, n)]
        column = matrix[j:, j] - np.array(sums, matrix.dtype)
        lower[j, j] = np.sqrt(column[0])
        lower[j + 1 :, j] = column[1:] / lower[j, j]
    return lower


def _positive(n: int, dtype: Any) -> np.ndarray:
    x = np.random.default_rng(n).standard_normal((n, n + 2))
    return (x @ x.T).astype(dtype)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 23])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cholesky(c: Driver, n: int, dtype: Any) -> None:
    f = "f32" if dtype is np.float32 else "f64"
    matrix = _positive(n, dtype)
    expected = _factor(matrix)
    for lower in (1, 0):
        read = np.tril(matrix) if lower else np.triu(matrix)
        read += np.full_like(matrix, 7) - (np.tril if lower else np.triu)(np.full_like(matrix, 7))
        factor = np.empty_like(matrix)
        c.call(f"cholesky_{f}", read, factor, n, lower)
        assert (factor == (expected if lower else expected.T)).all()


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_matrices_without_a_factor(c: Driver, bad: float) -> None:
    matrix = _positive(4, np.float64)
    matrix[2, 2] = bad
    factor = np.empty_like(matrix)
    c.call("cholesky_f64", matrix, factor, 4, 1)
    assert np.isnan(factor).all()
    in_place = matrix.copy()
    assert c.call("potrf_f64", in_place, 4, 4, 1) == 3
    assert np.isnan(in_place[np.tril_indices(4)]).all()
    above = np.triu_indices(4, 1)
    assert (in_place[above] == matrix[above]).all()


# ---- random bits ----


def test_philox_vectors(c: Driver) -> None:
    """Values that XLA's rng-bit-generator gives."""
    words = np.empty(5, np.uint32)
    c.call("philox", 1, 2, 3, 5, words)
    assert words.tolist() == [4031113034, 1366700262, 495645701, 3051723414, 89414891]
    c.call("philox", 1, 2, 1, 5, words)
    assert words.tolist() == [2100602697, 2847456232, 2074354647, 800269529, 1828267006]


def test_philox_words_are_of_successive_counters(c: Driver) -> None:
    """The 128-bit counter carries; 64-bit values are pairs of words."""
    high, low = 5, 2**64 - 1
    words, wide, after = np.empty(8, np.uint32), np.empty(4, np.uint64), np.empty(4, np.uint32)
    c.call("philox", 9, low, high, 8, words)
    c.call("philox", 9, 0, high + 1, 4, after)
    c.call("philox_wide", 9, low, high, 4, wide)
    assert (words[4:] == after).all()
    assert (wide == words.view("<u8")).all()


def test_threefry_vectors(c: Driver) -> None:
    words = np.empty(3, np.uint64)
    c.call("threefry", 1, 2, 3, words)
    assert words.view(np.uint32)[:5].tolist() == [
        *(43444564, 2150618427, 3979645651, 3745730563, 1672743891)
    ]
