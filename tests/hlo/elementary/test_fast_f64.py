"""The fast sequences of f64 stay below one unit in the last place of the exact functions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given
from hypothesis import strategies as st

import backend_c
import hlo
from hlo.elementary.fast import BOUNDED_F64, FAST_FUNCTIONS_F64
from hlo.elementary.fast.trigonometric_f64 import NEAR
from hlo.values import Array
from interp.exact.elementary_machine import evaluated
from selftest.prove import fast_f64
from selftest.prove.float_machine import NumpyDoubleMachine, evaluated_fast_f64

_TINY, _LARGEST = 5e-324, 1.7976931348623157e308
_EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, _TINY, -_TINY, _LARGEST, -_LARGEST, 1.0, -1.0]
_BOUNDED = {one.name: one for one in BOUNDED_F64}
# Of all operands: those in sequences for small ones are one name with the exact functions.
_OPERATIONS = {_BOUNDED[name].of if name in _BOUNDED else name for name in FAST_FUNCTIONS_F64}
_HARD = 6381956970095103 * 2.0**797  # next to a multiple of pi/2


def _operands() -> Array:
    """Numbers of every exponent, next to 1 and to multiples of pi/2, and those whose exponential is
    finite."""
    rng = np.random.default_rng(64)
    words = rng.integers(0, 1 << 64, 20_000, np.uint64).view(np.float64)
    near = 1.0 + rng.standard_normal(20_000) * 2.0 ** rng.integers(-60, 1, 20_000)
    small = rng.standard_normal(20_000) * 2.0 ** rng.integers(-60, 1, 20_000)
    moderate = rng.uniform(-750.0, 715.0, 20_000)
    turns = rng.integers(-(2**22), 2**22, 20_000) * (math.pi / 2)
    seams = [math.nextafter(NEAR, math.inf), NEAR, -NEAR, _HARD]
    return np.concatenate([_EDGES, seams, words, near, small, moderate, turns])


def _of(name: str) -> tuple[str, float]:
    """Return the exact function that a sequence stands for, and its largest operand."""
    return (_BOUNDED[name].of, _BOUNDED[name].largest) if name in _BOUNDED else (name, math.inf)


@pytest.mark.parametrize("once", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("name", FAST_FUNCTIONS_F64)
def test_errors_are_below_a_unit_in_the_last_place(name: str, once: bool) -> None:
    """An error below one unit gives one of the two neighbours of the exact result, which the
    correctly rounded result is, too; what is no finite number is the same."""
    function, largest = _of(name)
    x = _operands()
    x = x[~(np.abs(x) > largest)]
    found = evaluated_fast_f64(name, x, once=once)
    with np.errstate(all="ignore"):
        exact = evaluated(f"{function}_f64", x)
    assert np.array_equal(np.isnan(found), np.isnan(exact))
    one, other = (np.where(np.isnan(y), 0.0, y).view(np.int64) for y in (found, exact))
    assert np.all(np.abs(one - other) <= 1), x[np.abs(one - other) > 1][:5]
    assert np.array_equal(
        np.signbit(found) & ~np.isnan(found), np.signbit(exact) & ~np.isnan(exact)
    )


@pytest.mark.parametrize("once", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("name", FAST_FUNCTIONS_F64)
def test_errors_against_mpmath_are_below_a_unit(name: str, once: bool) -> None:
    given_ = fast_f64.operands(name, 150, np.random.default_rng(5))
    assert fast_f64.worst(name, given_, once=once)[0] < 1.0


def test_errors_are_counted_in_units_of_the_exact_result() -> None:
    just_below_one = 1 - Fraction(1, 2**70)
    rows = [
        (1.0 + 2.0**-52, Fraction(1), 1.0),
        (1.0, just_below_one, 2.0**-17),
        (1.0, Fraction(1) - Fraction(1, 2**53), 1.0),
        (0.0, Fraction(1, 2**1074), 1.0),
        (math.inf, Fraction(2) ** 1024 - Fraction(2) ** 971, 1.0),
        (math.nan, math.nan, 0.0),
        (1.0, math.nan, math.inf),
        (math.nan, Fraction(1), math.inf),
    ]
    assert [fast_f64.error(found, truth) for found, truth, _ in rows] == [r[2] for r in rows]


@given(*[st.floats(-1e100, 1e100)] * 3)
def test_operations_of_numpy_are_exact_or_round_once(a: float, b: float, c: float) -> None:
    machine = NumpyDoubleMachine(True)
    values = [np.float64(abs(x) + 1e-100) * np.sign(x) for x in (a, b, c)]
    exact = Fraction(float(values[0])) * Fraction(float(values[1]))
    product = values[0] * values[1]
    error = machine.product_error(np.asarray(values[0]), values[1], np.asarray(product))
    assert Fraction(float(error)) == exact - Fraction(float(product))
    found = machine.fused(np.asarray(values[0]), values[1], values[2])
    assert float(found) == float(exact + Fraction(float(values[2])))


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_generated_c_has_the_bits_of_the_sequences() -> None:
    """Of either of the two, by what the processor has; exact ones beyond the bound of a sequence,
    also for some of a block."""
    x = _operands()
    dims = f"f64[{x.size}]"
    names = sorted(_OPERATIONS)
    lines = [f"  y{n} = {dims} {name.replace('_', '-')}(x)" for n, name in enumerate(names)]
    shapes, results = ", ".join(dims for _ in names), ", ".join(f"y{n}" for n in range(len(names)))
    body = [f"  x = {dims} parameter(0)", *lines, f"  ROOT t = ({shapes}) tuple({results})"]
    text = "\n".join(["HloModule m", "ENTRY e {", *body, "}"])
    for name, found in zip(names, backend_c.compile(hlo.parse(text))(x), strict=True):
        number = ~np.isnan(found)
        words = [_expected(name, x, once).view(np.int64) for once in (True, False)]
        same = [np.array_equal(found.view(np.int64)[number], word[number]) for word in words]
        assert any(same), name
        assert np.array_equal(number, ~np.isnan(words[0].view(np.float64))), name


def _expected(name: str, x: Array, once: bool) -> Array:
    """Return the results of the short sequence, and of the exact one beyond its bound."""
    short = f"{name}_near" if f"{name}_near" in _BOUNDED else name
    results = evaluated_fast_f64(short, x, once=once)
    with np.errstate(all="ignore"):
        beyond = np.abs(x) > _of(short)[1]
        results[beyond] = evaluated(f"{name}_f64", x[beyond])
    return results
