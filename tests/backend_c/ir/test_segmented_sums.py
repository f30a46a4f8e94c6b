"""Loops that sum are split where an index goes round or leaves its bounds, and give the same
bits."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import backend_c
import hlo
import interp
from backend_c.ir.settings import Numerics, threaded
from backend_c.pipeline import lowered
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan


def _rows_of_rotations(rows: int, length: int, shifts: tuple[int, ...], operation: str) -> str:
    """Return the sums, or what ``operation`` folds otherwise, of products of each row with
    rotations of a vector."""
    of, zero = f"s32[{rows},{length}]", "-9999999" if operation == "maximum" else "0"
    lines = [
        f"  x = {of} parameter(0)",
        f"  v = s32[{length}] parameter(1)",
        f"  zero = s32[] constant({zero})",
    ]
    product = "x"
    for n, shift in enumerate(shifts):
        lines += [
            f"  a{n} = s32[{length - shift}] slice(v), slice={{[{shift}:{length}]}}",
            f"  b{n} = s32[{shift}] slice(v), slice={{[0:{shift}]}}",
            f"  r{n} = s32[{length}] concatenate(a{n}, b{n}), dimensions={{0}}",
            f"  w{n} = {of} broadcast(r{n}), dimensions={{1}}",
            f"  p{n} = {of} {'multiply' if n == 0 else 'subtract'}({product}, w{n})",
        ]
        product = f"p{n}"
    return (
        "HloModule m\n"
        f"fold {{ a = s32[] parameter(0)\n b = s32[] parameter(1)\n"
        f" ROOT c = s32[] {operation}(a, b) }}\n"
        "ENTRY e {\n" + "\n".join(lines) + "\n"
        f"  ROOT t = s32[{rows}] reduce({product}, zero), dimensions={{1}}, to_apply=fold\n}}\n"
    )


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@settings(max_examples=8)
@given(
    st.integers(1, 5),
    st.sampled_from([32, 33, 50, 64, 131]),
    st.lists(st.integers(0, 31), min_size=1, max_size=4),
    st.sampled_from(["add", "maximum", "or"]),
    st.sampled_from(["exact", "fast"]),
)
def test_the_same_bits(
    rows: int, length: int, shifts: list[int], operation: str, numerics: str
) -> None:
    module = hlo.parse(_rows_of_rotations(rows, length, tuple(shifts), operation))
    random = np.random.default_rng(length)
    x = random.integers(-1000, 1000, (rows, length)).astype(np.int32)
    v = random.integers(-1000, 1000, length).astype(np.int32)
    result = backend_c.compile(module, numerics=numerics)(x, v)
    assert np.array_equal(result, interp.evaluate(module, x, v))


@pytest.mark.parametrize(("shift", "lanes"), [(1, ["63"]), (20, ["20", "44"])])
def test_lanes_divide_nothing(shift: int, lanes: list[str]) -> None:
    module = hlo.parse(_rows_of_rotations(100, 64, (shift,), "add"))
    code = "\n".join(render_plan(lowered(module, threaded(Numerics.FAST)), OPENMP).sources.values())
    loops = re.findall(r"simd reduction.*?\n +for \(.*?\n +\}", code, re.DOTALL)
    assert sorted(re.findall(r"i\w+ < (\d+)", "\n".join(loops))) == lanes
    assert "%" not in code
