"""bitcast through layouts and element sizes: the bytes in memory, by NumPy and by both columns."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import TESTS, has_c_compiler

import hlo
import interp
from backend_c.pipeline import emit

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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", _CASES, ids=lambda case: f"{case[0]} to {case[2]}")
def test_bytes_in_memory(case: tuple[str, Any, str, Any]) -> None:
    source, given, target, expected = case
    lines = f"x = {source} parameter(0)\n  ROOT y = {target} bitcast(x)"
    text = f"HloModule m\nENTRY e {{\n  {lines}\n}}\n"
    result = interp.evaluate(hlo.parse(text), given)
    assert result.dtype == expected.dtype
    assert np.array_equal(result.view(np.uint8), np.array(expected, order="C").view(np.uint8))
    assert_same_bits(text, given)


# Types of bytes, and how one part of an element is another: u8 of f32, c64 of c128.
_PARTS = (
    *(("f32", "u8"), ("f64", "s8"), ("s64", "f32"), ("u16", "pred"), ("f32", "bf16")),
    *(("f16", "f8e4m3fn"), ("u64", "u16"), ("c128", "c64")),
)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("extent", [1, 15, 33])
@pytest.mark.parametrize(("wide", "narrow"), _PARTS)
def test_bytes_of_computed_elements(wide: str, narrow: str, extent: int) -> None:
    """Computed elements that are split into narrower ones, reversed and joined again have the
    interpreter's bits."""
    parts = {name: hlo.types.ELEMENT_TYPES[name].bits for name in (wide, narrow)}
    count = parts[wide] // parts[narrow]
    text = f"""HloModule m
ENTRY e {{
  x = {wide}[2,{extent}] parameter(0)
  y = {wide}[{extent},2] transpose(x), dimensions={{1,0}}
  split = {narrow}[{extent},2,{count}] bitcast-convert(y)
  rows = {narrow}[{extent},{2 * count}] reshape(split)
  turned = {narrow}[{extent},{2 * count}] reverse(rows), dimensions={{1}}
  elements = {narrow}[{extent},2,{count}] reshape(turned)
  joined = {wide}[{extent},2] bitcast-convert(elements)
  ROOT both = ({narrow}[{extent},{2 * count}], {wide}[{extent},2]) tuple(turned, joined)
}}
"""
    dtype = hlo.types.ELEMENT_TYPES[wide].numpy
    values = np.random.default_rng(extent).integers(1, 100, (2, extent)).astype(dtype)
    assert_same_bits(text, values)


def test_bytes_in_memory_are_read_as_they_lie() -> None:
    """Bytes of elements in memory are read without dividing an index by their number, and without
    shifts."""
    path = TESTS / "regressions" / "bytes_of_floats.hlo"
    sources = emit(hlo.parse(path.read_text()))
    (kernel,) = re.findall(r"static void kernel.*?\n}", sources["unit_0.c"].decode(), re.DOTALL)
    assert "hlo_read_uint8_t(a0, i1)" in kernel
    assert not re.search(r"[/%]|>>", kernel)


def test_spare_bits_are_not_defined() -> None:
    text = "HloModule m\nENTRY e {\n  x = s4[2] parameter(0)\n  ROOT y = u8[2] bitcast(x)\n}\n"
    with pytest.raises(hlo.Unsupported, match="spare bits of s4"):
        interp.evaluate(hlo.parse(text), np.zeros(2, ml_dtypes.int4))
