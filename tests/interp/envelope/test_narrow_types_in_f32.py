"""What compilers that keep narrow types in f32 may give of subnormals and of missing NaN."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hlo
import interp
from interp.envelope.budget import EXACT, XLA_CPU, Budget
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
