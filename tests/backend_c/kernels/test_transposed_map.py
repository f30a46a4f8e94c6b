"""Maps that read arrays across their rows: every width, remainders, batches, fused and alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import backend_c
import hlo
from hlo.types import ELEMENT_TYPES

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_TYPES = ("pred", "s4", "u8", "bf16", "f16", "f32", "s32", "f64", "c64", "c128")
# Dims and permutations: tiles of all widths, what is beside them, batches, merged dimensions.
_CASES = (
    ((150, 131), (1, 0)),
    ((3, 70, 65), (0, 2, 1)),
    ((66, 5, 67), (2, 1, 0)),
    ((2, 8, 9, 64), (0, 3, 1, 2)),
    ((9, 1, 31), (2, 1, 0)),
    ((8, 40), (1, 0)),
)


def _array(rng: np.random.Generator, element_type: str, dims: tuple[int, ...]) -> np.ndarray:
    """Any bits, NaN payloads among them, of types that have them in memory."""
    dtype = ELEMENT_TYPES[element_type].numpy
    if element_type in ("pred", "s4"):
        return rng.integers(0, 2, dims).astype(dtype)
    data = rng.integers(0, 256, (*dims, dtype.itemsize), np.uint8)
    return data.view(dtype).reshape(dims)


def _text(dims: tuple[int, ...]) -> str:
    return ",".join(map(str, dims))


@pytest.mark.parametrize("element_type", _TYPES)
def test_transposes(element_type: str) -> None:
    """Bits are moved, whatever they are."""
    rng, lines, shapes, arrays = np.random.default_rng(1), [], [], []
    for n, (dims, order) in enumerate(_CASES):
        result = f"{element_type}[{_text(tuple(dims[d] for d in order))}]"
        lines.append(f"x{n} = {element_type}[{_text(dims)}] parameter({n})")
        lines.append(f"r{n} = {result} transpose(x{n}), dimensions={{{_text(order)}}}")
        shapes.append(result)
        arrays.append(_array(rng, element_type, dims))
    results = ", ".join(f"r{n}" for n in range(len(_CASES)))
    lines.append(f"ROOT t = ({', '.join(shapes)}) tuple({results})")
    module = hlo.parse("\n".join(["HloModule m", "ENTRY e {", *lines, "}"]))
    moved = backend_c.compile(module, "exact")(*arrays)
    for array, result, (_, order) in zip(arrays, moved, _CASES, strict=True):
        assert result.tobytes() == np.ascontiguousarray(array.transpose(order)).tobytes()


def test_fused() -> None:
    """Arrays read along and across rows in one map, some of them twice, some at run-time places."""
    text = """HloModule m
ENTRY e {
  x = f32[70,90] parameter(0)
  y = f32[90,70] parameter(1)
  z = bf16[3,70,90] parameter(2)
  i = s32[] parameter(3)
  v = f32[90] parameter(4)
  w = s32[70] parameter(5)
  o = s32[] constant(0)
  xt = f32[90,70] transpose(x), dimensions={1,0}
  zs = bf16[1,70,90] dynamic-slice(z, i, o, o), dynamic_slice_sizes={1,70,90}
  zr = bf16[70,90] reshape(zs)
  zt = bf16[90,70] transpose(zr), dimensions={1,0}
  zf = f32[90,70] convert(zt)
  b = f32[90,70] broadcast(v), dimensions={0}
  a = f32[90,70] multiply(xt, y)
  c = f32[90,70] subtract(a, zf)
  d = f32[90,70] add(c, b)
  k = f32[90,70] multiply(d, xt)
  g = f32[70,90] gather(x, w), offset_dims={1}, collapsed_slice_dims={0},
    start_index_map={0}, index_vector_dim=1, slice_sizes={1,90}
  gt = f32[90,70] transpose(g), dimensions={1,0}
  ROOT r = f32[90,70] add(k, gt)
}
"""
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal(dims).astype(np.float32) for dims in ((70, 90), (90, 70)))
    z = rng.standard_normal((3, 70, 90)).astype(ELEMENT_TYPES["bf16"].numpy)
    w = rng.integers(-3, 80, 70).astype(np.int32)
    v = rng.standard_normal(90).astype(np.float32)
    assert_same_bits(text, x, y, z, np.int32(2), v, w)


def test_every_order_of_dimensions() -> None:
    """Results of all orders, in one program with several results of one map."""
    lines, shapes = ["x = s16[6,9,10,16] parameter(0)"], []
    for n, order in enumerate(itertools.permutations(range(4))):
        shapes.append(f"s16[{_text(tuple((6, 9, 10, 16)[d] for d in order))}]")
        lines.append(f"r{n} = {shapes[-1]} transpose(x), dimensions={{{_text(order)}}}")
    results = ", ".join(f"r{n}" for n in range(len(shapes)))
    lines.append(f"ROOT t = ({', '.join(shapes)}) tuple({results})")
    x = np.arange(6 * 9 * 10 * 16, dtype=np.int16).reshape(6, 9, 10, 16)
    assert_same_bits("\n".join(["HloModule m", "ENTRY e {", *lines, "}"]), x)


def test_reshaped() -> None:
    """Dimensions that a reshape has merged are told apart again."""
    text = """HloModule m
ENTRY e {
  x = f32[3,20,7,9] parameter(0)
  t = f32[3,7,9,20] transpose(x), dimensions={0,2,3,1}
  a = f32[3,1260] reshape(t)
  b = f32[3780] reshape(t)
  c = f32[27,140] reshape(t)
  ROOT r = (f32[3,1260], f32[3780], f32[27,140]) tuple(a, b, c)
}
"""
    assert_same_bits(text, np.arange(3780, dtype=np.float32).reshape(3, 20, 7, 9))
