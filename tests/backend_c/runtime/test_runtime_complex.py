"""Complex arithmetic of the runtime against rational arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from c_driver import BUILDS, Driver

_PROTOTYPES = """
void multiply_c64(int64_t n, float *r, const float *x, const float *y);
void divide_c64(int64_t n, float *r, const float *x, const float *y);
void sign_c64(int64_t n, float *r, const float *x, const float *y);
void abs_c64(int64_t n, float *r, const float *x, const float *y);
void multiply_c128(int64_t n, double *r, const double *x, const double *y);
"""

_SOURCE = """
#include "hlo_complex.h"
#include "hlo_complex_product.h"
PROTOTYPES
#define MAP(name, c, T, expression) \\
    void name(int64_t n, T *r, const T *x, const T *y) { \\
        for (int64_t i = 0; i < n; ++i) { \\
            const hlo_##c lhs = hlo_make_##c(x[2 * i], x[2 * i + 1]); \\
            const hlo_##c rhs = hlo_make_##c(y[2 * i], y[2 * i + 1]); \\
            const hlo_##c made = expression; \\
            (void)rhs; \\
            r[2 * i] = made.re; \\
            r[2 * i + 1] = made.im; \\
        } \\
    }
MAP(multiply_c64, c64, float, hlo_multiply_c64(lhs, rhs))
MAP(divide_c64, c64, float, hlo_divide_c64(lhs, rhs))
MAP(sign_c64, c64, float, hlo_sign_c64(lhs))
MAP(abs_c64, c64, float, hlo_make_c64(hlo_abs_c64(lhs), 0.0f))
MAP(multiply_c128, c128, double, hlo_multiply_c128(lhs, rhs))
"""


@pytest.fixture(scope="module", params=BUILDS)
def c(request: pytest.FixtureRequest) -> Driver:
    return Driver(_SOURCE, _PROTOTYPES, request.param)


def _numbers(dtype: type[np.floating], seed: int) -> np.ndarray:
    """Normal values, some that are equal or small integers, over many exponents; shape [n, 2]."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((600, 2))
    x[100:200] = np.rint(3 * x[100:200])
    x[200:400] *= 2.0 ** rng.integers(-30, 30, (200, 2))
    x[400:450, 1] = x[400:450, 0]
    return x.astype(dtype)


def _mapped(c: Driver, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    made = np.empty_like(x)
    c.call(name, len(x), made, x, y)
    return made


def _pairs(x: np.ndarray, y: np.ndarray) -> Iterator[tuple[Fraction, ...]]:
    for row, other in zip(x.tolist(), y.tolist(), strict=True):
        yield tuple(map(Fraction, (*row, *other)))


def _rounded(exact: Fraction, dtype: type[np.floating]) -> float:
    """The nearest normal number, a tie to even; the result is exact in f64."""
    if exact == 0:
        return 0.0
    precision = 24 if dtype is np.float32 else 53
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > magnitude
    unit = Fraction(2) ** (exponent - precision + 1)
    return float(round(exact / unit) * unit)


@pytest.mark.parametrize("name", ["multiply_c64", "multiply_c128"])
def test_multiply(c: Driver, name: str) -> None:
    dtype = np.float32 if name.endswith("64") else np.float64
    x, y = _numbers(dtype, 1), _numbers(dtype, 2)
    y[:30] = x[:30]
    y[30:60] = x[30:60, ::-1]
    made = _mapped(c, name, x, y)
    for (re, im), (p, q, r, s) in zip(made.tolist(), _pairs(x, y), strict=True):
        assert re == _rounded(p * r - q * s, dtype)
        assert im == _rounded(p * s + q * r, dtype)


def test_divide(c: Driver) -> None:
    x, y = _numbers(np.float32, 3), _numbers(np.float32, 4)
    y[(y == 0).all(1)] = 1
    y[:30] = x[:30]
    made = _mapped(c, "divide_c64", x, y)
    for (re, im), (p, q, r, s) in zip(made.tolist(), _pairs(x, y), strict=True):
        divisor = r * r + s * s
        assert re == _rounded((p * r + q * s) / divisor, np.float32)
        assert im == _rounded((q * r - p * s) / divisor, np.float32)


def test_abs_and_sign(c: Driver) -> None:
    x = _numbers(np.float32, 5)
    magnitudes, signs = _mapped(c, "abs_c64", x, x)[:, 0], _mapped(c, "sign_c64", x, x)
    for (re, im), magnitude, sign in zip(x.tolist(), magnitudes.tolist(), signs.tolist()):
        square = Fraction(re) ** 2 + Fraction(im) ** 2
        shift = 400
        root = Fraction(math.isqrt(int(square * 4**shift)), 2**shift)  # good to 2**-300
        assert magnitude == _rounded(root, np.float32)
        if root:
            assert sign == [_rounded(Fraction(part) / root, np.float32) for part in (re, im)]
        else:
            assert sign == [re, im]


@pytest.mark.parametrize("name", ["multiply_c64", "multiply_c128"])
def test_signs_of_zeros_and_infinities(c: Driver, name: str) -> None:
    """Where nothing rounds, a product is what IEEE 754 makes of the formula."""
    dtype = np.float32 if name.endswith("64") else np.float64
    values = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], dtype)
    x, y = (grid.reshape(-1, 2) for grid in _grids(values))
    made = _mapped(c, name, x, y).astype(np.float64)
    (p, q), (r, s) = x.T.astype(np.float64), y.T.astype(np.float64)
    with np.errstate(invalid="ignore"):
        expected = np.stack([p * r - q * s, p * s + q * r], -1)
    assert np.array_equal(made, expected, equal_nan=True)
    zeros = expected == 0
    assert (np.signbit(made) == np.signbit(expected))[zeros].all()


def _grids(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    grid = np.stack(np.meshgrid(values, values, values, values), -1).reshape(-1, 4)
    return grid[:, :2].copy(), grid[:, 2:].copy()
