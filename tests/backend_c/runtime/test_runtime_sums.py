"""Exact sums against Fractions: every result is the real sum, rounded once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from c_driver import BUILDS, Driver, same

_PROTOTYPES = """
float sum_f32(const float *x, int64_t n);
float sum_bf16(const float *x, int64_t n);
double sum_f64(const double *x, int64_t n);
float dot_f32(const float *x, const float *y, int64_t n);
double dot_f64(const double *x, const double *y, int64_t n);
float merged_f32(const float *x, const float *y, int64_t n);
int decided_f32(const float *x, int64_t n, float *result);
int decided_bf16(const float *x, int64_t n, float *result);
int decided_f64(const double *x, int64_t n, double *result);
float fast_dot_f32(const float *x, const float *y, int64_t step, int64_t n);
double fast_dot_f64(const double *x, const double *y, int64_t step, int64_t n);
"""

_SOURCE = """
#include "hlo_exact_dot.h"
PROTOTYPES
float sum_f32(const float *x, int64_t n) {
    hlo_accumulator sum;
    hlo_accumulator_clear(&sum);
    for (int64_t i = 0; i < n; ++i) hlo_accumulator_add(&sum, (double)x[i]);
    return (float)hlo_accumulator_to_odd(&sum);
}
float sum_bf16(const float *x, int64_t n) {
    hlo_accumulator sum;
    hlo_accumulator_clear(&sum);
    for (int64_t i = 0; i < n; ++i) hlo_accumulator_add(&sum, (double)x[i]);
    return hlo_round_bf16_from_f64(hlo_accumulator_to_odd(&sum));
}
float merged_f32(const float *x, const float *y, int64_t n) {
    hlo_accumulator sum, other;
    hlo_accumulator_clear(&sum);
    hlo_accumulator_clear(&other);
    for (int64_t i = 0; i < n; ++i) hlo_accumulator_add(&sum, (double)x[i]);
    for (int64_t i = 0; i < n; ++i) hlo_accumulator_add(&other, (double)y[i]);
    hlo_accumulator_merge(&sum, &other);
    return (float)hlo_accumulator_to_odd(&sum);
}
double sum_f64(const double *x, int64_t n) {
    hlo_accumulator_f64 sum;
    hlo_accumulator_f64_clear(&sum);
    for (int64_t i = 0; i < n; ++i) hlo_accumulator_f64_add(&sum, x[i]);
    return hlo_accumulator_f64_to_f64(&sum);
}
float dot_f32(const float *x, const float *y, int64_t n) {
    hlo_accumulator sum;
    hlo_accumulator_clear(&sum);
    for (int64_t i = 0; i < n; ++i) hlo_accumulator_add_product(&sum, (double)x[i], (double)y[i]);
    return (float)hlo_accumulator_to_odd(&sum);
}
double dot_f64(const double *x, const double *y, int64_t n) {
    hlo_accumulator_f64 sum;
    hlo_accumulator_f64_clear(&sum);
    for (int64_t i = 0; i < n; ++i) hlo_accumulator_f64_add_product(&sum, x[i], y[i]);
    return hlo_accumulator_f64_to_f64(&sum);
}
int decided_f32(const float *x, int64_t n, float *result) {
    double total = -0.0, magnitude = 0.0;
    for (int64_t i = 0; i < n; ++i) total += (double)x[i], magnitude += hlo_abs_f64((double)x[i]);
    return hlo_sum_decided_f32(total, magnitude, n, result);
}
int decided_bf16(const float *x, int64_t n, float *result) {
    double total = -0.0, magnitude = 0.0;
    for (int64_t i = 0; i < n; ++i) total += (double)x[i], magnitude += hlo_abs_f64((double)x[i]);
    return hlo_sum_decided_bf16(total, magnitude, n, result);
}
int decided_f64(const double *x, int64_t n, double *result) {
    double hi = -0.0, lo = 0.0, magnitude = 0.0;
    for (int64_t i = 0; i < n; ++i) hlo_dd_add(&hi, &lo, x[i]), magnitude += hlo_abs_f64(x[i]);
    return hlo_sum_decided_f64(hi, lo, magnitude, n, result);
}
float fast_dot_f32(const float *x, const float *y, int64_t step, int64_t n) {
    return hlo_exact_dot_f32(x, step, y, 1, n);
}
double fast_dot_f64(const double *x, const double *y, int64_t step, int64_t n) {
    return hlo_exact_dot_f64(x, step, y, 1, n);
}
"""

_FORMATS = {  # precision, exponents of the smallest subnormal and of the largest number
    np.float32: (24, -149, 127),
    np.float64: (53, -1074, 1023),
    ml_dtypes.bfloat16: (8, -133, 127),
}


def _rounded(exact: Fraction, dtype: Any) -> Any:
    """The nearest float, a tie to the even one."""
    precision, lowest, highest = _FORMATS[dtype]
    magnitude = abs(exact)
    if magnitude == 0:
        return dtype(0)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > magnitude
    unit = max(exponent - precision + 1, lowest)
    significand = round(magnitude / Fraction(2) ** unit)  # Python rounds ties to even
    sign = -1 if exact < 0 else 1
    if Fraction(significand) * Fraction(2) ** unit >= Fraction(2) ** (highest + 1):
        return dtype(sign * math.inf)
    return dtype(sign * math.ldexp(significand, unit))


@pytest.fixture(scope="module", params=BUILDS)
def c(request: pytest.FixtureRequest) -> Driver:
    return Driver(_SOURCE, _PROTOTYPES, request.param)


def _vectors(dtype: Any, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of any bits, of like sizes, of wide ranges, near the ends, and that cancel."""
    rng = np.random.default_rng(seed)
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    scale = 1 if dtype is np.float32 else 8
    smallest = np.finfo(dtype).smallest_subnormal
    for number in range(400):
        n = int(rng.integers(200, 400)) if number % 40 == 0 else int(rng.integers(1, 20))
        made = []
        for _ in range(2):
            random = rng.integers(0, 2 ** (8 * bits.itemsize), n, np.uint64).astype(bits)
            values = random.view(dtype)
            if number % 5:
                spread = (1, 10, 60, 120)[number % 4] * scale
                normal = rng.standard_normal(n).astype(dtype)
                values = np.ldexp(normal, rng.integers(-spread, spread, n, np.int32))
            if number % 7 == 0:
                values = (smallest * rng.integers(-9, 9, n)).astype(dtype)
            made.append(np.where(np.isfinite(values), values, dtype(0)).astype(dtype))
        x, y = made
        if number % 3 == 0 and n > 2:
            half = n // 2
            x[half : 2 * half], y[half : 2 * half] = -x[:half], y[:half]
        yield x, y


