"""Loops in lanes are divided by the digits of their index, and give the same bits."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import backend_c
import hlo
import interp
from backend_c.ir.settings import Numerics, alone, threaded
from backend_c.pipeline import lowered
from backend_c.render.dialect import EMBEDDED, OPENMP, Dialect
from backend_c.render.translation_units import render_plan


def _dims(extents: tuple[int, ...]) -> str:
    return ",".join(map(str, extents))


def _repeated(extents: tuple[int, ...], merged: tuple[int, ...], order: tuple[int, ...]) -> str:
    """Return a program that lays dimensions in another order, merges them, and adds rows to it that
    are repeated along its last dimension."""
    moved = tuple(extents[d] for d in order)
    last = extents[order[0]]
    return f"""HloModule m
ENTRY main {{
  x = f32[{_dims(extents)}] parameter(0)
  y = f32[{last}] parameter(1)
  t = f32[{_dims(moved)}] transpose(x), dimensions={{{_dims(order)}}}
  r = f32[{_dims(merged)}] reshape(t)
  b = f32[{_dims(moved)}] broadcast(y), dimensions={{0}}
  q = f32[{_dims(merged)}] reshape(b)
  ROOT s = f32[{_dims(merged)}] add(r, q)
}}
"""


def _text(program: str, dialect: Dialect = OPENMP) -> str:
    chosen = alone if dialect is EMBEDDED else threaded
    plan = lowered(hlo.parse(program), chosen(Numerics.EXACT))
    return "\n".join(render_plan(plan, dialect).sources.values())


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@settings(max_examples=15)
@given(
    st.sampled_from(
        [(40, 3), (3, 40), (16, 20), (9, 2, 8), (2, 9, 5, 3), (8, 1, 11), (7, 7), (1, 24, 12)]
    ),
    st.randoms(use_true_random=False),
    st.sampled_from(["exact", "fast"]),
)
def test_the_same_bits(extents: tuple[int, ...], draw: object, numerics: str) -> None:
    order = tuple(draw.sample(range(len(extents)), len(extents)))  # type: ignore[attr-defined]
    elements = math.prod(extents)
    rows = draw.choice([d for d in (1, 2, 3) if elements % d == 0])  # type: ignore[attr-defined]
    program = _repeated(extents, (rows, elements // rows), order)
    module = hlo.parse(program)
    x = np.arange(elements, dtype=np.float32).reshape(extents)
    y = np.arange(extents[order[0]], dtype=np.float32) / 8
    result = backend_c.compile(module, numerics=numerics)(x, y)
    assert np.asarray(result).tobytes() == np.asarray(interp.evaluate(module, x, y)).tobytes()


_PAIRS = _repeated((2, 40), (80,), (1, 0))
_ROWS = _repeated((40, 24), (960,), (0, 1))


@pytest.mark.parametrize("program", [_PAIRS, _ROWS], ids=["pairs", "rows"])
def test_lanes_divide_no_index(program: str) -> None:
    text = _text(program)
    assert not re.search(r"i\d+ [/%]", text)
    assert "/" in _text(program, EMBEDDED).split("kernel_0", 1)[1]


def test_pairs_are_written_out() -> None:
    assert len(re.findall(r"r0\[", _text(_PAIRS))) == 2


def test_rows_are_read_from_their_first_element_on_before_any_is_written() -> None:
    """A cross product reads columns 1, 2, 0: gcc takes twice as long for that order."""
    columns = [
        f"{name}{k} = f32[100,1] slice({name}), slice={{[0:100], [{k}:{k + 1}]}}"
        for name in "xy"
        for k in range(3)
    ]
    stacked = {
        "s": "x1, x2, x0",
        "t": "y2, y0, y1",
        "u": "x2, x0, x1",
        "v": "y1, y2, y0",
    }
    stacks = [
        f"{name} = f32[100,3] concatenate({parts}), dimensions={{1}}"
        for name, parts in stacked.items()
    ]
    lines = "\n  ".join((*columns, *stacks))
    text = _text(f"""HloModule m
ENTRY main {{
  x = f32[100,3] parameter(0)
  y = f32[100,3] parameter(1)
  {lines}
  st = f32[100,3] multiply(s, t)
  uv = f32[100,3] multiply(u, v)
  ROOT r = f32[100,3] subtract(st, uv)
}}
""")
    kernel = text[text.index("static void kernel_0") :].split("\n}", 1)[0]
    accesses = re.findall(r"([ar]\d)\[i\d+ \* 3(?: \+ (\d))?\]", kernel)
    order = [(array, int(place or 0)) for array, place in accesses]
    assert order == [(array, place) for array in ("a0", "a1", "r0") for place in range(3)]


def _matrices(n: int, rows: int, columns: int) -> str:
    """Return a program of a choice by row and another by column of matrices, times a vector."""
    shape = f"f32[{n},{rows},{columns}]"
    return f"""HloModule m
