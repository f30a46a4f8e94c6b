"""bitcast through layouts and element sizes: the bytes in memory, by NumPy and by both columns."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import hlo
import interp

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_BYTES = np.random.default_rng(0).integers(0, 255, 48, np.uint8)
_NIBBLES = (np.arange(12) % 16 - 8).astype(np.int8)
# operand, its value, result, its value
_CASES: tuple[tuple[str, Any, str, Any], ...] = (
    (
        "u8[6,4]{0,1}",
        _BYTES[:24].reshape(4, 6).T,
        "u16[3,4]{1,0}",
        _BYTES[:24].view(np.uint16).reshape(3, 4),
    ),
    (
        "u16[2,3,2]{0,2,1}",
        _BYTES[:24].view(np.uint16).reshape(3, 2, 2).transpose(2, 0, 1),
        "u8[4,6]{0,1}",
        _BYTES[:24].reshape(6, 4).T,
    ),
    (
        "s4[2,6]{1,0:E(4)}",
        _NIBBLES.reshape(2, 6).astype(ml_dtypes.int4),
        "u8[6]{0}",
        (_NIBBLES[0::2] & 15 | _NIBBLES[1::2] << 4).astype(np.uint8),
    ),
    ("c64[3]{0}", _BYTES[:24].view(np.complex64), "u64[3]{0}", _BYTES[:24].view(np.uint64)),
    ("f32[4]{0}", _BYTES[:16].view(np.float32), "c64[2]{0}", _BYTES[:16].view(np.complex64)),
    ("c128[1]{0}", _BYTES[:16].view(np.complex128), "c64[2]{0}", _BYTES[:16].view(np.complex64)),
    (
        "u4[3]{0}",
        np.array([1, 9, 15], np.uint8).astype(ml_dtypes.uint4),
        "s4[3]{0}",
        np.array([1, -7, -1], np.int8).astype(ml_dtypes.int4),
    ),
)


@pytest.mark.parametrize("case", _CASES, ids=lambda case: f"{case[0]} to {case[2]}")
def test_bytes_in_memory(case: tuple[str, Any, str, Any]) -> None:
    source, given, target, expected = case
    lines = f"x = {source} parameter(0)\n  ROOT y = {target} bitcast(x)"
    text = f"HloModule m\nENTRY e {{\n  {lines}\n}}\n"
    result = interp.evaluate(hlo.parse(text), given)
    assert result.dtype == expected.dtype
    assert np.array_equal(result.view(np.uint8), np.array(expected, order="C").view(np.uint8))
    assert_same_bits(text, given)


def test_spare_bits_are_not_defined() -> None:
    text = "HloModule m\nENTRY e {\n  x = s4[2] parameter(0)\n  ROOT y = u8[2] bitcast(x)\n}\n"
    with pytest.raises(hlo.Unsupported, match="spare bits of s4"):
        interp.evaluate(hlo.parse(text), np.zeros(2, ml_dtypes.int4))
