"""Kernels that run along rows of a few elements, which follow each other in memory."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from test_strips import DTYPES, Chain, kernels, softmax

import backend_c
import hlo
import interp
from backend_c.ir.settings import Numerics, Settings, threaded
from backend_c.pipeline import compiled, lowered
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan
from hlo.bit_equality import differences


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """Chains along 3 to 17 elements or a few vectors and a rest, of one or two dimensions, with any
    number of rows."""
    several = [(2, 3), (3, 1, 5), (4, 5), (31,), (65,), (3, 33), (127,)]
    reduced = draw(st.one_of(st.tuples(st.integers(3, 17)), st.sampled_from(several)))
    many = st.tuples(st.integers(15, 150)), st.tuples(st.integers(1, 5), st.integers(10, 70))
    operations = st.sampled_from(("add", "maximum", "minimum"))
    return Chain(
        draw(st.sampled_from(sorted(DTYPES))),
        draw(st.one_of(many)),
        reduced,
        (),
        (draw(operations), draw(operations)),
        draw(st.sampled_from(("whole", "single", "reduction"))),
    )


@settings(max_examples=15)
@given(chains())
def test_a_chain_is_one_kernel_of_the_same_results(chain: Chain) -> None:
    module = chain.module
    note(hlo.format(module))
    (kernel,) = kernels(module)
    assert kernel.kind == "rows"
    dtype, error = DTYPES[chain.element_type]
    x = np.random.default_rng(1).uniform(0, 3, (*chain.outer, *chain.reduced)).astype(dtype)
    found = backend_c.compile(module)(x).astype(np.float64)
    expected = np.asarray(interp.evaluate(module, x)).astype(np.float64)
    assert np.allclose(found, expected, rtol=error, atol=error)


@pytest.mark.parametrize(
    ("dims", "result"),
    [
        *(((1000, 10), "f32"), ((3, 70, 8), "f64"), ((129, 16), "bf16")),
        *(((1000, 20), "f32"), ((3, 70, 31), "f64"), ((129, 100), "bf16")),
    ],
)
def test_softmax_of_short_rows(dims: tuple[int, ...], result: str) -> None:
    module = softmax(dims, len(dims) - 1, result)
    x = np.random.default_rng(1).normal(size=dims).astype(np.float32)
    powers = np.exp(x.astype(np.float64))
    executables = [compiled(module, Settings(Numerics.FAST, 1), threads=n) for n in (1, 2)]
    one, two = (np.asarray(executable(x)) for executable in executables)
    error = 1e-2 if result == "bf16" else 3e-6
    expected = powers / powers.sum(-1, keepdims=True)
    assert np.allclose(one.astype(np.float64), expected, rtol=error, atol=0)
    assert not differences(one, two)


# A bias of each group of 40 rows: no division in lanes finds the group of one.
_GROUPS = """HloModule groups
max {{ a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[] maximum(a, b) }}
ENTRY e {{ x = f32[6,{rows},8] parameter(0)
  bias = f32[6] parameter(1)
  place = f32[8] parameter(2)
  low = f32[] constant(-inf)
  groups = f32[6,{rows},8] broadcast(bias), dimensions={{0}}
  places = f32[6,{rows},8] broadcast(place), dimensions={{2}}
  moved = f32[6,{rows},8] add(x, groups)
  all = f32[6,{rows},8] multiply(moved, places)
  largest = f32[6,{rows}] reduce(all, low), dimensions={{2}}, to_apply=max
  most = f32[6,{rows},8] broadcast(largest), dimensions={{0,1}}
  ROOT r = f32[6,{rows},8] subtract(all, most) }}"""


@pytest.mark.parametrize("rows", [40, 5])
def test_what_groups_of_rows_share_is_read_without_division(rows: int) -> None:
    module = hlo.parse(_GROUPS.format(rows=rows))
    random = np.random.default_rng(rows)
    arguments = [random.integers(-9, 9, dims).astype("f4") for dims in ((6, rows, 8), (6,), (8,))]
    assert not differences(
        interp.evaluate(module, *arguments), backend_c.compile(module)(*arguments)
    )
    code = "\n".join(render_plan(lowered(module, threaded(Numerics.FAST)), OPENMP).sources.values())
    lanes = re.findall(r"#pragma omp simd.*?\n +for \(.*?\n +\}", code, re.DOTALL)
    assert lanes and not any(re.search(r"[/%]", loop) for loop in lanes)


def test_functions_of_elements_are_in_lanes() -> None:
    """Exponentials of eight elements of each row are those of many rows at a time."""
    module = softmax((1000, 8), 1)
    code = "\n".join(render_plan(lowered(module, threaded(Numerics.FAST)), OPENMP).sources.values())
    assert len(re.findall(r"= hlo_exponential", code)) == 1
    assert "hlo_interleaved_join_4" in code


_FOLD = """HloModule fold
op {{ a = f32[] parameter(0)
     b = f32[] parameter(1)
     ROOT r = f32[] {operation}(a, b) }}
