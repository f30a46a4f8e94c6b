"""The inner kernel of contractions: every place of a tile is the exact dot, rounded once."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from c_driver import BUILDS, Driver

_PROTOTYPES = """
int32_t tile_f32(const double *lhs, const float *rhs, const double *lhs_squares,
                 const double *rhs_squares, const int32_t *lhs_units, const int32_t *rhs_units,
                 int64_t k, double *totals, float *results);
int32_t tile_bf16(const double *lhs, const float *rhs, const double *lhs_squares,
                  const double *rhs_squares, const int32_t *lhs_units, const int32_t *rhs_units,
                  int64_t k, double *totals, float *results);
int32_t unit(float x);
double exact(const double *lhs, const float *rhs, int64_t k);
"""

_SOURCE = """
#include "hlo_tile_vector.h"
#include "hlo_tile.h"
PROTOTYPES
#define TILE(name) \\
    int32_t tile_##name(const double *lhs, const float *rhs, const double *lhs_squares, \\
                        const double *rhs_squares, const int32_t *lhs_units, \\
                        const int32_t *rhs_units, int64_t k, double *totals, float *results) { \\
        int32_t finite; \\
        hlo_tile(lhs, rhs, k, totals); \\
        hlo_tile_round_##name(totals, lhs, rhs, lhs_squares, rhs_squares, lhs_units, rhs_units, \\
                              k, results, &finite); \\
        return finite; \\
    }
TILE(f32)
TILE(bf16)
int32_t unit(float x) { return hlo_unit_f32(x); }
double exact(const double *lhs, const float *rhs, int64_t k) { return hlo_tile_exact(lhs, rhs, k); }
"""
_ROWS, _COLUMNS = 8, 16
_PRECISION = {np.float32: 24, ml_dtypes.bfloat16: 8}


@pytest.fixture(scope="module", params=BUILDS)
def c(request: pytest.FixtureRequest) -> Driver:
    return Driver(_SOURCE, _PROTOTYPES, request.param)


def _tile(c: Driver, name: str, lhs: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, bool]:
    """The product of lhs[8, k] and rhs[k, 16]."""
    panel, other = lhs.T.astype(np.float64).copy(), rhs.astype(np.float32).copy()
    units = [
        np.array([min([c.call("unit", float(x)) for x in row] or [1000]) for row in side], np.int32)
        for side in (lhs, rhs.T)
    ]
    squares = [(side.astype(np.float64) ** 2).sum(1) for side in (lhs, rhs.T)]
    totals, results = np.empty((_ROWS, _COLUMNS)), np.empty((_ROWS, _COLUMNS), np.float32)
    finite = c.call(f"tile_{name}", panel, other, *squares, *units, len(rhs), totals, results)
    return results, bool(finite)


def _nearest(exact: Fraction, dtype: Any) -> float:
    """Rounded to the precision of ``dtype``, a tie to even; within its normal range."""
    if exact == 0:
        return 0.0
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > magnitude
    unit = Fraction(2) ** (exponent - _PRECISION[dtype] + 1)
    return float(round(exact / unit) * unit)


def _cases() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(5)
    lhs, rhs = rng.standard_normal((_ROWS, 203)), rng.standard_normal((203, _COLUMNS))
    cancelling = np.concatenate([lhs, -lhs], 1), np.concatenate([rhs, rhs])
    nearly = cancelling[0].copy()
    nearly[:, -1] *= 1 + 2.0**-20
    small = np.rint(3 * lhs), np.rint(3 * rhs)
    ties = np.ones((_ROWS, 2)), np.array([[1.0], [2.0**-24]]).repeat(_COLUMNS, 1)
    above = np.ones((_ROWS, 3)), np.array([[1.0], [2.0**-24], [2.0**-90]]).repeat(_COLUMNS, 1)
    return {
        "normal": (lhs, rhs),
        "wide": (lhs * 2.0 ** rng.integers(-40, 40, lhs.shape), rhs),
        "cancelling": cancelling,
        "nearly cancelling": (nearly, cancelling[1]),
        "integers": small,
        "ties": ties,
        "above ties": above,
        "empty": (np.zeros((_ROWS, 0)), np.zeros((0, _COLUMNS))),
        "one-hot": (np.eye(_ROWS, 50), rng.standard_normal((50, _COLUMNS))),
    }


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", _cases())
@pytest.mark.parametrize("name", ["f32", "bf16"])
def test_every_place_is_exact(c: Driver, name: str, case: str) -> None:
    dtype = np.float32 if name == "f32" else ml_dtypes.bfloat16
    lhs, rhs = (factor.astype(dtype).astype(np.float32) for factor in _cases()[case])
    results, finite = _tile(c, name, lhs, rhs)
    assert finite
    for row in range(_ROWS):
        for column in range(_COLUMNS):
            factors = zip(lhs[row].tolist(), rhs[:, column].tolist(), strict=True)
            exact = sum((Fraction(x) * Fraction(y) for x, y in factors), Fraction(0))
            result = results[row, column]
            assert result == _nearest(exact, dtype)
            assert result != 0 or not np.signbit(result)


def test_what_is_not_finite_is_told(c: Driver) -> None:
    lhs, rhs = np.ones((_ROWS, 5), np.float32), np.ones((5, _COLUMNS), np.float32)
    lhs[3, 2] = np.inf
    results, finite = _tile(c, "f32", lhs, rhs)
    assert not finite
    assert (np.delete(results, 3, 0) == 5).all()


def test_overflow_is_infinite(c: Driver) -> None:
    lhs = np.full((_ROWS, 2), 3e38, np.float32)
    results, finite = _tile(c, "f32", lhs, np.ones((2, _COLUMNS), np.float32))
    assert finite
    assert (results == np.inf).all()


def test_unit_is_the_largest_power_of_two_that_divides(c: Driver) -> None:
    for x, unit in ((1.0, 0), (3.0, 0), (-12.0, 2), (0.75, -2), (2.0**-149, -149), (2.0**100, 100)):
        assert c.call("unit", x) == unit
    assert c.call("unit", 0.0) > 300