def _sum(x: np.ndarray) -> Fraction:
    return sum(map(Fraction, x.tolist()), Fraction(0))


def _dot(x: np.ndarray, y: np.ndarray) -> Fraction:
    return sum((Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), y.tolist())), Fraction(0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_accumulators(c: Driver, dtype: Any) -> None:
    f = "f32" if dtype is np.float32 else "f64"
    for x, y in _vectors(dtype, 1):
        assert c.call(f"sum_{f}", x, x.size) == _rounded(_sum(x), dtype)
        assert c.call(f"dot_{f}", x, y, x.size) == _rounded(_dot(x, y), dtype)
        if f == "f32":
            assert c.call("sum_bf16", x, x.size) == _rounded(_sum(x), ml_dtypes.bfloat16)
            expected = _rounded(_sum(x) + _sum(y), dtype)
            assert c.call("merged_f32", x, y, x.size) == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fast_dots(c: Driver, dtype: Any) -> None:
    f = "f32" if dtype is np.float32 else "f64"
    for x, y in _vectors(dtype, 2):
        spaced = np.repeat(x, 3)
        assert c.call(f"fast_dot_{f}", spaced, y, 3, x.size) == _rounded(_dot(x, y), dtype)


@pytest.mark.parametrize("name", ["f32", "bf16", "f64"])
def test_what_is_decided_is_right(c: Driver, name: str) -> None:
    dtype: Any = np.float64 if name == "f64" else np.float32
    target = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f64": np.float64}[name]
    decided = 0
    for x, _ in _vectors(dtype, 3):
        result = np.zeros(1, dtype)
        if c.call(f"decided_{name}", x, x.size, result):
            assert result[0] == _rounded(_sum(x), target)
            decided += 1
    assert decided > 200  # of 400, many of which cancel


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_ties_are_not_decided_wrongly(c: Driver, name: str) -> None:
    """A tie and its neighbours: the bound must leave open what f64 cannot see."""
    dtype: Any = np.float64 if name == "f64" else np.float32
    half = dtype(2) ** (-24 if name == "f32" else -53)
    tiny = dtype(2) ** (-100 if name == "f32" else -300)
    for extra in (-tiny, dtype(0), tiny):
        x = np.array([1, half, extra], dtype)
        result = np.zeros(1, dtype)
        expected = _rounded(_sum(x), dtype)
        assert c.call(f"sum_{name}", x, 3) == expected
        if c.call(f"decided_{name}", x, 3, result):
            assert result[0] == expected


_SPECIAL = [
    ([], 0.0),
    ([-0.0], -0.0),
    ([-0.0, -0.0], -0.0),
    ([-0.0, 0.0], 0.0),
    ([1.0, -1.0], 0.0),
    ([np.inf, 1.0], np.inf),
    ([-np.inf, 1.0], -np.inf),
    ([np.inf, -np.inf], np.nan),
    ([np.nan, 1.0], np.nan),
    ([3e38, 3e38], np.inf),
    ([3e38, 3e38, -3e38], 3e38),
    ([-3e38, -3e38], -np.inf),
]


@pytest.mark.parametrize(("addends", "expected"), _SPECIAL)
@pytest.mark.parametrize("name", ["f32", "f64"])
def test_zeros_infinities_and_overflow(
    c: Driver, addends: list[float], expected: float, name: str
) -> None:
    dtype: Any = np.float64 if name == "f64" else np.float32
    scale = 1e-38 * 1e308 / 1.7 if name == "f64" else 1.0
    x = np.array([v if abs(v) < 2 else v * scale for v in addends], dtype)
    wanted = np.array([expected if abs(expected) < 2 else expected * scale], dtype)
    got = np.array([c.call(f"sum_{name}", x, x.size)], dtype)
    assert same(got, wanted).all()
    result = np.zeros(1, dtype)
    if addends and c.call(f"decided_{name}", x, x.size, result):
        assert same(result, wanted).all()


def test_a_million_addends(c: Driver) -> None:
    """Carries are taken in time, and the bound decides a benign sum."""
    x = np.full(1_000_000, np.float32(0.1))
    expected = _rounded(Fraction(float(np.float32(0.1))) * 1_000_000, np.float32)
    result = np.zeros(1, np.float32)
    assert c.call("sum_f32", x, x.size) == expected
    assert c.call("decided_f32", x, x.size, result) == 1
    assert result[0] == expected
