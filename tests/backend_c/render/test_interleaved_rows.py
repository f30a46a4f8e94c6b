"""Loops over short rows transpose them block by block, with the bits of one after the other."""

from __future__ import annotations

import re

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import hlo
from backend_c.ir.settings import Numerics, alone, launched, threaded
from backend_c.pipeline import lowered
from backend_c.render.dialect import CUDA, EMBEDDED, OPENMP, Dialect
from backend_c.render.translation_units import render_plan

_SETTINGS = {OPENMP.name: threaded, EMBEDDED.name: alone, CUDA.name: launched}


def _mixed(n: int, read: int, written: int, element: str = "f32") -> str:
    """Return a program that makes each of the ``written`` columns of a row of two among the
    ``read`` ones of another, and of a vector."""
    lines = []
    for column in range(written):
        for name, place in (("a", column % read), ("b", (3 * column + 1) % read)):
            window = f"{{[0:{n}], [{place}:{place + 1}]}}"
            lines.append(f"  {name}{column} = {element}[{n},1] slice(x), slice={window}")
        lines.append(f"  m{column} = {element}[{n},1] multiply(a{column}, b{column})")
        lines.append(f"  r{column} = {element}[{n},1] add(m{column}, v)")
    parts = ", ".join(f"r{column}" for column in range(written))
    body = "\n".join(lines)
    return f"""HloModule m
ENTRY main {{
  x = {element}[{n},{read}] parameter(0)
  y = {element}[{n}] parameter(1)
  v = {element}[{n},1] reshape(y)
{body}
  ROOT c = {element}[{n},{written}] concatenate({parts}), dimensions={{1}}
}}
"""


def _text(program: str, dialect: Dialect = OPENMP, numerics: Numerics = Numerics.FAST) -> str:
    plan = lowered(hlo.parse(program), _SETTINGS[dialect.name](numerics))
    sources = render_plan(plan, dialect).sources.values()
    return "\n".join(sources)


_TYPES = {"f32": np.float32, "f64": np.float64, "s32": np.int32, "u64": np.uint64, "s16": np.int16}


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@settings(max_examples=8)
@given(
    st.sampled_from([1, 15, 16, 17, 63, 64, 65, 200]),
    st.integers(1, 17),
    st.integers(2, 17),
    st.sampled_from([*_TYPES]),
)
def test_rows_of_any_length_have_the_bits_of_the_interpreter(
    n: int, read: int, written: int, element: str
) -> None:
    x = np.random.default_rng(n).integers(0, 99, (n, read)).astype(_TYPES[element])
    assert_same_bits(_mixed(n, read, written, element), x, x[:, 0].copy())


@pytest.mark.parametrize("numerics", Numerics)
def test_rows_are_transposed_in_blocks(numerics: Numerics) -> None:
    text = _text(_mixed(300, 9, 9), numerics=numerics)
    assert text.count("HLO_INTERLEAVED_LOAD_4(") == text.count("HLO_INTERLEAVED_STORE_4(") == 1
    assert not re.search(r"a\d+\[i\d+ \* 9|r\d+\[i\d+ \* 9", text)
    assert "HLO_INTERLEAVED_STORE_8(" in _text(_mixed(300, 2, 5, "f64"), numerics=numerics)


@pytest.mark.parametrize(
    ("n", "read", "written", "element"),
    [(300, 3, 4, "f32"), (15, 9, 9, "f32"), (300, 20, 17, "f32"), (300, 9, 9, "bf16")],
    ids=["what compilers shuffle", "few rows", "long rows", "narrow elements"],
)
def test_other_rows_stay_in_their_loop(n: int, read: int, written: int, element: str) -> None:
    assert "HLO_INTERLEAVED" not in _text(_mixed(n, read, written, element))


@pytest.mark.parametrize("dialect", [EMBEDDED, CUDA], ids=lambda one: one.name)
def test_other_targets_have_no_lanes(dialect: Dialect) -> None:
    assert "HLO_INTERLEAVED" not in _text(_mixed(300, 9, 9), dialect)


def test_of_long_rows_few_columns_are_read_one_by_one() -> None:
    program = _mixed(300, 16, 5)
    for column, place in enumerate((1, 4, 7, 10, 13)):  # as many as b reads
        program = program.replace(f"[{column}:{column + 1}]", f"[{place}:{place + 1}]")
    text = _text(program)
    assert "HLO_INTERLEAVED_LOAD" not in text and "HLO_INTERLEAVED_STORE" in text
