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
    words = rng.integers(0, 1 << 64, 5_000, np.uint64).view(np.float64)
    near = 1.0 + rng.standard_normal(5_000) * 2.0 ** rng.integers(-60, 1, 5_000)
    small = rng.standard_normal(5_000) * 2.0 ** rng.integers(-60, 1, 5_000)
    moderate = rng.uniform(-750.0, 715.0, 5_000)
    turns = rng.integers(-(2**22), 2**22, 5_000) * (math.pi / 2)
    seams = [math.nextafter(NEAR, math.inf), NEAR, -NEAR, _HARD]
    return np.concatenate([_EDGES, seams, words, near, small, moderate, turns])


def _pairs() -> tuple[Array, Array]:
    """Special numbers with each other, numbers of every exponent, and such whose power is finite;
    integers in a third of them."""
    rng = np.random.default_rng(65)
    special = [*_EDGES, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.0**53 + 2, -(2.0**52) - 1, 1e300]
    grid = np.meshgrid(special, special)
    words = rng.integers(0, 1 << 64, (2, 1500), np.uint64).view(np.float64)
    base = 1.0 + rng.standard_normal(2000) * 2.0 ** rng.integers(-52, 3, 2000)
    size = np.maximum(np.abs(np.log(np.abs(base))), 2.0**-60)
    other = rng.uniform(-750.0, 715.0, 2000) / size
    other[::2] = np.rint(other[::2])
    x = np.concatenate([grid[0].ravel(), words[0], base])
    return x, np.concatenate([grid[1].ravel(), words[1], other])


def _given(name: str) -> tuple[Array, ...]:
    """Return operands of a sequence."""
    if FAST_FUNCTIONS_F64[name].arity == 2:
        return _pairs()
    x = _operands()
    return (x[~(np.abs(x) > _of(name)[1])],)


def _of(name: str) -> tuple[str, float]:
    """Return the exact function that a sequence stands for, and its largest operand."""
    return (_BOUNDED[name].of, _BOUNDED[name].largest) if name in _BOUNDED else (name, math.inf)


@pytest.mark.sampled(14)
@pytest.mark.parametrize("once", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("name", FAST_FUNCTIONS_F64)
def test_errors_are_below_a_unit_in_the_last_place(name: str, once: bool) -> None:
    """An error below one unit gives one of the two neighbours of the exact result, which the
    correctly rounded result is, too; what is no finite number is the same."""
    given_ = _given(name)
    found = evaluated_fast_f64(name, *given_, once=once)
    with np.errstate(all="ignore"):
        exact = evaluated(f"{_of(name)[0]}_f64", *given_)
    assert np.array_equal(np.isnan(found), np.isnan(exact))
    one, other = (np.where(np.isnan(y), 0.0, y).view(np.int64) for y in (found, exact))
    assert np.all(np.abs(one - other) <= 1), [x[np.abs(one - other) > 1][:5] for x in given_]
    assert np.array_equal(
        np.signbit(found) & ~np.isnan(found), np.signbit(exact) & ~np.isnan(exact)
    )


@pytest.mark.parametrize("once", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("name", FAST_FUNCTIONS_F64)
def test_errors_against_mpmath_are_below_a_unit(name: str, once: bool) -> None:
    given_ = fast_f64.operands(name, 60, np.random.default_rng(5))
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
    """Generated C has the bits of one of two sequences, with or without FMA as the processor has
    it, and exact bits beyond the bound of a sequence, also for some elements of a block."""
    x, pairs = _operands(), _pairs()
    names = sorted(_OPERATIONS)
    is_pair = [name in FAST_FUNCTIONS_F64 and FAST_FUNCTIONS_F64[name].arity == 2 for name in names]
    dims, both = f"f64[{x.size}]", f"f64[{pairs[0].size}]"
    shapes = [both if two else dims for two in is_pair]
    body = [f"x = {dims} parameter(0)", f"a = {both} parameter(1)", f"b = {both} parameter(2)"]
    for name, shape, two in zip(names, shapes, is_pair, strict=True):
        body.append(f"y_{name} = {shape} {name.replace('_', '-')}({'a, b' if two else 'x'})")
    results = ", ".join(f"y_{name}" for name in names)
    body.append(f"ROOT t = ({', '.join(shapes)}) tuple({results})")
    text = "\n  ".join(["HloModule m\nENTRY e {", *body]) + "\n}"
    program = backend_c.compile(hlo.parse(text))
    for name, two, found in zip(names, is_pair, program(x, *pairs), strict=True):
        number = ~np.isnan(found)
        given_ = pairs if two else (x,)
        words = [_expected(name, given_, once).view(np.int64) for once in (True, False)]
        same = [np.array_equal(found.view(np.int64)[number], word[number]) for word in words]
        assert any(same), name
        assert np.array_equal(number, ~np.isnan(words[0].view(np.float64))), name


def _expected(name: str, given_: tuple[Array, ...], once: bool) -> Array:
    """Return the results of the short sequence, and of the exact one beyond its bound."""
    short = f"{name}_near" if f"{name}_near" in _BOUNDED else name
    results = evaluated_fast_f64(short, *given_, once=once)
    with np.errstate(all="ignore"):
        beyond = np.abs(given_[0]) > _of(short)[1]
        results[beyond] = evaluated(f"{name}_f64", *(x[beyond] for x in given_))
    return results
