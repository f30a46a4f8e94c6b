"""Integers become narrow floats by way of f32 where that rounds once."""

import ml_dtypes
import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

from backend_c.render.conversions import converted
from hlo.types import BF16, ELEMENT_TYPES, F16, F32, PRED, S8, U8, U16, U32, ElementType

_NARROW = [t for t in ELEMENT_TYPES.values() if t.is_float and t.bits < 32]
_INTEGERS = [t for t in ELEMENT_TYPES.values() if t.is_integer and t.bits >= 4]


def _largest(element_type: ElementType) -> float:
    return float(ml_dtypes.finfo(element_type.numpy).max)  # type: ignore[no-untyped-call]


def _beside_rounding(element_type: ElementType) -> np.ndarray:
    """Return integers beside powers of two, their middles, and the largest narrow floats."""
    low = -(2 ** (element_type.bits - 1)) if element_type.kind == "signed" else 0
    high = 2**element_type.bits - 1 + low
    ends = [int(m) for t in _NARROW if (m := _largest(t)) < 2**20]
    exponents = range(element_type.bits + 1)
    bases = [*ends, *(2**k + 2**n for k in exponents for n in range(max(k - 26, 0), k + 1))]
    around = (sign * (base + step) for base in bases for step in range(-2, 3) for sign in (1, -1))
    found = sorted({n for n in around if low <= n <= high})
    wide = np.array(found, np.uint64 if low == 0 else np.int64)
    return wide.astype(element_type.numpy)


@pytest.mark.sampled(3)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("source", _INTEGERS, ids=str)
def test_every_integer_type_to_every_narrow_float(source: ElementType) -> None:
    x = _beside_rounding(source)
    shapes = [f"{t}[{x.size}]" for t in _NARROW]
    lines = [f"  c{n} = {shape} convert(x)" for n, shape in enumerate(shapes)]
    names = ", ".join(f"c{n}" for n in range(len(shapes)))
    text = "\n".join(
        [
            f"HloModule m\nENTRY e {{\n  x = {source}[{x.size}] parameter(0)",
            *lines,
            f"  ROOT t = ({', '.join(shapes)}) tuple({names})\n}}\n",
        ]
    )
    assert_same_bits(text, x)


def test_what_a_type_has_is_not_rounded() -> None:
    for source, result in ((S8, F16), (U8, F16), (S8, BF16), (U8, BF16)):
        assert converted(["x"], [source], result)[0] == "(float)x"


def test_large_integers_are_rounded_to_odd_if_f32_has_not_all_below_the_largest() -> None:
    assert converted(["x"], [U32], F16)[0] == "hlo_round_f16((float)x)"
    assert converted(["x"], [U16], BF16)[0] == "hlo_round_bf16((float)x)"
    assert converted(["x"], [U32], BF16)[0] == "hlo_round_bf16(hlo_f32_from_u32_to_odd(x))"


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_preds_to_every_type() -> None:
    """A mask of bytes and of 16-bit numbers has two widths."""
    types = [t for t in ELEMENT_TYPES.values() if t.is_integer or t.is_float]
    shapes = [f"{t}[33]" for t in types]
    lines = "\n".join(f"  c{n} = {shape} convert(q)" for n, shape in enumerate(shapes))
    names = ", ".join(f"c{n}" for n in range(len(shapes)))
    text = f"""HloModule m
ENTRY e {{
  x = bf16[33] parameter(0)
  m = pred[33] parameter(1)
  c = pred[33] convert(x)
  q = pred[33] and(m, c)
{lines}
  ROOT t = ({", ".join(shapes)}) tuple({names})
}}
"""
    rng = np.random.default_rng(0)
    assert_same_bits(text, rng.integers(0, 2, 33).astype(BF16.numpy), rng.random(33) < 0.5)


def test_preds_are_chosen_by() -> None:
    """gcc 12 has vectors of a choice, and none of the conversion of such a mask."""
    assert converted(["p"], [PRED], F32)[0] == "(p ? (float)1 : (float)0)"
    assert converted(["p"], [PRED], BF16)[0] == "(p ? (float)1 : (float)0)"
    assert converted(["p"], [PRED], S8)[0] == "hlo_wrap_s8(p ? 1u : 0u)"
