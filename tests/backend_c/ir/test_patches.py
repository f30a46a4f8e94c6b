"""Elements that a large patch leaves as they are, are copied once each, in boxes beside it."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler
from hypothesis import given
from hypothesis import strategies as st

from backend_c.ir import index as ix
from backend_c.ir.element import Element, Patch, boxes_beside
from backend_c.ir.loop_ir import INDEX, Constant, Expr, Variable
from hlo.types import F32, ArrayShape

_BOXES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=3
)


def _patch(firsts: list[Expr], window: list[int], dims: list[int]) -> Patch:
    def of(shape: list[int]) -> Element:
        return Element(ArrayShape(F32, tuple(shape)), lambda *index: Constant(F32, 0.0))

    return Patch(of(dims), of(window), tuple(firsts))


@given(_BOXES)
def test_each_element_is_in_one_box(boxes: list[tuple[int, int, int]]) -> None:
    window, dims = [size for _, size, _ in boxes], [sum(box) for box in boxes]
    patch = _patch([ix.constant(first) for first, _, _ in boxes], window, dims)
    times = Counter(
        tuple(first + i for first, i in zip(firsts, index, strict=True))
        for firsts, extents in boxes_beside(patch)
        for index in itertools.product(*map(range, extents))
    )
    inside = itertools.product(*(range(first, first + size) for first, size, _ in boxes))
    whole = Counter(itertools.product(*map(range, dims)))
    is_large = 2 * np.prod(window) >= np.prod(dims)
    assert times == (whole - Counter(inside) if is_large else whole)


def test_a_place_that_is_not_known() -> None:
    patch = _patch([Variable(INDEX, "i", 0, 1), ix.constant(0)], [7, 8], [8, 8])
    assert [*boxes_beside(patch)] == [((0, 0), (8, 8))]


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("starts", [(0, 0, 0), (1, 1, 2), (9, -1, 1)])
def test_the_interpreters_bits(starts: tuple[int, int, int]) -> None:
    """An update of what is read beside it, at places that are clamped."""
    places = "\n  ".join(f"i{d} = s32[] constant({start})" for d, start in enumerate(starts))
    text = f"""HloModule m
ENTRY e {{
  x = f32[4,9,6] parameter(0)
  y = f32[4,9,6] parameter(1)
  {places}
  u = f32[3,8,5] slice(x), slice={{[1:4], [0:8], [1:6]}}
  v = f32[3,8,5] slice(y), slice={{[0:3], [1:9], [0:5]}}
  w = f32[3,8,5] subtract(u, v)
  r = f32[4,9,6] dynamic-update-slice(x, w, i0, i1, i2)
  ROOT t = (f32[4,9,6], f32[4,9,6]) tuple(r, x)
}}
"""
    random = np.random.default_rng(0)
    x, y = (random.standard_normal((4, 9, 6)).astype(np.float32) for _ in range(2))
    assert_same_bits(text, x, y)
