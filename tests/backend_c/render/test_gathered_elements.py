"""Elements at computed offsets are loaded apart from what is done with them, block by block."""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import hlo
from backend_c.ir.settings import Settings
from backend_c.pipeline import lowered
from backend_c.render.dialect import EMBEDDED, OPENMP, Dialect
from backend_c.render.translation_units import render_plan

_LOOKED_UP = (
    "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,"
    " slice_sizes={1}"
)
_ADD = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
"""


def _steps(n: int, element: str = "f32", index: str = "s32") -> str:
    """Return a program that looks up where to look up, computes with what it found, and adds it
    up."""
    return f"""HloModule m
{_ADD}
ENTRY main {{
  table = {element}[100] parameter(0)
  links = {index}[90] parameter(1)
  x = {index}[{n}] parameter(2)
  first = {index}[{n}] gather(links, x), {_LOOKED_UP}
  one = {index}[] constant(1)
  ones = {index}[{n}] broadcast(one), dimensions={{}}
  place = {index}[{n}] add(first, ones)
  found = {element}[{n}] gather(table, place), {_LOOKED_UP}
  beside = {element}[{n}] gather(table, x), {_LOOKED_UP}
  sum = {element}[{n}] add(found, beside)
  wide = f32[{n}] convert(sum)
  zero = f32[] constant(0)
  total = f32[] reduce(wide, zero), dimensions={{0}}, to_apply=add
  ROOT t = ({element}[{n}], {index}[{n}], f32[]) tuple(sum, place, total)
}}
"""


def _texts(program: str, dialect: Dialect = OPENMP) -> Collection[str]:
    return render_plan(lowered(hlo.parse(program), Settings()), dialect).sources.values()


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize(
    ("n", "element", "index"),
    [(3, "f32", "s32"), (64, "bf16", "u8"), (130, "f16", "s64"), (65, "c64", "s16")]
    + [(200, "pred", "u32"), (77, "f8e4m3fn", "s8"), (129, "s4", "u64"), (100, "f64", "u16")],
)
def test_blocks_of_any_length_have_the_bits_of_the_interpreter(
    n: int, element: str, index: str
) -> None:
    program = _steps(n, element, index)
    if element == "c64":
        program = program.replace("convert(sum)", "real(sum)")
    module, draw = hlo.parse(program), np.random.default_rng(0)
    # Some are beyond the bounds: offsets are clamped.
    values = (draw.integers(-7, 8, 100), draw.integers(0, 120, 90), draw.integers(0, 100, n))
    types = [parameter.shape.element_type.numpy for parameter in module.entry.parameters]
    assert_same_bits(program, *map(np.ndarray.astype, values, types))


def test_loads_are_in_loops_of_their_own() -> None:
    gather = re.compile(r"= a\d\[x")
    (text,) = _texts(_steps(130))
    assert gather.search(text)
    for block in text.split("#pragma omp simd")[1:]:
        assert not gather.search(block[: block.index("}")])


def test_short_loops_and_other_dialects_stay_whole() -> None:
    for program, dialect in ((_steps(3), OPENMP), (_steps(130), EMBEDDED)):
        assert not any("xg1x" in text for text in _texts(program, dialect))


def test_affine_offsets_stay_in_their_loops() -> None:
    program = """HloModule m
ENTRY main {
  x = f32[64,130] parameter(0)
  start = s32[] parameter(1)
  zero = s32[] constant(0)
  y = f32[8,100] dynamic-slice(x, start, zero), dynamic_slice_sizes={8,100}
  ROOT r = f32[8,100] reverse(y), dimensions={1}
}
"""
    assert not any("xg1x" in text for text in _texts(program))


def _shifted(n: int, opcode: str) -> str:
    """Return a program that computes with rows of ``n`` and with their neighbours two before."""
    return f"""HloModule m
ENTRY main {{
  x = f32[40,{n}] parameter(0)
  most = f32[40] parameter(1)
  wide = f32[40,{n}] broadcast(most), dimensions={{0}}
  low = f32[] constant(-2.5)
  lows = f32[40,2] broadcast(low), dimensions={{}}
  before = f32[40,{n - 2}] slice(x), slice={{[0:40],[0:{n - 2}]}}
  moved = f32[40,{n}] concatenate(lows, before), dimensions={{1}}
  less = f32[40,{n}] subtract(moved, wide)
  f = f32[40,{n}] {opcode}(less)
  ROOT r = f32[40,{n}] add(f, x)
}}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("n", [17, 25, 31])
def test_neighbours_in_short_rows_are_loaded_before_functions_of_them(n: int) -> None:
    """A clamped offset in the loop would keep the function scalar; long rows are in segments."""
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(40, n)).astype(np.float32), rng.normal(size=40).astype(np.float32)
    assert_same_bits(_shifted(n, "tanh"), *rows)
    assert any("xg1x" in text for text in _texts(_shifted(n, "tanh")))
    assert not any("xg1x" in text for text in _texts(_shifted(n, "negate")))