ENTRY main {{
  x = f32[{n},1,{columns}] parameter(0)
  y = f32[{n},{rows - 1},{columns}] parameter(1)
  z = f32[{n},{rows},1] parameter(2)
  d = f32[{n}] parameter(3)
  w = {shape} concatenate(x, y), dimensions={{1}}
  v = f32[{n},{rows},{columns - 1}] slice(w), slice={{[0:{n}], [0:{rows}], [1:{columns}]}}
  m = {shape} concatenate(v, z), dimensions={{2}}
  b = {shape} broadcast(d), dimensions={{0}}
  ROOT r = {shape} multiply(m, b)
}}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@settings(max_examples=6)
@given(
    st.sampled_from([1, 7, 8, 9, 100]),
    st.integers(2, 6),
    st.integers(2, 6),
    st.sampled_from(["exact", "fast"]),
)
def test_rows_in_rows_have_the_same_bits(n: int, rows: int, columns: int, numerics: str) -> None:
    module = hlo.parse(_matrices(n, rows, columns))
    arrays = [
        np.arange(n * k, dtype=np.float32).reshape(n, *dims)
        for k, dims in (
            (columns, (1, columns)),
            ((rows - 1) * columns, (rows - 1, columns)),
            (rows, (rows, 1)),
            (1, ()),
        )
    ]
    result = backend_c.compile(module, numerics=numerics)(*arrays)
    assert np.asarray(result).tobytes() == np.asarray(interp.evaluate(module, *arrays)).tobytes()


def test_rows_in_rows_decide_all_choices() -> None:
    text = _text(_matrices(100, 3, 3))
    kernel = text[text.index("static void kernel_0") :].split("\n}", 1)[0]
    assert "?" not in kernel and not re.search(r"i\d+ [/%]", kernel)
    assert "?" in _text(_matrices(100, 5, 5))  # of 25 elements


def test_a_vector_that_rows_of_matrices_share_is_read_once_for_each() -> None:
    text = _text("""HloModule m
ENTRY main {
  x = f32[100,3,3] parameter(0)
  d = f32[100] parameter(1)
  b = f32[100,3,3] broadcast(d), dimensions={0}
  ROOT r = f32[100,3,3] multiply(x, b)
}
""")
    assert re.search(r"for \(.* < 100; .*\n.*\n\s*#pragma omp simd\n.* < 9;", text)


def test_threads_share_the_longer_loop() -> None:
    """Two quotients are no work for many threads."""
    text = _text(_repeated((2, 600_000), (1_200_000,), (0, 1)))
    head = text[text.index("static void kernel_0") :]
    assert re.search(r"for \(.* < 2; .*\) \{\n(.*\n)?\s*#pragma omp parallel for simd", head)
    many = _text(_repeated((600, 2000), (1_200_000,), (0, 1)))
    assert re.search(r"#pragma omp parallel for\n.*< 600;", many)


def test_quotients_that_decide_are_written_out() -> None:
    text = _text("""HloModule m
ENTRY main {
  x = f32[1,200] parameter(0)
  y = f32[1,200] parameter(1)
  c = f32[2,200] concatenate(x, y), dimensions={0}
  n = f32[2,200] negate(c)
  ROOT r = f32[400] reshape(n)
}
""")
    assert text[text.index("static void kernel_0") :].count("for (") == 2


@pytest.mark.parametrize(
    "padding", ["2_0_2", "0_2_2", "1_1_1", "-1_3_3", "3_-4_4", "5_1_6", "2_30_2"]
)
def test_a_last_quotient_that_is_not_whole(padding: str) -> None:
    """Interior padding divides the index; the segments between its edges are strip-mined, too."""
    low, high, interior = map(int, padding.split("_"))
    length = 100 + 99 * interior + low + high
    module = hlo.parse(f"""HloModule m
ENTRY main {{
  x = f32[7,100] parameter(0)
  y = f32[] parameter(1)
  ROOT p = f32[9,{length}] pad(x, y), padding=1_1x{padding}
}}
""")
    assert not re.search(r"i\d+ [/%]", _text(hlo.format(module)))
    x, y = np.arange(700, dtype=np.float32).reshape(7, 100), np.float32(0.5)
    result = backend_c.compile(module, numerics="fast")(x, y)
    assert np.asarray(result).tobytes() == np.asarray(interp.evaluate(module, x, y)).tobytes()
