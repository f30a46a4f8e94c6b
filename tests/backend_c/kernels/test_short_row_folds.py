"""Folds of several operands along short rows, a row in each lane, have the interpreter's bits."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from backend_c.ir.settings import Numerics, alone, launched, threaded
from backend_c.pipeline import lowered
from fuzz.compilers.combined_programs import merged
from hlo.bit_equality import differences
from hlo.values import Array

_DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "s8": np.int8,
    "u8": np.uint8,
    "s32": np.int32,
    "u32": np.uint32,
    "s64": np.int64,
}
_SHAPES = (
    *((50, 2), (2, 41, 3), (37, 4), (70, 5), (33, 9)),
    *((100, 20), (2, 17, 24), (3, 40, 33), (19, 48), (65, 127), (16, 100)),
)


def _argmax(t: str, dims: tuple[int, ...], direction: str, *, is_last: bool, source: str) -> str:
    """Write an argmax or argmin; of equal values the last one or the first, which zeros tell."""
    whole, kept = (",".join(map(str, one)) for one in (dims, dims[:-1]))
    return f"""HloModule m
c {{
  a = {t}[] parameter(0)
  i = s64[] parameter(1)
  b = {t}[] parameter(2)
  j = s64[] parameter(3)
  better = pred[] compare(a, b), direction={direction}
  equal = pred[] compare(a, b), direction=EQ
  none = pred[] compare(a, a), direction=NE
  first = pred[] or(better, none)
  early = pred[] or(first, equal)
  value = {t}[] select({"first" if is_last else "early"}, a, b)
  before = pred[] compare(i, j), direction=LT
  tie = pred[] and(equal, before)
  keeps = pred[] or(first, tie)
  index = s64[] select(keeps, i, j)
  ROOT r = ({t}[], s64[]) tuple(value, index)
}}
ENTRY e {{
  p = {t}[{whole}] parameter(0)
  x = {t}[{whole}] {source}
  v = {t}[] parameter(1)
  n = s64[] parameter(2)
  i = s64[{whole}] iota(), iota_dimension={len(dims) - 1}
  ROOT r = ({t}[{kept}], s64[{kept}]) reduce(x, i, v, n), dimensions={{{len(dims) - 1}}}, to_apply=c
}}
"""


def _values(t: str, dims: tuple[int, ...]) -> Array:
    """Draw values of which zeros of both signs are often the best, NaN sometimes."""
    rng = np.random.default_rng(sum(dims))
    dtype = np.dtype(_DTYPES[t])
    if dtype.kind in "iu":
        return rng.integers(0, 100, dims).astype(dtype)
    drawn = -np.abs(rng.normal(size=dims))
    for special, share in ((0.0, 0.05), (-0.0, 0.05), (np.nan, 0.004), (-np.inf, 0.01)):
        drawn[rng.random(dims) < share] = special
    return np.asarray(drawn.astype(dtype))


@pytest.mark.sampled(3)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("dims", _SHAPES, ids=str)
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_extrema_of_short_rows(numerics: str, dims: tuple[int, ...]) -> None:
    forms = itertools.cycle(
        itertools.product(("GT", "LT"), (True, False), ("copy(p)", "add(p, p)"))
    )
    cases = [(t, *next(forms)) for t in (*_DTYPES, *_DTYPES)]
    modules = [
        hlo.parse(_argmax(t, dims, direction, is_last=is_last, source=source))
        for t, direction, is_last, source in cases
    ]
    given = []
    for t, direction, *_ in cases:
        x = _values(t, dims) if direction == "GT" else np.negative(_values(t, dims))
        given.append((x, np.asarray(0, _DTYPES[t]), np.int64(3)))
    executable = backend_c.compile(merged(modules), numerics=numerics)
    expected = [interp.evaluate(m, *one) for m, one in zip(modules, given, strict=True)]
    for found in (executable.in_threads(n)(*itertools.chain(*given)) for n in (1, 3)):
        for case, one, other in zip(cases, expected, found, strict=True):
            assert not differences(one, other), case


_LAST_OF_THREE = """HloModule m
c {
  a = f32[] parameter(0)
  i = pred[] parameter(1)
  p = s8[] parameter(2)
  b = f32[] parameter(3)
  j = pred[] parameter(4)
  q = s8[] parameter(5)
  w = pred[] compare(a, b), direction=GE
  v = f32[] select(w, a, b)
  k = pred[] xor(i, j)
  d = s8[] subtract(p, q)
  ROOT t = (f32[], pred[], s8[]) tuple(v, k, d)
}
ENTRY e {
  x = f32[3,30,LENGTH] parameter(0)
  y = pred[3,30,LENGTH] parameter(1)
  u = s8[3,30,LENGTH] parameter(2)
  n = s8[3,30,LENGTH] multiply(u, u)
  z = f32[] parameter(3)
  o = pred[] constant(false)
  s = s8[] constant(5)
  ROOT r = (f32[3,30], pred[3,30], s8[3,30]) reduce(x, y, n, z, o, s), dimensions={2}, to_apply=c
}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("length", [17, 32, 64])
def test_any_computation_is_folded_in_order(length: int) -> None:
    module = hlo.parse(_LAST_OF_THREE.replace("LENGTH", str(length)))
    rng = np.random.default_rng(length)
    dims = (3, 30, length)
    x = rng.integers(-3, 3, dims).astype(np.float32)
    given = (x, rng.random(dims) < 0.5, rng.integers(-99, 99, dims).astype(np.int8), np.float32(1))
    expected = interp.evaluate(module, *given)
    for numerics in ("exact", "fast"):
        assert not differences(expected, backend_c.compile(module, numerics=numerics)(*given))


def _is_in_lanes(module: hlo.Module, settings: Any) -> bool:
    return "transpose_tile" in str(lowered(module, settings).kernels)


def test_where_rows_are_lanes() -> None:
    """Rows that are several whole vectors, few rows, and other targets have their own loops."""
    lanes = threaded(Numerics.EXACT)
    for dims, is_here in (((70, 20), True), ((70, 32), True), ((70, 64), False), ((9, 20), False)):
        text = _argmax("f32", dims, "GT", is_last=True, source="copy(p)")
        assert _is_in_lanes(hlo.parse(text), lanes) == is_here
    module = hlo.parse(_argmax("f32", (70, 20), "GT", is_last=True, source="copy(p)"))
    assert not _is_in_lanes(module, launched(Numerics.EXACT))
    assert not _is_in_lanes(module, alone(Numerics.EXACT))
