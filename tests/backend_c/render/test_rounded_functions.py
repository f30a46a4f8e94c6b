"""Arrays of powers and angles of narrow types: by fast sequences of f64, in doubt by exact ones."""

from __future__ import annotations

import re

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import backend_c
import hlo
from backend_c.render import elementary_functions
from hlo.types import ELEMENT_TYPES

_SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, -2.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, -1e-40)


def _text(function: str, element_type: str, elements: int) -> str:
    shape = f"{element_type}[{elements}]"
    return f"""HloModule m
ENTRY e {{
  x = {shape} parameter(0)
  y = {shape} parameter(1)
  ROOT r = {shape} {function}(x, y)
}}
"""


def _pairs(function: str, element_type: str) -> tuple[np.ndarray, np.ndarray]:
    """Return every special number with every other one, numbers of all exponents, those whose
    powers are midpoints of two f32 or at the ends of its range, and those next to an axis."""
    random = np.random.default_rng(0)
    special = [array.ravel() for array in np.meshgrid(_SPECIAL, _SPECIAL)]
    many = [random.standard_normal(2000) * 2.0 ** random.integers(-30, 30, 2000) for _ in range(2)]
    # Odd numbers of 13 bits whose squares have 25 bits, and of 9 bits whose cubes have.
    squares, cubes = np.arange(4097.0, 5793.0, 2.0), np.arange(257.0, 323.0, 2.0)
    halves = np.arange(129.0, 181.0, 2.0)  # the same of bf16
    bases = [*squares, *cubes, *halves, *(1 + random.uniform(-1, 1, 400) * 2.0**-20), *[1.5] * 600]
    exponents = [
        *[2.0] * squares.size,
        *[3.0] * cubes.size,
        *[2.0] * halves.size,
        *(random.standard_normal(400) * 2.0**26),
        *random.uniform(-260, -200, 300),  # subnormal results of f32, and zeros
        *random.uniform(218, 220, 300),  # the largest ones, and infinity
    ]
    if function == "atan2":  # quotients of nearly equal numbers, and next to nothing
        exponents = [x * 2.0 ** random.integers(-150, 100) for x in exponents]
    dtype = ELEMENT_TYPES[element_type].numpy
    parts = ((special[0], many[0], bases), (special[1], many[1], exponents))
    with np.errstate(all="ignore"):
        x, y = (np.concatenate(part).astype(np.float32).astype(dtype) for part in parts)
    return x, y


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("element_type", ["f32", "bf16", "f16", "f8e5m2"])
@pytest.mark.parametrize("function", ["power", "atan2"])
def test_the_interpreters_bits(function: str, element_type: str) -> None:
    x, y = _pairs(function, element_type)
    assert_same_bits(_text(function, element_type, x.size), x, y)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("sign", ["+", "-"])
def test_a_fast_sequence_may_err_by_eight_units(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Squares that are midpoints of two f32 come out on either side of them."""
    render = elementary_functions._fast_f64_function

    def erring(name: str, prefix: str) -> str:
        return re.sub(r"return (\w+);", rf"return \1 * (1.0 {sign} 0x1p-49);", render(name, prefix))

    monkeypatch.setattr(elementary_functions, "_fast_f64_function", erring)
    # A program of its own: that of another test is in the cache.
    count = 4001 if sign == "+" else 4002
    x, y = (array[-count:] for array in _pairs("power", "f32"))
    assert_same_bits(_text("power", "f32", count), x, y)


def test_f64_has_the_exact_sequence_alone() -> None:
    sources = [
        backend_c.emit(hlo.parse(_text("power", element_type, 99)), numerics="exact")["unit_0.c"]
        for element_type in ("f32", "f64")
    ]
    assert [b"hlo_power_f64_fast" in source for source in sources] == [True, False]
