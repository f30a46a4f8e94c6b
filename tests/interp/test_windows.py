"""Windows far longer than what they slide over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
from hlo.attributes import WindowDimension
from interp import evaluate
from interp.windows import elements_at, positions, trimmed

WINDOWS = st.builds(
    WindowDimension,
    size=st.integers(1, 12),
    stride=st.integers(1, 4),
    padding_low=st.integers(-4, 14),
    padding_high=st.integers(-4, 14),
    base_dilation=st.integers(1, 4),
    window_dilation=st.integers(1, 4),
)


def elements(window: WindowDimension, extent: int) -> list[list[Any]]:
    """The elements at each offset that has any, and where they are."""
    found = (elements_at(window, extent, offset) for offset in range(window.size))
    return [[index.tolist(), inside.tolist()] for index, inside in found if inside.any()]


@given(WINDOWS, st.integers(0, 9))
def test_a_trimmed_window_has_the_same_elements(window: WindowDimension, extent: int) -> None:
    short = trimmed(window, extent)
    assert short.size <= window.size
    assert positions(short, extent) == positions(window, extent)
    assert elements(short, extent) == elements(window, extent)


PROGRAM = """HloModule long
f { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] OPCODE(a, b) }
ENTRY e { x = f32[3] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[3] reduce-window(x, zero), window={size=4000000000 pad=3999999999_0}, to_apply=f }
"""


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [("add", [1, 3, 6]), ("maximum", [1, 2, 3]), ("subtract", [-1, -3, -6])],
)
def test_padding_beyond_any_memory_takes_none(opcode: str, expected: list[int]) -> None:
    module = hlo.parse(PROGRAM.replace("OPCODE", opcode))
    assert evaluate(module, np.array([1, 2, 3], np.float32)).tolist() == expected
