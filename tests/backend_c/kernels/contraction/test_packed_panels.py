"""Exact products pack their factors line by line or step by step, by how they lie in memory."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import hlo
import interp
from backend_c.ir.settings import Numerics, Settings, threaded
from backend_c.pipeline import compiled, lowered
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan
from hlo.bit_equality import differences

_DTYPES = {"f32": np.dtype(np.float32), "bf16": np.dtype(ml_dtypes.bfloat16)}
_LAYOUTS = ("b01f_01io->b01f", "bf01_oi01->bf01", "01bf_i01o->01bf")


def _placed(label: str, sizes: dict[str, int]) -> tuple[int, ...]:
    """Return the dims of an array whose dimensions are the letters of a label."""
    return tuple(sizes[letter] for letter in label)


def _convolution(
    labels: str, element_type: str, sizes: tuple[int, int, int, int], window: str, groups: int
) -> str:
    """Return a convolution of ``sizes``: the batch, an image's side, features and results of a
    group."""
    (batch, side, features, results), taps = sizes, int(window[5])
    left, right = labels.split("->")[0].split("_")
    x = _placed(left, {"b": batch, "f": features * groups, "0": side, "1": side})
    w = _placed(right, {"i": features, "o": results * groups, "0": taps, "1": taps})
    texts = [f"{element_type}[{','.join(map(str, dims))}]" for dims in (x, w)]
    return f"""HloModule m
ENTRY e {{
  x = {texts[0]} parameter(0)
  w = {texts[1]} parameter(1)
  ROOT r = convolution(x, w), window={{{window}}}, dim_labels={labels}, feature_group_count={groups}
}}"""


def _agrees(text: str, element_type: str, chosen: Settings, seed: int) -> None:
    """Assert the interpreter's bits of factors of a few binades, some of which cancel, with zeros,
    an infinity and a NaN among them."""
    module, random, arrays = hlo.parse(text), np.random.default_rng(seed), []
    for instruction in module.entry.instructions[:2]:
        dims = instruction.shape.dims  # type: ignore[union-attr]
        values = random.standard_normal(dims) * 2.0 ** random.integers(-9, 9, dims)
        values[random.random(dims) < 0.1] = 0.0
        arrays.append(np.asarray(values.astype(_DTYPES[element_type])))
    if seed % 2:
        flat = arrays[0].reshape(-1)
        flat[random.integers(flat.size)], flat[random.integers(flat.size)] = np.inf, np.nan
    expected = interp.evaluate(module, *arrays)
    executable = compiled(module, chosen, threads=2)
    assert not differences(expected, executable(*arrays))


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@settings(max_examples=12)
@given(
    st.sampled_from(_LAYOUTS),
    st.sampled_from(sorted(_DTYPES)),
    st.tuples(
        st.integers(1, 3), st.integers(4, 11), st.sampled_from([15, 16, 21, 40]), st.integers(9, 33)
    ),
    st.sampled_from(
        [
            "size=1x1",
            "size=3x3 pad=1_1x1_1",
            "size=3x3 stride=2x1 pad=0_2x-1_3",
            "size=2x2 pad=1_0x2_2 rhs_dilate=2x1 rhs_reversal=1x0",
        ]
    ),
    st.tuples(st.sampled_from([1, 1, 2]), st.sampled_from([1 << 11, 1 << 24]), st.integers(0, 99)),
)
def test_convolutions(
    labels: str,
    element_type: str,
    sizes: tuple[int, int, int, int],
    window: str,
    drawn: tuple[int, int, int],
) -> None:
    groups, most, seed = drawn
    text = _convolution(labels, element_type, sizes, window, groups)
    _agrees(text, element_type, Settings(grain=1, most_packed=most), seed)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@settings(max_examples=12)
@given(
    st.tuples(st.integers(9, 40), st.integers(9, 40), st.integers(1, 80)),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from(sorted(_DTYPES)),
    st.tuples(st.sampled_from([1 << 11, 1 << 24]), st.integers(0, 99)),
)
def test_products(
    sizes: tuple[int, int, int],
    sides: tuple[bool, bool],
    element_type: str,
    drawn: tuple[int, int],
) -> None:
    """Factors lie in memory by rows or by columns, and have a batch."""
    (m, n, k), (left, right), (most, seed) = sizes, sides, drawn
    x, y = ((k, m) if left else (m, k)), ((n, k) if right else (k, n))
    text = f"""HloModule m
ENTRY e {{
  x = {element_type}[2,{x[0]},{x[1]}] parameter(0)
  y = {element_type}[2,{y[0]},{y[1]}] parameter(1)
  ROOT r = dot(x, y), lhs_batch_dims={{0}}, rhs_batch_dims={{0}},
    lhs_contracting_dims={{{1 if left else 2}}}, rhs_contracting_dims={{{2 if right else 1}}}
}}"""
    _agrees(text, element_type, Settings(grain=1, most_packed=most), seed)


@pytest.mark.parametrize("labels", _LAYOUTS)
def test_lines_of_a_convolution_take_no_division_inside(labels: str) -> None:
    """Where a line lies in memory is found once, not for each factor of it."""
    text = _convolution(labels, "f32", (2, 13, 32, 64), "size=3x3 pad=1_1x1_1", 1)
    plan = lowered(hlo.parse(text), threaded(Numerics.EXACT))
    code = "\n".join(render_plan(plan, OPENMP).sources.values())
    packing = code[: code.index("hlo_tile(")]
    loads = re.findall(r"a[01]\[([^\]]*)\]", packing)
    assert loads and not any(re.search(r"[/%]", load) for load in loads)
