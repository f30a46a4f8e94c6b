"""Functions of complex numbers: against mpmath, on the edges of C's annex G, and exact ones."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hlo.elementary import COMPLEX_FUNCTIONS, evaluate_complex
from hlo.errors import Unsupported
from hlo.types import F32, F64, ElementType
from interp.exact.elementary_machine import NumpyMachine, evaluated_complex
from interp.exact.rounding import rounded_fraction
from interp.ops import elementwise
from selftest.prove import complex_samples

INF, NAN, PI = math.inf, math.nan, math.pi


@pytest.mark.parametrize("name", COMPLEX_FUNCTIONS)
def test_samples(name: str) -> None:
    function, _, whole = name.rpartition("_")
    part = F32 if whole == "c64" else F64
    given = complex_samples.columns(function, 18, np.random.default_rng(1), part)
    found = complex_samples.rounding_errors(function, part, given)
    assert found.judged > 10
    assert found.worst <= complex_samples.LIMIT, found


@pytest.mark.parametrize("name", ["exponential_minus_one", "logistic"])
def test_where_the_real_part_vanishes(name: str) -> None:
    """The real part keeps 106 bits less those that cancel; beside the magnitude it is exact."""
    given = complex_samples.on_the_curve(name, 40, np.random.default_rng(1))
    assert complex_samples.rounding_errors(name, F64, given).of_magnitude <= complex_samples.LIMIT


# Function, operand, result: C11 annex G.6, for what is above the real axis.
_EDGES: tuple[tuple[str, complex, complex], ...] = (
    ("acos", complex(0, NAN), complex(PI / 2, NAN)),
    ("acos", complex(2, INF), complex(PI / 2, -INF)),
    ("acos", complex(-INF, 1), complex(PI, -INF)),
    ("acos", complex(INF, 1), complex(0, -INF)),
    ("acos", complex(-INF, INF), complex(3 * PI / 4, -INF)),
    ("acos", complex(INF, INF), complex(PI / 4, -INF)),
    ("acos", complex(INF, NAN), complex(NAN, -INF)),
    ("acos", complex(NAN, INF), complex(NAN, -INF)),
    ("acosh", complex(0, 0), complex(0, PI / 2)),
    ("acosh", complex(2, INF), complex(INF, PI / 2)),
    ("acosh", complex(-INF, 1), complex(INF, PI)),
    ("acosh", complex(-INF, INF), complex(INF, 3 * PI / 4)),
    ("acosh", complex(NAN, INF), complex(INF, NAN)),
    ("asinh", complex(0, 0), complex(0, 0)),
    ("asinh", complex(2, INF), complex(INF, PI / 2)),
    ("asinh", complex(INF, 2), complex(INF, 0)),
    ("asinh", complex(INF, INF), complex(INF, PI / 4)),
    ("asinh", complex(NAN, 0), complex(NAN, 0)),
    ("asinh", complex(INF, NAN), complex(INF, NAN)),
    ("atanh", complex(0, NAN), complex(0, NAN)),
    ("atanh", complex(1, 0), complex(INF, 0)),
    ("atanh", complex(2, INF), complex(0, PI / 2)),
    ("atanh", complex(INF, 2), complex(0, PI / 2)),
    ("atanh", complex(INF, NAN), complex(0, NAN)),
    ("atanh", complex(NAN, INF), complex(0, PI / 2)),
    ("cosh", complex(0, INF), complex(NAN, 0)),
    ("cosh", complex(INF, 0), complex(INF, 0)),
    ("cosh", complex(INF, 2), complex(-INF, INF)),
    ("cosh", complex(INF, INF), complex(INF, NAN)),
    ("cosh", complex(NAN, 0), complex(NAN, 0)),
    ("sinh", complex(0, INF), complex(0, NAN)),
    ("sinh", complex(INF, 2), complex(-INF, INF)),
    ("sinh", complex(NAN, 0), complex(NAN, 0)),
    ("tanh", complex(INF, 2), complex(1, -0.0)),
    ("tanh", complex(INF, INF), complex(1, 0)),
    ("tanh", complex(NAN, 0), complex(NAN, 0)),
    ("exponential", complex(-INF, 2), complex(-0.0, 0)),
    ("exponential", complex(INF, 2), complex(-INF, INF)),
    ("exponential", complex(-INF, INF), complex(0, 0)),
    ("exponential", complex(INF, NAN), complex(INF, NAN)),
    ("exponential", complex(NAN, 0), complex(NAN, 0)),
    ("exponential_minus_one", complex(-INF, INF), complex(-1, 0)),
    ("exponential_minus_one", complex(-0.0, 0), complex(-0.0, 0)),
    ("logistic", complex(INF, 2), complex(1, 0)),
    ("logistic", complex(NAN, 0), complex(NAN, 0)),
    ("log", complex(-0.0, 0), complex(-INF, PI)),
    ("log", complex(0, 0), complex(-INF, 0)),
    ("log", complex(1, INF), complex(INF, PI / 2)),
    ("log", complex(-INF, INF), complex(INF, 3 * PI / 4)),
    ("log", complex(INF, NAN), complex(INF, NAN)),
    ("log_plus_one", complex(-1, 0), complex(-INF, 0)),
    ("log_plus_one", complex(-0.0, 0), complex(-0.0, 0)),
    ("sqrt", complex(-0.0, 0), complex(0, 0)),
    ("sqrt", complex(NAN, INF), complex(INF, INF)),
    ("sqrt", complex(-INF, 1), complex(0, INF)),
    ("sqrt", complex(INF, 1), complex(INF, 0)),
    ("sqrt", complex(-INF, NAN), complex(NAN, INF)),
    ("sqrt", complex(INF, NAN), complex(INF, NAN)),
    ("rsqrt", complex(0, 0), complex(INF, NAN)),
    ("rsqrt", complex(-INF, 1), complex(0, -0.0)),
    ("abs", complex(NAN, INF), complex(INF, 0)),
)  # fmt: skip


def _same(one: float, other: float) -> bool:
    """Whether two numbers are equal and have the same sign, or both are NaN."""
    return math.isnan(one) and math.isnan(other) or (
        one == other and math.copysign(1, one) == math.copysign(1, other)
    )  # fmt: skip


@pytest.mark.parametrize("name, operand, expected", _EDGES)
@pytest.mark.parametrize("below", [False, True])
def test_edges(name: str, operand: complex, expected: complex, below: bool) -> None:
    """Below the real axis, the conjugates."""
    sign = -1.0 if below and not math.isnan(operand.imag) else 1.0  # a NaN has no side
    parts = np.array([operand.real]), np.array([sign * operand.imag])
    got = [float(part[0]) for part in evaluated_complex(f"{name}_c128", *parts)]
    assert _same(got[0], expected.real), got
    assert len(got) == 1 or _same(got[1], sign * expected.imag), got


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("dividend, divisor, expected", [
    (complex(1, 2), complex(0, 0), complex(INF, INF)),
    (complex(1, -2), complex(-0.0, 0), complex(-INF, INF)),
    (complex(0, 0), complex(0, 0), complex(NAN, NAN)),
    (complex(INF, NAN), complex(1, 1), complex(INF, -INF)),
    (complex(1, 1), complex(-INF, NAN), complex(-0.0, -0.0)),
    (complex(INF, 1), complex(INF, 1), complex(NAN, NAN)),
    (complex(NAN, 1), complex(1, 1), complex(NAN, NAN)),
])  # fmt: skip
def test_quotients(dtype: Any, dividend: complex, divisor: complex, expected: complex) -> None:
    """C11 annex G.5.1."""
    with np.errstate(all="ignore"):
        got = elementwise.divide(np.array([dividend], dtype), np.array([divisor], dtype))[0]
    assert _same(float(got.real), expected.real) and _same(float(got.imag), expected.imag), got


@pytest.mark.parametrize("part, dtype", [(F32, np.complex64), (F64, np.complex128)])
@pytest.mark.parametrize("exponent", [2, 3, -1])
def test_powers_of_integers(part: ElementType, dtype: Any, exponent: int) -> None:
    """Powers of complex integers are correctly rounded: many are exact, or the middle of two
    numbers, or have a component that is 0."""
    limit = 2 ** (13 if part is F32 else 27)
    z = np.random.default_rng(2).integers(-limit, limit, (100, 2))
    z[:50] %= 30
    z[:20, 1] = z[:20, 0]
    z[(z == 0).all(1)] = 1
    base = (z[:, 0] + 1j * z[:, 1]).astype(dtype)
    got = elementwise.power(base, np.full(100, exponent, dtype))
    for (a, b), result in zip(z.tolist(), got, strict=True):
        re, im = Fraction(1), Fraction(0)
        for _ in range(abs(exponent)):
            re, im = re * a - im * b, re * b + im * a
        if exponent < 0:
            re, im = re / (a * a + b * b), -im / (a * a + b * b)
        assert result.real == rounded_fraction(re, part), (a, b)
        assert result.imag == rounded_fraction(im, part), (a, b)


def test_quotients_that_are_the_middle_of_two_numbers() -> None:
    rng = np.random.default_rng(3)
    parts = rng.integers(-(2**53), 2**53, (2, 300)).astype(float)
    divisors = rng.integers(1, 6, (2, 300)).astype(float)
    lhs, rhs = elementwise.complex_(*parts), elementwise.complex_(*divisors)
    for i, got in enumerate(elementwise.divide(lhs, rhs)):
        a, b, c, d = (Fraction(float(x)) for x in (*parts[:, i], *divisors[:, i]))
        assert got.real == rounded_fraction((a * c + b * d) / (c * c + d * d), F64)
        assert got.imag == rounded_fraction((b * c - a * d) / (c * c + d * d), F64)


def test_powers_of_zero_one_and_to_zero() -> None:
    z = np.array([0, 0, 0, 0, NAN, 1, INF, INF, INF], complex)
    w = np.array([0, 2, -1, 1j, 0, NAN, 2, -2, 1j], complex)
    got = elementwise.power(z, w)
    expected = [1, 0, NAN, NAN, 1, 1, INF, 0, NAN]
    assert np.array_equal(got.real, expected, equal_nan=True)


def test_an_unknown_function() -> None:
    with pytest.raises(Unsupported, match="gamma_c64 has no sequence"):
        evaluate_complex("gamma_c64", NumpyMachine(), np.ones(1), np.ones(1))
