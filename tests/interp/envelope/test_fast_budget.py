"""The budget of fast numerics: what it admits, and that generated code keeps to it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from conftest import has_c_compiler
from judged_results import judged_by

import backend_c
import hlo
import interp
from fuzz.draw.choices import Choices, examples
from fuzz.draw.programs import program
from fuzz.draw.values import arguments
from fuzz.reducer.search import Case
from hlo.errors import ArgumentError
from hlo.types import BF16, F16, F32
from hlo.values import Array, arrays_of
from interp.envelope.verdict import OUTSIDE

_FUNCTION = """HloModule m
ENTRY main {{
  x = {0}[64] parameter(0)
  ROOT r = {0}[64] {1}(x)
}}
"""
_X = np.linspace(0.1, 4.0, 64).astype(np.float32)


def outside(text: str, values: list[Array], actual: Array, row: str = "fast") -> int:
    return judged_by(row, hlo.parse(text), values, [actual]).counts[OUTSIDE]


def moved(x: Array, units: int) -> Array:
    return (x.view(np.int32) + units).view(np.float32)


@pytest.mark.parametrize("opcode", ["exponential", "tanh", "log", "erf", "rsqrt", "sine"])
def test_elementary_functions_may_be_off_by_one_unit_and_not_by_eight(opcode: str) -> None:
    """The enclosure is of the result ± 1 unit, rounded outward twice."""
    text = _FUNCTION.format("f32", opcode)
    exact = np.asarray(interp.evaluate(hlo.parse(text), _X))
    for units in (-1, 0, 1):
        assert outside(text, [_X], moved(exact, units)) == 0
    for units in (-8, 8):
        assert outside(text, [_X], moved(exact, units)) == 64
    assert outside(text, [_X], moved(exact, 1), "exact") == 64


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_complex_numbers_of_any_size() -> None:
    """Products and absolute values by plain formulas in f32, from subnormals to the largest."""
    text = """HloModule m
ENTRY main {
  x = c64[4096] parameter(0)
  y = c64[4096] parameter(1)
  p = c64[4096] multiply(x, y)
  a = f32[4096] abs(x)
  ROOT t = (c64[4096], f32[4096]) tuple(p, a)
}
"""
    draw = np.random.default_rng(1)
    parts = np.exp2(draw.uniform(-149, 128, (2, 4096, 2))) * draw.choice([-1.0, 1.0], (2, 4096, 2))
    parts[:, :8] = draw.choice([0.0, -0.0, np.inf, 1e-45, 3.4e38, 1.0], (2, 8, 2))
    x, y = parts.astype(np.float32).view(np.complex64)[..., 0]
    found = backend_c.compile(hlo.parse(text), numerics="fast")(x, y)
    assert judged_by("fast", hlo.parse(text), [x, y], list(arrays_of(found))).counts[OUTSIDE] == 0


def test_operations_of_ieee_are_rounded_correctly() -> None:
    text = _FUNCTION.format("f32", "sqrt")
    exact = np.asarray(interp.evaluate(hlo.parse(text), _X))
    assert outside(text, [_X], exact) == 0
    assert outside(text, [_X], moved(exact, 1)) == 64


def test_products_may_be_fused_into_sums() -> None:
    text = """HloModule m
ENTRY main {
  x = f32[] parameter(0)
  square = f32[] multiply(x, x)
  c = f32[] parameter(1)
  ROOT r = f32[] add(square, c)
}
"""
    x, c = np.float32(1 + 2.0**-12), np.float32(-1 - 2.0**-11)
    fused = np.float32(float(x) * float(x) + float(c))
    assert fused == 2.0**-24
    assert outside(text, [np.asarray(x), np.asarray(c)], np.asarray(fused)) == 0
    assert outside(text, [np.asarray(x), np.asarray(c)], np.asarray(fused), "exact") == 1


def test_bf16_may_be_computed_in_f32() -> None:
    text = """HloModule m
ENTRY main {
  x = bf16[] parameter(0)
  y = bf16[] parameter(1)
  sum = bf16[] add(x, y)
  ROOT r = bf16[] subtract(sum, x)
}
"""
    x, y = (np.asarray(value, ml_dtypes.bfloat16) for value in (1.0, 2.0**-10))
    assert outside(text, [x, y], y) == 0
    assert outside(text, [x, y], y, "exact") == 1


def test_subnormal_results_may_not_be_flushed() -> None:
    text = _FUNCTION.format("f32", "exponential")
    x = np.full(64, -95.0, np.float32)
    assert outside(text, [x], np.zeros(64, np.float32)) == 64


def test_unknown_rows_are_refused() -> None:
    with pytest.raises(ArgumentError, match="no budget is named 'quick'"):
        judged_by("quick", hlo.parse(_FUNCTION.format("f32", "tanh")), [_X], [_X])


def drawn(count: int) -> list[Case]:
    def one(choices: Choices) -> Case:
        module = program(choices, max_instructions=8, element_types=(F32, BF16, F16))
        return Case(module, arguments(choices, module))

    return examples(one, count, "fast budget")


@pytest.mark.sampled(3)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("case", drawn(12))
def test_generated_code_keeps_to_it(case: Case) -> None:
    actual = backend_c.compile(case.module, numerics="fast")(*case.arrays)
    found = judged_by("fast", case.module, case.arrays, list(arrays_of(actual)))
    assert found.mismatch is None and not found.counts[OUTSIDE]
