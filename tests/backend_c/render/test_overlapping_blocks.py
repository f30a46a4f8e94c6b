"""Short rows of elementary functions are whole blocks, of which the last two overlap."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import backend_c
import hlo
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import INDEX, Apply, Array, Kernel, Load, Loop, Store, Variable
from backend_c.ir.settings import Numerics, Settings
from backend_c.pipeline import lowered
from backend_c.render.dialect import EMBEDDED, OPENMP, Dialect
from backend_c.render.overlapping_blocks import with_overlapping_blocks
from backend_c.render.translation_units import render_plan
from hlo.types import ELEMENT_TYPES, F32

_LENGTHS = (5, 7, 11, 14, 18, 23, 29, 61, 100, 127, 235)
_BLOCK = re.compile(r"hlo_clamp_index\(0, \(b\d+ \* (\d+)\), (\d+)\)")


_MASK = """
  mask = pred[9,{n}] parameter(1)
  zero = {t}[] constant(0)
  zeros = {t}[9,{n}] broadcast(zero), dimensions={{}}
  kept = {t}[9,{n}] select(mask, less, zeros)"""


def _masked(length: int, element: str = "f32") -> str:
    """Return the same of what a mask lets through."""
    text = _rows(length, element).replace("tanh(less)", "tanh(kept)")
    return text.replace("\n  ROOT r", _MASK.format(n=length, t=element) + "\n  ROOT r")


def _rows(length: int, element: str = "f32", opcode: str = "tanh") -> str:
    """Return a program whose rows depend on each other, so that each is a loop of its own."""
    return f"""HloModule m
max {{ a = {element}[] parameter(0)
  b = {element}[] parameter(1)
  ROOT m = {element}[] maximum(a, b) }}
ENTRY main {{
  x = {element}[9,{length}] parameter(0)
  low = {element}[] constant(-inf)
  most = {element}[9] reduce(x, low), dimensions={{1}}, to_apply=max
  wide = {element}[9,{length}] broadcast(most), dimensions={{0}}
  less = {element}[9,{length}] subtract(x, wide)
  ROOT r = {element}[9,{length}] {opcode}(less)
}}
"""


def _text(text: str, numerics: Numerics = Numerics.FAST, dialect: Dialect = OPENMP) -> str:
    program = render_plan(lowered(hlo.parse(text), Settings(numerics)), dialect)
    return "".join(program.sources.values())


@pytest.mark.sampled(1)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize(
    ("element", "opcode"),
    [("f32", "exponential"), ("f64", "tanh"), ("bf16", "log-plus-one"), ("f16", "logistic")],
)
def test_rows_of_any_length_have_the_bits_of_the_interpreter(element: str, opcode: str) -> None:
    rng = np.random.default_rng(0)
    for length in _LENGTHS[::2]:
        kind = ELEMENT_TYPES[element].numpy
        rows = rng.normal(size=(9, length)).astype(kind)
        assert_same_bits(_rows(length, element, opcode), rows)


@pytest.mark.sampled(2)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("compiler", ["gcc", "gcc -march=haswell", "clang"])
def test_fast_elements_do_not_depend_on_their_place(
    compiler: str, choose_compiler: Callable[[str], None]
) -> None:
    choose_compiler(compiler)
    wide = np.random.default_rng(0).normal(size=(9, 256)).astype(np.float32)
    wide[:, 0] = 4  # the maximum of each row, however long
    whole = np.asarray(backend_c.compile(hlo.parse(_rows(256)))(wide))
    for length in _LENGTHS[::3]:
        executable = backend_c.compile(hlo.parse(_rows(length)))
        found = np.asarray(executable(np.ascontiguousarray(wide[:, :length])))
        assert found.tobytes() == np.ascontiguousarray(whole[:, :length]).tobytes()


@pytest.mark.parametrize(
    ("length", "lanes"),
    [(61, 16), (18, 16), (14, 8), (6, 4), (100, 16), (235, 16)]  # of each block
    + [(4, 0), (5, 0), (16, 0), (17, 0), (64, 0), (24, 0), (600, 0)],  # none: nothing remains
)
def test_blocks_are_as_wide_as_vectors(length: int, lanes: int) -> None:
    found = _BLOCK.findall(_text(_rows(length)))
    assert found == ([(str(lanes), str(length - lanes))] if lanes else [])


def test_rows_of_no_elements_stay_as_they_are() -> None:
    lane = Variable(INDEX, "i1", 0, 0)
    argument, result = Array("a0", F32, 0), Array("r0", F32, 0, mutable=True)
    value = Apply("tanh", (Load(argument, lane),), F32)
    loop = Loop(lane, ix.constant(0), "lanes", (Store(result, lane, value),))
    kernel = Kernel((argument,), (result,), (), (loop,), Numerics.FAST)
    assert with_overlapping_blocks(kernel) == kernel


def test_functions_of_f64_have_blocks_of_half_as_many_lanes() -> None:
    assert _BLOCK.findall(_text(_rows(30, "f64"))) == [("8", "22")]
    assert _BLOCK.findall(_text(_rows(30), Numerics.EXACT)) == [("8", "22")]


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_preds_are_read_apart_from_what_they_choose() -> None:
    """A byte beside numbers of 32 bits would have vectors of a quarter of their lanes."""
    rng = np.random.default_rng(0)
    text = _text(_masked(61))
    assert "m1x0[j1] != 0" in text and text.count("a1[") == 1
    rows, mask = rng.normal(size=(9, 61)).astype(np.float32), rng.random((9, 61)) < 0.5
    assert_same_bits(_masked(61), rows, mask)


@pytest.mark.parametrize(("length", "lanes"), [(25, 16), (24, 16), (64, 0)])
def test_rows_with_preds_have_no_remainder_of_bytes(length: int, lanes: int) -> None:
    """Vectors of bytes have more lanes: of 25 elements gcc would compute nine one by one."""
    found = _BLOCK.findall(_text(_masked(length)))
    assert found == ([(str(lanes), str(length - lanes))] if lanes else [])


@pytest.mark.parametrize(("stride", "places", "lanes"), [(1, 56, 16), (2, 28, 0)])
def test_long_elements_are_in_blocks_where_neighbours_are_read(
    stride: int, places: int, lanes: int
) -> None:
    """Maxima of 3 x 3; the last vector of every second element would read one too many."""
    text = f"""HloModule m
max {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b) }}
ENTRY main {{
  x = f32[2,56,56] parameter(0)
  low = f32[] constant(-inf)
  ROOT r = f32[2,{places},{places}] reduce-window(x, low),
    window={{size=1x3x3 stride=1x{stride}x{stride} pad=0_0x1_1x1_1}}, to_apply=max
}}
"""
    found = {int(size) for size, _ in _BLOCK.findall(_text(text))}
    assert found == ({lanes} if lanes else set())


def test_short_bodies_stay_one_loop() -> None:
    assert not _BLOCK.search(_text(_rows(61), dialect=EMBEDDED))
    assert not _BLOCK.search(_text(_rows(61, opcode="negate")))