ENTRY e {{ x = f32[{dims}] parameter(0)
  init = f32[] constant({init})
  ROOT r = f32[{kept}] reduce(x, init), dimensions={{{last}}}, to_apply=op }}"""


@pytest.mark.parametrize(
    ("dims", "is_strip"),
    [
        *(((100, 20), True), ((7, 9, 31), True), ((33, 127), True)),
        # Whole vectors, long rows, and fewer rows than lanes, each in its own loop; short ones are
        # written out.
        *(((100, 32), False), ((40, 129), False), ((15, 20), False), ((100, 12), False)),
    ],
)
@pytest.mark.parametrize(("operation", "init"), [("add", "0.5"), ("maximum", "-inf")])
def test_rows_that_fill_no_vectors_are_folded_side_by_side(
    dims: tuple[int, ...], is_strip: bool, operation: str, init: str
) -> None:
    sizes = [",".join(map(str, some)) for some in (dims, dims[:-1])]
    text = _FOLD.format(
        operation=operation, dims=sizes[0], kept=sizes[1], last=len(dims) - 1, init=init
    )
    module = hlo.parse(text)
    (kernel,) = kernels(module)
    assert (kernel.kind == "rows") == is_strip
    x = np.random.default_rng(2).integers(-9, 9, dims).astype(np.float32)
    x.flat[5] = np.nan
    assert not differences(interp.evaluate(module, x), backend_c.compile(module)(x))


_NARROW = """HloModule narrow
max {{ a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[] maximum(a, b) }}
ENTRY e {{ x = f32[{n},{length}] parameter(0)
  mask = pred[{n},{length}] parameter(1)
  k = {t}[{n},{length}] parameter(2)
  low = f32[] constant(-1e9)
  lows = f32[{n},{length}] broadcast(low), dimensions={{}}
  y = f32[{n},{length}] select(mask, x, lows)
  most = f32[{n}] reduce(y, low), dimensions={{1}}, to_apply=max
  all = f32[{n},{length}] broadcast(most), dimensions={{0}}
  is_most = pred[{n},{length}] compare(y, all), direction=EQ
  zero = {t}[] constant(0)
  zeros = {t}[{n},{length}] broadcast(zero), dimensions={{}}
  chosen = {t}[{n},{length}] select(is_most, k, zeros)
  ROOT t = (pred[{n},{length}], {t}[{n},{length}]) tuple(is_most, chosen) }}"""


@pytest.mark.parametrize("length", [5, 12, 20, 50, 127])
@pytest.mark.parametrize("element_type", ["s8", "u16", "u4", "f8e5m2", "f16"])
def test_narrow_arrays_are_transposed_as_wider_ones(length: int, element_type: str) -> None:
    module = hlo.parse(_NARROW.format(n=77, length=length, t=element_type))
    random = np.random.default_rng(length)
    x = random.integers(-9, 9, (77, length)).astype(np.float32)
    mask = random.integers(0, 3, (77, length)) > 0
    dtype = module.entry.parameters[2].shape.element_type.numpy  # type: ignore[union-attr]
    k = random.integers(0, 7, (77, length)).astype(dtype)
    expected = interp.evaluate(module, x, mask, k)
    found = backend_c.compile(module)(x, mask, k)
    assert isinstance(expected, tuple) and isinstance(found, tuple)
    assert not any(map(differences, expected, found))
