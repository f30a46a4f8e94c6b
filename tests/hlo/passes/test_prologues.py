"""Which factors a contraction computes; fast numerics give what they give with it in memory.

Factors are small integers and powers of two, so that sums are exact in any order, and every result
has the interpreter's bits.
"""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import example, given, settings
from hypothesis import strategies as st

import backend_c
import hlo
import interp
from hlo.bit_equality import differences
from hlo.passes import run
from hlo.passes.prologues import prologues

_HEAD = """HloModule m
ENTRY e {
  x = f32[2,6] parameter(0)
  w = s8[7,6] parameter(1)
  v = f32[7,6] parameter(2)
  wide = f32[7,6] convert(w)
"""
_ROWS = "lhs_contracting_dims={1}, rhs_contracting_dims={1}"
PROGRAMS = {
    "right": (f"ROOT r = f32[2,7] dot(x, wide), {_ROWS}", {("r", 1)}),
    "left": (f"ROOT r = f32[7,2] dot(wide, x), {_ROWS}", {("r", 0)}),
    "in memory": (f"ROOT r = f32[2,7] dot(x, v), {_ROWS}", set()),
    "moved": (
        f"""b = f32[7,6] reverse(v), dimensions={{0}}
  ROOT r = f32[2,7] dot(x, b), {_ROWS}""",
        set(),
    ),
    "computed, then moved": (
        f"""b = f32[7,6] reverse(wide), dimensions={{0}}
  ROOT r = f32[2,7] dot(x, b), {_ROWS}""",
        {("r", 1)},
    ),
    # The vectors are read for each line of the matrix.
    "vectors": (
        f"""y = f32[2,6] negate(x)
  ROOT r = f32[2,7] dot(y, v), {_ROWS}""",
        set(),
    ),
    "many vectors": (f"ROOT r = f32[7,7] dot(v, wide), {_ROWS}", set()),
    "numbers without an order": (
        f"""c = c64[7,6] convert(wide)
  d = c64[2,6] convert(x)
  ROOT r = c64[2,7] dot(d, c), {_ROWS}""",
        set(),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_prologues(name: str) -> None:
    body, expected = PROGRAMS[name]
    module = hlo.parse(f"{_HEAD}  {body}\n}}\n")
    assert prologues(module.entry) == expected
    fused = run(module, "backend_c_fast")
    hlo.verify(fused)
    opcodes = [i.opcode for i in fused.entry.instructions]
    assert opcodes.count("fusion") <= 1 or not expected
    draw = np.random.default_rng(0)
    dims = {p.name: (p.shape.dims, p.shape.element_type.numpy) for p in module.entry.parameters}
    arrays = [draw.integers(-8, 8, of).astype(kind) for of, kind in dims.values()]
    assert not differences(interp.evaluate(module, *arrays), interp.evaluate(fused, *arrays))


def test_what_others_read_is_in_memory() -> None:
    text = f"{_HEAD}  r = f32[2,7] dot(x, wide), {_ROWS}\n  ROOT t = tuple(r, wide)\n}}\n"
    text = text.replace("ROOT t = tuple", "ROOT t = (f32[2,7], f32[7,6]) tuple")
    fused = run(hlo.parse(text), "backend_c_fast")
    (dot,) = [i for i in fused.entry.instructions if i.opcode == "dot"]
    assert dot.operands[1] in {i.name for i in fused.entry.instructions}


def _quantised(few: int, lines: int, groups: int, group: int, *, across: bool) -> str:
    """Return a product of ``few`` vectors with lines of nibbles, of which each ``group`` shares a
    scale; with ``across`` the steps are the rows of the matrix, not its columns."""
    k = groups * group
    rows, columns = (k, lines) if across else (lines, k)
    scales = f"{groups},{lines}" if across else f"{lines},{groups}"
    wide = f"{groups},{group},{lines}" if across else f"{lines},{groups},{group}"
    kept = "0,2" if across else "0,1"
    return f"""HloModule m
ENTRY e {{
  x = f32[{few},{k}] parameter(0)
  w = u8[{rows},{columns // 2}] parameter(1)
  s = f32[{scales}] parameter(2)
  bias = f32[{lines}] parameter(3)
  fifteen = u8[] constant(15)
  four = u8[] constant(4)
  masks = u8[{rows},{columns // 2}] broadcast(fifteen), dimensions={{}}
  fours = u8[{rows},{columns // 2}] broadcast(four), dimensions={{}}
  low = u8[{rows},{columns // 2}] and(w, masks)
  high = u8[{rows},{columns // 2}] shift-right-logical(w, fours)
  lows = u8[{rows},{columns // 2},1] reshape(low)
  highs = u8[{rows},{columns // 2},1] reshape(high)
  both = u8[{rows},{columns // 2},2] concatenate(lows, highs), dimensions={{2}}
  grouped = u8[{wide}] reshape(both)
  numbers = f32[{wide}] convert(grouped)
  scale = f32[{wide}] broadcast(s), dimensions={{{kept}}}
  scaled = f32[{wide}] multiply(numbers, scale)
  matrix = f32[{rows},{columns}] reshape(scaled)
  product = f32[{few},{lines}] dot(x, matrix), lhs_contracting_dims={{1}},
    rhs_contracting_dims={{{0 if across else 1}}}
  biases = f32[{few},{lines}] broadcast(bias), dimensions={{1}}
  ROOT r = f32[{few},{lines}] add(product, biases)
}}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@settings(max_examples=2)
@example(few=2, lines=6, groups=40, group=32, across=False)  # in parts, and a rest of them
@example(few=1, lines=70, groups=3, group=16, across=True)
@given(
    few=st.integers(1, 4),
    lines=st.sampled_from((6, 8, 22, 70, 130)),
    groups=st.sampled_from((1, 3, 40, 65)),
    group=st.sampled_from((2, 16, 32)),
    across=st.booleans(),
)
def test_quantised_matrices(few: int, lines: int, groups: int, group: int, across: bool) -> None:
    module = hlo.parse(_quantised(few, lines, groups, group, across=across))
    draw = np.random.default_rng(0)
    dims = [p.shape.dims for p in module.entry.parameters]
    arguments = (
        draw.integers(-4, 5, dims[0]).astype(np.float32),
        draw.integers(0, 256, dims[1]).astype(np.uint8),
        2.0 ** draw.integers(-2, 3, dims[2]).astype(np.float32),
        draw.integers(-4, 5, dims[3]).astype(np.float32),
    )
    opcodes = [i.opcode for i in run(module, "backend_c_fast").entry.instructions]
    assert opcodes.count("fusion") == 1 and "dot" not in opcodes
    executable = backend_c.compile(module, numerics="fast")
    assert not differences(interp.evaluate(module, *arguments), executable(*arguments))
