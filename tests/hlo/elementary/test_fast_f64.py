"""The fast sequences of f64 stay below one unit in the last place of the exact functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
from hlo.elementary.fast import FAST_FUNCTIONS_F64, evaluate_fast_f64
from hlo.values import Array
from interp.exact.elementary_machine import NumpyMachine, evaluated

_TINY, _LARGEST = 5e-324, 1.7976931348623157e308
_EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, _TINY, -_TINY, _LARGEST, -_LARGEST, 1.0, -1.0]


def _operands() -> Array:
    """Numbers of every exponent, next to 1, and those whose exponential is finite."""
    rng = np.random.default_rng(64)
    words = rng.integers(0, 1 << 64, 20_000, np.uint64).view(np.float64)
    near = 1.0 + rng.standard_normal(20_000) * 2.0 ** rng.integers(-60, 1, 20_000)
    small = rng.standard_normal(20_000) * 2.0 ** rng.integers(-60, 1, 20_000)
    moderate = rng.uniform(-750.0, 715.0, 20_000)
    return np.concatenate([_EDGES, words, near, small, moderate])


@pytest.mark.parametrize("name", FAST_FUNCTIONS_F64)
def test_errors_are_below_a_unit_in_the_last_place(name: str) -> None:
    """An error below one unit gives one of the two neighbours of the exact result, which the
    correctly rounded result is, too; what is no finite number is the same."""
    x = _operands()
    with np.errstate(all="ignore"):
        found = evaluate_fast_f64(name, NumpyMachine(), x)
        exact = evaluated(f"{name}_f64", x)
    assert np.array_equal(np.isnan(found), np.isnan(exact))
    one, other = (np.where(np.isnan(y), 0.0, y).view(np.int64) for y in (found, exact))
    assert np.all(np.abs(one - other) <= 1), x[np.abs(one - other) > 1][:5]
    assert np.array_equal(np.signbit(found), np.signbit(exact))


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_generated_c_has_the_bits_of_the_sequences() -> None:
    x = _operands()
    dims = f"f64[{x.size}]"
    names = list(FAST_FUNCTIONS_F64)
    lines = [f"  y{n} = {dims} {name.replace('_', '-')}(x)" for n, name in enumerate(names)]
    shapes, results = ", ".join(dims for _ in names), ", ".join(f"y{n}" for n in range(len(names)))
    body = [f"  x = {dims} parameter(0)", *lines, f"  ROOT t = ({shapes}) tuple({results})"]
    text = "\n".join(["HloModule m", "ENTRY e {", *body, "}"])
    for name, found in zip(names, backend_c.compile(hlo.parse(text))(x), strict=True):
        with np.errstate(all="ignore"):
            expected = evaluate_fast_f64(name, NumpyMachine(), x)
        nan = np.isnan(expected)
        assert np.array_equal(np.isnan(found), nan), name
        assert found[~nan].tobytes() == expected[~nan].tobytes(), name
