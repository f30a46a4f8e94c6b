"""Check which subnormals and missing NaN are legal in compilers that keep narrow types in f32."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hlo
import interp
from hlo.types import ELEMENT_TYPES
from interp.envelope.budget import EXACT, XLA_CPU, Budget
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose
from interp.envelope.verdict import OUTSIDE, judged

_TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f4e2m1fn": ml_dtypes.float4_e2m1fn}


def _worst(line: str, value: float, actual: float, budget: Budget) -> str:
    dtype = _TYPES[line.partition("[")[0]]
    module = hlo.parse(
        f"HloModule m\nENTRY e {{ p = {line.partition(' ')[0]} parameter(0)\n  ROOT r = {line} }}"
    )
    argument = np.full(module.entry.parameters[0].shape.dims, value, dtype)
    exact = np.asarray(interp.evaluate(module, argument))
    legal = enclose(module, argument, peer=budget).result
    return judged(np.full(exact.shape, actual, dtype), exact, legal).worst


@pytest.mark.parametrize(
    ("line", "value", "actual"),
    [
        # In f32 17 · 2^-24 is 1.0625 · 2^-20; in f16 it has no exponent of its own.
        ("f16[] reduce-precision(p), exponent_bits=12, mantissa_bits=0", 17 * 2.0**-24, 2.0**-20),
        ("f16[] reduce-precision(p), exponent_bits=5, mantissa_bits=10", 17 * 2.0**-24, 0.0),
        ("bf16[2] reverse(p), dimensions={0}", 2.0**-130, 0.0),
        ("f4e2m1fn[] rsqrt(p)", -1.0, 0.0),
    ],
)
def test_what_f32_gives_is_legal(line: str, value: float, actual: float) -> None:
    assert _worst(line, value, actual, XLA_CPU) != OUTSIDE


@pytest.mark.parametrize(
    ("line", "value", "actual"),
    [
        ("f16[] reduce-precision(p), exponent_bits=12, mantissa_bits=0", 17 * 2.0**-24, 2.0**-19),
        ("f16[] reduce-precision(p), exponent_bits=12, mantissa_bits=0", 1.0625, 2.0),
        ("bf16[2] reverse(p), dimensions={0}", 2.0**-126, 0.0),
        ("f16[2] reverse(p), dimensions={0}", 2.0**-20, 0.0),
    ],
)
def test_what_neither_gives_is_outside(line: str, value: float, actual: float) -> None:
    assert _worst(line, value, actual, XLA_CPU) == OUTSIDE


def test_moved_numbers_are_exact_without_excess_precision() -> None:
    assert _worst("bf16[2] reverse(p), dimensions={0}", 2.0**-130, 0.0, EXACT) == OUTSIDE


@pytest.mark.parametrize("element_type", ["s32", "u32", "s64", "u64"])
def test_integers_may_be_rounded_to_f32_first(element_type: str) -> None:
    """257 * 2^20 is halfway between numbers of bf16: it is rounded down, a little more up."""
    module = hlo.parse(f"""HloModule m
ENTRY e {{
  x = {element_type}[1] parameter(0)
  ROOT y = bf16[1] convert(x)
}}""")
    x = np.array([257 * 2**20 + 1], ELEMENT_TYPES[element_type].numpy)
    exact = np.asarray(interp.evaluate(module, x))
    twice = x.astype(np.float32).astype(ml_dtypes.bfloat16)
    assert exact != twice
    for budget, is_legal in ((XLA_CPU, True), (EXACT, False)):
        legal = enclose(module, x, peer=budget).result
        assert contains(legal, exact).all()
        assert contains(legal, twice).all() == is_legal
