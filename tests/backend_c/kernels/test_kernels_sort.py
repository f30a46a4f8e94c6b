"""Sorts of rows of any length by any comparator, against the interpreter."""

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import hlo
from backend_c.pipeline import lowered
from hlo.types import ELEMENT_TYPES

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_ONE = """HloModule m
c {{
  a = {type}[] parameter(0)
  b = {type}[] parameter(1)
  ROOT r = pred[] compare(a, b), direction={direction}
}}
ENTRY e {{
  x = {type}[{dims}] parameter(0)
  ROOT s = {type}[{dims}] sort(x), dimensions={{{dimension}}}, is_stable=true, to_apply=c
}}
"""


def _values(element_type: str, dims: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(sum(dims))
    dtype = ELEMENT_TYPES[element_type].numpy
    values = np.asarray(rng.integers(0, 50, dims))
    return np.asarray(values / 8 if dtype.kind not in "iub" else values).astype(dtype)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("element_type", ["f32", "bf16", "f64", "s32", "u8", "s64"])
def test_types(element_type: str) -> None:
    for dims, dimension in (((7, 33), 1), ((33, 7), 0), ((3, 20, 2), 1)):
        text = _ONE.format(
            type=element_type,
            direction="GT",
            dims=",".join(map(str, dims)),
            dimension=dimension,
        )
        assert_same_bits(text, _values(element_type, dims))


@pytest.mark.parametrize("size", [0, 1, 2, 3, 64, 65, 5000, 9999])
def test_lengths(size: int) -> None:
    text = _ONE.format(type="f32", direction="LT", dims=size, dimension=0)
    x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    assert_same_bits(text, x)


_PAIRS = """HloModule m
c {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  k = s32[] parameter(2)
  l = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT, type=TOTALORDER
}
ENTRY e {
  x = f32[4,6000] parameter(0)
  y = s32[4,6000] iota(), iota_dimension=1
  s = (f32[4,6000], s32[4,6000]) sort(x, y), dimensions={1}, is_stable=true, to_apply=c
  t = (f32[4,3], s32[4,3]) topk(x), k=3, largest=true
  u = (f32[4,10], s32[4,10]) topk(x), k=10, largest=false
  ROOT r = ((f32[4,6000], s32[4,6000]), (f32[4,3], s32[4,3]), (f32[4,10], s32[4,10])) tuple(s, t, u)
}
"""


def test_ties_and_special_values() -> None:
    """Equal keys keep their order, in sort and in topk; NaN is the largest for topk."""
    x = np.round(np.random.default_rng(7).standard_normal((4, 6000)) * 8).astype(np.float32)
    x[1, ::7], x[2, ::5], x[2, 1::5] = np.nan, -np.inf, np.inf
    x[3, ::2], x[3, 1::2] = 0.0, -0.0
    x[3, 17] = -np.nan
    assert_same_bits(_PAIRS, x)


@pytest.mark.parametrize("element_type", ["bf16", "f64", "s32", "u8"])
def test_topk_types(element_type: str) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = {element_type}[5,40] parameter(0)
  ROOT t = ({element_type}[5,7], s32[5,7]) topk(x), k=7, largest=true
}}
"""
    assert_same_bits(text, _values(element_type, (5, 40)))


def test_a_topk_of_nothing_stores_nothing() -> None:
    """It stored the places of elements beyond its result, which has room for none."""
    text = "ENTRY e { x = f32[2,5] parameter(0)\n ROOT r = (f32[2,0], s32[2,0]) topk(x), k=0 }"
    assert not lowered(hlo.parse(text)).kernels
