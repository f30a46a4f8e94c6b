"""Ops that few programs have, as expressions, against the interpreter."""

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

from hlo.types import ELEMENT_TYPES

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


def test_map() -> None:
    text = """HloModule m
c {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  s = f32[] subtract(a, b)
  ROOT r = pred[] compare(s, a), direction=LT
}
ENTRY e {
  x = f32[4,5] parameter(0)
  y = f32[4,5] parameter(1)
  ROOT m = pred[4,5] map(x, y), dimensions={0,1}, to_apply=c
}
"""
    rng = np.random.default_rng(0)
    assert_same_bits(text, *(rng.standard_normal((4, 5)).astype(np.float32) for _ in range(2)))


def test_copies() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[4,5] parameter(0)
  s = (f32[4,5], f32[4,5], u32[]) copy-start(x)
  d = f32[4,5] copy-done(s)
  ROOT m = f32[4,5] add(d, d)
}
"""
    assert_same_bits(text, np.ones((4, 5), np.float32))


def test_dynamic_reshape() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[<=4,3] parameter(0)
  n = s32[] parameter(1)
  k = s32[] constant(3)
  m = s32[] multiply(n, k)
  one = s32[] constant(1)
  y = f32[<=12,1] dynamic-reshape(x, m, one)
  ROOT z = f32[3,<=4] dynamic-reshape(y, k, n)
}
"""
    for size in (0, 1, 3, 4):
        x = np.arange(3 * size, dtype=np.float32).reshape(size, 3)
        assert_same_bits(text, x, np.int32(size))


@pytest.mark.parametrize(("source", "bits"), [("f32", "u32"), ("f64", "u64"), ("bf16", "u16")])
def test_stochastic_convert(source: str, bits: str) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = f32[400] parameter(0)
  r = {bits}[400] parameter(1)
  y = {source}[400] convert(x)
  a = s8[400] stochastic-convert(y, r)
  b = s64[400] stochastic-convert(y, r)
  ROOT t = (s8[400], s64[400]) tuple(a, b)
}}
"""
    rng = np.random.default_rng(1)
    x = (rng.standard_normal(400) * 60).astype(np.float32)
    x[:4] = np.nan, np.inf, -np.inf, -0.25
    width = int(bits[1:])
    r = rng.integers(0, 2**width, 400, dtype=np.uint64).astype(f"u{width // 8}")
    r[3] = 0
    assert_same_bits(text, x, r)


def test_signs_of_narrow_floats_are_not_rounded() -> None:
    """Every type has 1 and, if it has negative numbers, -1: so it is of every word."""
    types = [t for t in ELEMENT_TYPES.values() if t.is_float and t.bits < 32]
    shapes = [f"{t.name}[{1 << t.bits}]" for t in types]
    lines, results = list[str](), list[str]()
    for number, shape in enumerate(shapes):
        lines.append(f"  x.{number} = {shape} parameter({number})")
        lines.append(f"  sign.{number} = {shape} sign(x.{number})")
        results.append(f"sign.{number}")
    lines.append(f"  ROOT r = ({', '.join(shapes)}) tuple({', '.join(results)})")
    text = "\n".join(["HloModule m", "ENTRY e {", *lines, "}"])
    words = [np.arange(1 << t.bits).astype(f"u{t.numpy.itemsize}").view(t.numpy) for t in types]
    assert_same_bits(text, *words)


@pytest.mark.parametrize("name", ["s64", "u64", "s32", "u32", "u16"])
def test_leading_zeros_beside_powers_of_two(name: str) -> None:
    """A length that is found by converting to a float is not of the number that rounding makes."""
    bits = int(name[1:])
    numbers = [(1 << k) + d for k in range(bits + 1) for d in (-(1 << k // 2), -1, 0, 1)]
    words = np.array([n % (1 << bits) for n in numbers], f"u{bits // 8}")
    operand = words.view(ELEMENT_TYPES[name].numpy)
    text = f"""HloModule m
ENTRY e {{
  x = {name}[{words.size}] parameter(0)
  ROOT r = {name}[{words.size}] count-leading-zeros(x)
}}
"""
    assert_same_bits(text, operand)
