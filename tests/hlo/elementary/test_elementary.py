"""The sequences against mpmath; every f32 is the proofs' business (docs/proofs.md)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given
from hypothesis import strategies as st

from hlo.elementary import FUNCTIONS, evaluate, roots_of_unity
from hlo.elementary.double_double import Pair, add, divide, multiply, to_odd, two_product, two_sum
from hlo.elementary.misrounded import MISROUNDED
from hlo.elementary.pi import pi
from hlo.errors import Unsupported
from hlo.types import BF16, ELEMENT_TYPES, F16, F32, F64, ElementType
from hlo.values import Array
from interp.exact.elementary_machine import NumpyMachine, evaluated
from interp.exact.rounding import rounded_fraction
from selftest.prove import fit, wide
from selftest.prove.__main__ import narrow_mistakes, one_operand_functions
from selftest.prove.c_run import results_of_c
from selftest.prove.truth import true_value

INF, NAN = math.inf, math.nan
NARROW = [name for name in FUNCTIONS if not name.endswith("_f64")]

# function -> results at 0, -0, infinity, -infinity
SPECIAL = {
    "acos": (math.pi / 2, math.pi / 2, NAN, NAN),
    "acosh": (NAN, NAN, INF, NAN),
    "asin": (0.0, -0.0, NAN, NAN),
    "asinh": (0.0, -0.0, INF, -INF),
    "atan": (0.0, -0.0, math.pi / 2, -math.pi / 2),
    "atanh": (0.0, -0.0, NAN, NAN),
    "cbrt": (0.0, -0.0, INF, -INF),
    "cosh": (1.0, 1.0, INF, INF),
    "cosine": (1.0, 1.0, NAN, NAN),
    "erf": (0.0, -0.0, 1.0, -1.0),
    "exponential": (1.0, 1.0, INF, 0.0),
    "exponential_minus_one": (0.0, -0.0, INF, -1.0),
    "log": (-INF, -INF, INF, NAN),
    "log_plus_one": (0.0, -0.0, INF, NAN),
    "logistic": (0.5, 0.5, 1.0, 0.0),
    "rsqrt": (INF, -INF, 0.0, NAN),
    "sine": (0.0, -0.0, NAN, NAN),
    "sinh": (0.0, -0.0, INF, -INF),
    "sqrt": (0.0, -0.0, INF, NAN),
    "tan": (0.0, -0.0, NAN, NAN),
    "tanh": (0.0, -0.0, 1.0, -1.0),
}
EXTREMES = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1.5, -1.5]


def assert_same(got: Array, expected: Array, message: str) -> None:
    """Equal bits, any NaN being any other."""
    same = (got == expected) & (np.signbit(got) == np.signbit(expected))
    assert np.all(same | (np.isnan(got) & np.isnan(expected))), f"{message}: {got} {expected}"


@pytest.mark.parametrize("variant", ["", "_f64"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str, variant: str) -> None:
    got = evaluated(name + variant, np.array([0.0, -0.0, INF, -INF, NAN]))
    expected = np.array([*SPECIAL[name], NAN])
    kind = np.float64 if variant else np.float32
    with np.errstate(over="ignore"):
        assert_same(got.astype(kind), expected.astype(kind), name)


def _c_power(x: float, y: float) -> float:
    """C's pow; Python's raises where it overflows, is invalid, or a pole."""
    if x == 1 or y == 0:
        return 1.0
    odd = y % 2 == 1
    try:
        return math.pow(x, y)
    except OverflowError:
        return -INF if x < 0 and odd else INF
    except ValueError:
        return NAN if x else math.copysign(INF, x) if odd else INF


@pytest.mark.parametrize("variant", ["", "_f64"])
@pytest.mark.parametrize("name, definition", [("power", _c_power), ("atan2", math.atan2)])
def test_special_pairs(name: str, definition: Any, variant: str) -> None:
    large = [2.0**53, 1 - 2.0**53, 1e300, -1e300, 1e-300] if variant else [2.0**24, -1e38, 1e-40]
    values = EXTREMES + [float(np.float32(value)) for value in large if not variant]
    values += large if variant else []
    pairs = np.array([(x, y) for x in values for y in values])
    got = evaluated(name + variant, pairs[:, 0], pairs[:, 1])
    expected = np.array([definition(x, y) for x, y in pairs.tolist()])
    kind = np.float64 if variant else np.float32
    with np.errstate(over="ignore"):
        assert_same(got.astype(kind), expected.astype(kind), name)


@pytest.mark.parametrize("name", one_operand_functions())
def test_every_value_of_the_narrow_types(name: str) -> None:
    assert not any(narrow_mistakes(name).values())


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("element_type", [F32, F64], ids=str)
def test_samples(name: str, element_type: ElementType) -> None:
    generator = np.random.default_rng(1)
    assert not wide.misrounded(name, element_type, wide.columns(name, 300, generator))


@pytest.mark.parametrize("name", ["atan2", "power"])
@pytest.mark.parametrize("element_type", [BF16, F16, ELEMENT_TYPES["f8e4m3fn"]], ids=str)
def test_samples_of_pairs(name: str, element_type: ElementType) -> None:
    generator = np.random.default_rng(5)
    assert not wide.misrounded(name, element_type, wide.columns(name, 1000, generator))


@pytest.mark.parametrize("name", MISROUNDED)
def test_the_list_of_misrounded_operands_is_right(name: str) -> None:
    for operand, correct in MISROUNDED[name]:
        truth = true_value(name, operand)
        assert isinstance(truth, Fraction)
        assert float(rounded_fraction(truth, F32)) == correct
        assert np.float32(operand) == operand


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("variant", ["", "_f64"])
def test_generated_c_gives_the_same_bits(variant: str) -> None:
    x = wide.operands(600, np.random.default_rng(2))
    if not variant:
        with np.errstate(over="ignore"):
            x = x.astype(np.float32).astype(np.float64)
    x = np.concatenate([x, np.array(EXTREMES)])
    names = [name for name in FUNCTIONS if name.endswith("_f64") == bool(variant)]
    y = np.random.default_rng(3).permutation(x)
    for name, results in zip(names, results_of_c(names, x, y), strict=True):
        operands = (x, y)[: FUNCTIONS[name].arity]
        assert_same(results, evaluated(name, *operands), name)


def test_the_polynomials_are_those_that_fit_prints() -> None:
    printed = {name: tuple(fit.coefficients(row)[0]) for name, row in fit.FITS.items()}
    for name, in_code in fit.IN_CODE.items():
        assert printed[name] == in_code, name


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 12, 24, 30, 100, 1000])
def test_roots_of_unity(n: int) -> None:
    cosines, sines = roots_of_unity(n)
    assert not np.any(np.signbit(cosines) & (cosines == 0))
    assert not np.any(np.signbit(sines) & (sines == 0))
    _assert_roots(n, range(n), cosines, sines)


def test_roots_of_short_transforms_are_computed_once() -> None:
    for one, again in zip(roots_of_unity(12), roots_of_unity(12), strict=True):
        assert one is again and not one.flags.writeable


@pytest.mark.parametrize("n", [2**18, 3 * 5 * 7 * 11 * 13 * 17, 2**19 - 1])
def test_many_roots_of_unity(n: int) -> None:
    some = np.random.default_rng(4).integers(0, n, 300).tolist()
    _assert_roots(n, some, *roots_of_unity(n))


def _assert_roots(n: int, some: Any, cosines: Array, sines: Array) -> None:
    with mpmath.workprec(200):
        for j in some:
            turn = mpmath.mpf(2 * j) / n
            assert cosines[j] == float(mpmath.cospi(turn)), (n, j)
            assert sines[j] == float(mpmath.sinpi(turn)), (n, j)


def test_pi() -> None:
    with mpmath.workprec(2000):
        value = pi(1300)
        error = mpmath.mpf(value.numerator) / value.denominator - mpmath.pi
        assert abs(error) < mpmath.mpf(2) ** -1300


MODERATE = st.floats(min_value=2.0**-200, max_value=2.0**200).flatmap(
    lambda x: st.sampled_from([x, -x])
)


def _exact(pair: Pair[Any]) -> Fraction:
    return Fraction(float(pair.high)) + Fraction(float(pair.low))


@given(MODERATE, MODERATE)
def test_sums_and_products_are_exact(a: float, b: float) -> None:
    assert _exact(two_sum(a, b)) == Fraction(a) + Fraction(b)
    assert _exact(two_product(a, b)) == Fraction(a) * Fraction(b)


@given(MODERATE, MODERATE, MODERATE, MODERATE)
def test_double_double(a: float, b: float, c: float, d: float) -> None:
    x, y = two_sum(a, b * 2.0**-300), two_sum(c, d * 2.0**-300)
    exact_x, exact_y = _exact(x), _exact(y)
    rows = [(multiply, exact_x * exact_y), (add, exact_x + exact_y), (divide, exact_x / exact_y)]
    for operation, exact in rows:
        assert abs(_exact(operation(x, y)) - exact) <= abs(exact) / 2**101


@given(MODERATE, MODERATE)
def test_to_odd(a: float, b: float) -> None:
    """Rounding to odd gives the exact value, or the neighbour of it with an odd significand."""
    pair = two_sum(a, b)
    arrays = Pair(np.array([pair.high]), np.array([pair.low]))
    result = float(to_odd(arrays, NumpyMachine())[0])
    exact = _exact(pair)
    if Fraction(result) != exact:
        assert np.float64(result).view(np.int64) & 1
        away = INF if exact > Fraction(result) else -INF
        neighbour = Fraction(float(np.nextafter(result, away)))
        assert min(Fraction(result), neighbour) < exact < max(Fraction(result), neighbour)


def test_an_unknown_function() -> None:
    with pytest.raises(Unsupported, match="gamma has no sequence"):
        evaluate("gamma", NumpyMachine(), np.ones(1))
