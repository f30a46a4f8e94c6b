"""Folds of few elements are written out in lanes over results, with the bits of the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import backend_c
import hlo
from backend_c.ir.settings import Numerics, launched, threaded
from backend_c.pipeline import lowered
from backend_c.render.dialect import CUDA, OPENMP
from backend_c.render.translation_units import render_plan
from hlo.types import ELEMENT_TYPES


def _largest(n: int, length: int) -> str:
    """Return a program that finds the largest element of each row, and its place."""
    return f"""HloModule m
largest {{
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  more = pred[] compare(a, b), direction=GT
  unordered = pred[] compare(a, a), direction=NE
  first = pred[] or(more, unordered)
  value = f32[] select(first, a, b)
  same = pred[] compare(a, b), direction=EQ
  before = pred[] compare(i, j), direction=LT
  tie = pred[] and(same, before)
  left = pred[] or(first, tie)
  place = s32[] select(left, i, j)
  ROOT t = (f32[], s32[]) tuple(value, place)
}}
ENTRY main {{
  x = f32[{n},{length}] parameter(0)
  i = s32[{n},{length}] iota(), iota_dimension=1
  least = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[{n}], s32[{n}]) reduce(x, i, least, zero), dimensions={{1}}, to_apply=largest
}}
"""


_POLYNOMIAL = """HloModule m
step {
  a = s16[] parameter(0)
  b = s16[] parameter(1)
  ten = s16[] constant(10)
  p = s16[] multiply(a, ten)
  ROOT s = s16[] subtract(p, b)
}
ENTRY main {
  x = s16[2,30,3] parameter(0)
  start = s16[] parameter(1)
  ROOT r = s16[30] reduce(x, start), dimensions={0,2}, to_apply=step
}
"""


def _text(program: str) -> str:
    plan = lowered(hlo.parse(program), threaded(Numerics.FAST))
    return "\n".join(render_plan(plan, OPENMP).sources.values())


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("length", [1, 2, 8, 9, 16, 17])
def test_the_largest_of_a_row_and_its_place(length: int) -> None:
    values = np.array([0, -0.0, 1, -1, np.nan, np.inf, -np.inf], np.float32)
    drawn = np.random.default_rng(length).choice(values, (100, length))
    assert_same_bits(_largest(100, length), drawn)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_a_fold_whose_order_counts() -> None:
    draw = np.random.default_rng(0).integers(-(2**15), 2**15, (2, 30, 3)).astype(np.int16)
    assert_same_bits(_POLYNOMIAL, draw, np.int16(7))


_SUM = """HloModule m
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
ENTRY main {{
  x = f32[{dims}] parameter(0)
  zero = f32[] constant(0.5)
  ROOT r = f32[{kept}] reduce(x, zero), dimensions={{{reduced}}}, to_apply=add
}}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize(
    ("dims", "reduced"),
    [
        *(((3, 1000), 0), ((8, 17), 0), ((5, 3, 100), 1), ((40_000, 3), 0), ((2, 20_000, 2), 1)),
        *(((100, 12), 1), ((5, 20, 16), 2), ((100, 17), 1), ((15, 12), 1)),
    ],
    ids=str,
)
def test_sums_of_few_and_few_columns(dims: tuple[int, ...], reduced: int) -> None:
    kept = [extent for d, extent in enumerate(dims) if d != reduced]
    dims_text, kept_text = (",".join(map(str, one)) for one in (dims, kept))
    module = hlo.parse(_SUM.format(dims=dims_text, kept=kept_text, reduced=reduced))
    drawn = np.random.default_rng(0).integers(-9, 9, dims).astype(np.float32)
    result = backend_c.compile(module, numerics="fast")(drawn)
    assert np.asarray(result).tobytes() == (drawn.sum(reduced) + np.float32(0.5)).tobytes()


_EXACT_SUM = """HloModule m
add {{
  a = {type}[] parameter(0)
  b = {type}[] parameter(1)
  ROOT s = {type}[] add(a, b)
}}
ENTRY main {{
  x = {type}[{dims}] parameter(0)
  init = {type}[] parameter(1)
  y = {type}[{dims}] multiply(x, x)
  z = {type}[{dims}] subtract(y, x)
  r = {type}[{kept}] reduce(z, init), dimensions={{{reduced}}}, to_apply=add
  ROOT n = {type}[{kept}] negate(r)
}}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("element_type", ["f32", "bf16", "f16"])
@pytest.mark.parametrize(
    ("dims", "reduced"),
    [((70, 3), (1,)), ((2, 130, 2, 2), (2, 3)), ((8, 64), (0,)), ((3, 9, 2), (0, 2))],
)
def test_exact_sums_of_few(
    element_type: str, dims: tuple[int, ...], reduced: tuple[int, ...]
) -> None:
    """Sums that cancel, are ties, negative zeros or not finite, beside those of many binades."""
    random, dtype = np.random.default_rng(len(dims)), ELEMENT_TYPES[element_type].numpy
    few = random.choice(
        [-1, 2, 1 + 2**-7, 2.0**-12, 0, -0.0, np.inf, np.nan], size=dims, p=[0.16] * 6 + [0.02] * 2
    )
    many = random.standard_normal(dims) * 2.0 ** random.integers(-7, 7, dims)
    kept = [extent for d, extent in enumerate(dims) if d not in reduced]
    texts = {
        name: ",".join(map(str, one))
        for name, one in (("dims", dims), ("kept", kept), ("reduced", reduced))
    }
    text = _EXACT_SUM.format(type=element_type, **texts)
    for values, init in ((few, -0.0), (many, 0.375)):
        assert_same_bits(text, values.astype(dtype), np.asarray(init, dtype))


def test_exact_sums_of_few_are_in_lanes() -> None:
    program = hlo.parse(_SUM.format(dims="100,3", kept="100", reduced=1))
    sources = render_plan(lowered(program, threaded(Numerics.EXACT)), OPENMP).sources
    assert "hlo_sum_decided_f32(t" in "".join(sources.values())  # an array of totals, not one


def test_columns_of_few_are_one_loop() -> None:
    assert _text(_SUM.format(dims="3,1000", kept="1000", reduced=0)).count("for (") == 1


def test_rows_of_few_are_one_loop() -> None:
    assert _text(_largest(100, 4)).count("for (") == 1
    assert "hlo_interleaved_split_4" in _text(_largest(100, 8))  # a row in each lane
    assert _text(_largest(100, 9)).count("for (") > 1
    assert _text(_POLYNOMIAL).count("for (") == 1
    plan = lowered(hlo.parse(_POLYNOMIAL), launched(Numerics.FAST))
    assert "".join(render_plan(plan, CUDA).sources.values()).count("for (") > 1


@pytest.mark.parametrize(("length", "lanes"), [(10, 0), (32, 1)])
def test_rows_that_fill_no_vectors_are_lanes(length: int, lanes: int) -> None:
    """The largest of ten is no loop of its own, in which most of two vectors are empty."""
    text = _SUM.format(dims=f"100,{length}", kept="100", reduced=1).replace("add(", "maximum(")
    assert _text(text).count("reduction(max") == lanes
