"""Windows that follow each other are reductions of blocks, with the same bits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given, note, settings
from hypothesis import strategies as st
from window_programs import window_program

import backend_c
import hlo
import interp
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.passes.windows.tiling_windows import tiling_windows
from interp.envelope.budget import FAST
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose


def _module(
    dims: tuple[int, ...], result: tuple[int, ...], window: str, operation: str = "add"
) -> Module:
    return window_program(dims, ",".join(map(str, result)), window, operation)


def _opcodes(module: Module) -> set[str]:
    return {i.opcode for i in module.entry.instructions}


@st.composite
def programs(draw: st.DrawFn) -> tuple[Module, tuple[int, ...]]:
    """Draw windows of more than 16 elements that tile an array, which may have a rest."""
    rank = draw(st.integers(1, 4))
    size = [draw(st.integers(1, 6)) for _ in range(rank)]
    size[-1] = draw(st.sampled_from([1, 8, 9, 17]))  # neighbours: none, or enough of them
    if math.prod(size) <= 16:
        size[0] = 17
    count = [draw(st.integers(1, 3)) for _ in size]
    count[-1] += size[-1] == 1
    rest = [draw(st.integers(0, one - 1)) for one in size]
    dims = tuple(s * c + r for s, c, r in zip(size, count, rest, strict=True))
    stride = [1 if c == 1 and draw(st.booleans()) and not r else s
              for s, c, r in zip(size, count, rest, strict=True)]  # fmt: skip
    words = ("x".join(map(str, one)) for one in (size, stride))
    operation = draw(st.sampled_from(["add", "maximum", "subtract"]))
    return _module(dims, tuple(count), "size={} stride={}".format(*words), operation), dims


@given(programs())
@settings(deadline=None, max_examples=60)
def test_blocks_have_the_bits_of_windows(program: tuple[Module, tuple[int, ...]]) -> None:
    module, dims = program
    note(hlo.format(module))
    changed = tiling_windows(module)
    hlo.verify(changed)
    assert "reduce-window" not in _opcodes(changed)
    x = np.random.default_rng(len(dims)).normal(size=dims).astype(np.float32)
    assert not differences(interp.evaluate(module, x), interp.evaluate(changed, x))


@pytest.mark.parametrize(
    ("dims", "result", "window"),
    [
        ((99,), (4,), "size=20 stride=25"),  # with gaps
        ((99,), (8,), "size=20 stride=10"),  # that overlap
        ((99,), (5,), "size=20 stride=20 pad=1_0"),
        ((50,), (4,), "size=20 stride=20 lhs_dilate=2"),
        ((99,), (4,), "size=20 stride=20 rhs_dilate=2"),
        ((64,), (4,), "size=16 stride=16"),  # written out
        ((40, 40), (8, 8), "size=5x5 stride=5x5"),  # short runs
    ],
)
def test_other_windows_stay(dims: tuple[int, ...], result: tuple[int, ...], window: str) -> None:
    module = _module(dims, result, window)
    hlo.verify(module)
    assert tiling_windows(module) == module


def test_bounded_arrays_keep_their_windows() -> None:
    text = hlo.format(_module((60,), (3,), "size=20 stride=20"))
    module = hlo.parse(text.replace("f32[60]", "f32[<=60]").replace("f32[3]", "f32[<=3]"))
    assert tiling_windows(module) == module


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("operation", ["add", "maximum"])
@pytest.mark.parametrize(
    ("dims", "result", "window"),
    [
        ((700,), (2,), "size=333 stride=333"),
        ((3, 16, 24, 5), (3, 2, 3, 5), "size=1x8x8x1 stride=1x8x8x1"),
    ],
)
def test_fast_c_is_within_its_budget(
    dims: tuple[int, ...], result: tuple[int, ...], window: str, operation: str
) -> None:
    module = _module(dims, result, window, operation)
    x = np.random.default_rng(3).normal(size=dims).astype(np.float32)
    found = np.asarray(backend_c.compile(module, numerics="fast")(x))
    assert contains(enclose(module, x, peer=FAST).result, found).all()
