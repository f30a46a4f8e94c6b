"""Gathers and slices at uncertain places are enclosed by what each choice of them moves."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import hlo
from interp.envelope.budget import FAST
from interp.envelope.enclosure import Enclosure, point
from interp.envelope.single_steps import EnclosedSteps

_ROWS, _COLUMNS, _VECTORS = 4, 5, 3

_GATHER = f"""HloModule m
ENTRY e {{{{ x = f32[{_ROWS},{_COLUMNS}] parameter(0)
  i = s32[{{dims}}] parameter(1)
  ROOT r = f32[{_VECTORS}] gather(x, i), offset_dims={{{{}}}}, collapsed_slice_dims={{{{0,1}}}},
    start_index_map={{{{1,0}}}}, index_vector_dim={{axis}}, slice_sizes={{{{1,1}}}} }}}}
"""
_SLICE = f"""HloModule m
ENTRY e {{ x = f32[{_ROWS},{_COLUMNS}] parameter(0)
  i = s8[] parameter(1)
  j = u8[] parameter(2)
  ROOT r = f32[2,2] dynamic-slice(x, i, j), dynamic_slice_sizes={{2,2}} }}
"""


def _enclosed(text: str, operands: list[Enclosure]) -> Enclosure:
    module = hlo.parse(text)
    root = module.entry.root_instruction
    found = EnclosedSteps(module, peer=FAST).value(root, operands)
    assert isinstance(found, Enclosure)
    return found


def _between(low: np.ndarray, high: np.ndarray) -> Enclosure:
    return Enclosure(low, high, np.zeros(low.shape, np.bool_))


@given(
    st.integers(0, 1),
    st.lists(st.integers(-2, 6), min_size=6, max_size=6),
    st.lists(st.integers(0, 2), min_size=6, max_size=6),
    st.integers(0, 2**32 - 1),
)
def test_a_gather_takes_the_hull_of_what_each_vector_may_be(
    axis: int, lowest: list[int], widths: list[int], seed: int
) -> None:
    x = np.random.default_rng(seed).standard_normal((_ROWS, _COLUMNS)).astype(np.float32)
    low = np.array(lowest, np.int32).reshape(_VECTORS, 2)  # of columns, then of rows
    high = low + np.array(widths, np.int32).reshape(_VECTORS, 2)
    laid_out = (lambda a: a) if axis else np.transpose
    dims = f"{_VECTORS},2" if axis else f"2,{_VECTORS}"
    operands = [point(x), _between(laid_out(low), laid_out(high))]
    found = _enclosed(_GATHER.format(dims=dims, axis=axis), operands)
    for n in range(_VECTORS):
        columns = np.clip(np.arange(low[n, 0], high[n, 0] + 1), 0, _COLUMNS - 1)
        rows = np.clip(np.arange(low[n, 1], high[n, 1] + 1), 0, _ROWS - 1)
        legal = x[np.ix_(rows, columns)]
        assert found.low[n] == legal.min() and found.high[n] == legal.max()


@given(st.integers(-3, 5), st.integers(0, 2), st.integers(0, 6), st.integers(0, 2))
def test_a_slice_is_the_hull_of_those_at_each_start(i: int, wide: int, j: int, high: int) -> None:
    x = np.arange(_ROWS * _COLUMNS, dtype=np.float32).reshape(_ROWS, _COLUMNS)
    starts = [
        _between(np.array(i, np.int8), np.array(i + wide, np.int8)),
        _between(np.array(j, np.uint8), np.array(j + high, np.uint8)),
    ]
    found = _enclosed(_SLICE, [point(x), *starts])
    legal = []
    for row, column in itertools.product(range(i, i + wide + 1), range(j, j + high + 1)):
        row, column = min(max(row, 0), _ROWS - 2), min(column, _COLUMNS - 2)
        legal.append(x[row : row + 2, column : column + 2])
    assert np.array_equal(found.low, np.min(legal, 0)), (found.low, legal)
    assert np.array_equal(found.high, np.max(legal, 0))


def test_of_many_choices_each_element_may_be_any() -> None:
    x = np.arange(_ROWS * _COLUMNS, dtype=np.float32).reshape(_ROWS, _COLUMNS)
    low, high = np.zeros((_VECTORS, 2), np.int32), np.full((_VECTORS, 2), 9, np.int32)
    low[0], high[0] = 1, 1
    found = _enclosed(_GATHER.format(dims=f"{_VECTORS},2", axis=1), [point(x), _between(low, high)])
    assert (found.low == 0).all() and (found.high == 19).all()
