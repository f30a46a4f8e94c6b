"""The first elements of short rows, with the bits of the interpreter: ties, zeros, NaN."""

from __future__ import annotations

import re

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import hlo
from backend_c.ir.settings import Numerics, threaded
from backend_c.pipeline import lowered
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan
from hlo.types import ELEMENT_TYPES

_SPECIAL = [0.0, -0.0, 1.0, -1.0, 1.5, np.nan, -np.nan, np.inf, -np.inf]


def _topk(element_type: str, dims: tuple[int, ...], k: int, largest: bool) -> str:
    *rows, _ = dims
    whole, kept = (",".join(map(str, one)) for one in (dims, (*rows, k)))
    return f"""HloModule m
ENTRY e {{
  x = {element_type}[{whole}] parameter(0)
  ROOT t = ({element_type}[{kept}], s32[{kept}]) topk(x), k={k}, largest={str(largest).lower()}
}}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@settings(max_examples=12)
@given(
    st.sampled_from(["f32", "bf16", "f16", "f8e4m3fn", "s32", "u32", "s8", "u16", "f64", "pred"]),
    st.sampled_from([(100,), (3, 7), (2, 31), (16,)]),
    st.integers(1, 17),
    st.data(),
)
def test_the_same_bits(
    element_type: str, rows: tuple[int, ...], length: int, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, min(length, 6)), "k")
    dtype, random = ELEMENT_TYPES[element_type].numpy, np.random.default_rng(length)
    dims = (*rows, length)
    if np.issubdtype(dtype, np.integer):
        ends = np.iinfo(dtype)
        few = random.choice([ends.min, ends.max, 0, 1, ends.max // 2 + 1], dims)
        x = few.astype(dtype)
    elif element_type == "pred":
        x = random.random(dims) < 0.5
    else:
        x = random.choice(_SPECIAL, dims).astype(dtype)
    assert_same_bits(_topk(element_type, dims, k, data.draw(st.booleans(), "largest")), x)


@pytest.mark.parametrize("k", [2, 5])
def test_rows_are_lanes_without_choices(k: int) -> None:
    module = hlo.parse(_topk("f32", (100, 16), k, True))
    code = "\n".join(render_plan(lowered(module, threaded(Numerics.FAST)), OPENMP).sources.values())
    assert ("hlo_sort_u64" in code) == (k == 5)
    (kernel,) = re.findall(r"^static void kernel_0.*?^}", code, re.DOTALL | re.MULTILINE)
    assert k == 5 or "?" not in kernel
