"""Short rows: stacks are fused into what is computed of them, and share what they compute."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import backend_c
import hlo
import interp
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.passes import run

SUM = """sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT z = f32[] add(a, b) }
"""


def _stack(n: int, rows: int, columns: int) -> str:
    """Return instructions that stack products of x and y, as columns of rows, and these to
    matrices, the last of which is ``matrix``."""
    lines = []
    for row in range(rows):
        for column in range(columns):
            name = f"p{row}x{column}"
            factor = f"  c{name} = f32[] constant({row * columns + column})\n"
            lines.append(f"{factor}  f{name} = f32[{n}] broadcast(c{name}), dimensions={{}}")
            lines.append(f"  m{name} = f32[{n}] multiply(e, f{name})")
            lines.append(f"  {name} = f32[{n},1] reshape(m{name})")
        parts = ", ".join(f"p{row}x{column}" for column in range(columns))
        lines.append(f"  r{row} = f32[{n},{columns}] concatenate({parts}), dimensions={{1}}")
        lines.append(f"  q{row} = f32[{n},1,{columns}] reshape(r{row})")
    parts = ", ".join(f"q{row}" for row in range(rows))
    shape = f"f32[{n},{rows},{columns}]"
    lines.append(f"  matrix = {shape} concatenate({parts}), dimensions={{1}}")
    return "\n".join(lines)


def _program(n: int, rows: int, columns: int, root: str) -> str:
    shape = f"f32[{n},{rows},{columns}]"
    return f"""HloModule m
{SUM}ENTRY main {{
  x = f32[{n}] parameter(0)
  y = f32[{n}] parameter(1)
  e = f32[{n}] exponential(x)
{_stack(n, rows, columns)}
  d = {shape} broadcast(y), dimensions={{0}}
{root.replace("SHAPE", shape)}
}}
"""


_MATRICES = "  ROOT r = SHAPE divide(matrix, d)"


def _kernels(program: str, pipeline: str = "backend_c_fast") -> int:
    module: Module = run(hlo.parse(program), pipeline)
    hlo.verify(module)
    return sum(i.opcode == "fusion" for i in module.entry.instructions)


@pytest.mark.parametrize("pipeline", ["backend_c", "backend_c_fast"])
def test_a_stack_of_stacks_is_one_kernel_with_its_consumers(pipeline: str) -> None:
    """The exponential is computed once for a row."""
    assert _kernels(_program(100, 3, 3, _MATRICES), pipeline) == 1


def test_what_all_elements_of_a_row_need_is_computed_once_for_it() -> None:
    root = """  g = f32[100] exponential(y)
  w = SHAPE broadcast(g), dimensions={0}
  ROOT r = SHAPE divide(matrix, w)"""
    assert _kernels(_program(100, 3, 3, root)) == 1


def test_threads_and_microcontrollers_store_the_parts() -> None:
    for pipeline in ("backend_c_by_threads", "backend_c_fast_by_threads", "backend_c_scalar"):
        assert _kernels(_program(100, 3, 3, _MATRICES), pipeline) > 1


@pytest.mark.parametrize(("n", "rows", "columns"), [(100, 3, 6), (5, 3, 3)])
def test_long_rows_and_few_rows_have_loops_of_their_own(n: int, rows: int, columns: int) -> None:
    assert _kernels(_program(n, rows, columns, _MATRICES)) > 1


def test_what_is_read_elsewhere_than_in_its_row_is_stored() -> None:
    turned = """  t = f32[3,3,100] transpose(matrix), dimensions={1,2,0}
  ROOT n = f32[3,3,100] negate(t)"""
    assert _kernels(_program(100, 3, 3, turned)) > 1


def test_a_reduction_does_not_join_rows_that_are_written_out() -> None:
    """Rows that are reduced run along 3 elements, those that are written out along 9."""
    normed = """  zero = f32[] constant(0)
  s = f32[100,3] reduce(matrix, zero), dimensions={2}, to_apply=sum
  w = SHAPE broadcast(s), dimensions={0,1}
  ROOT n = SHAPE divide(matrix, w)"""
    assert _kernels(_program(100, 3, 3, normed)) > 1


def test_the_body_of_rows_is_bounded() -> None:
    """Each operation on the matrix is written once for each of its elements."""
    chain = "\n".join(f"  a{k + 1} = SHAPE add(a{k}, a{k})" for k in range(100))
    program = _program(
        100, 4, 4, f"  a0 = SHAPE divide(matrix, d)\n{chain}\n  ROOT r = SHAPE negate(a100)"
    )
    assert _kernels(program) > 1


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@settings(max_examples=6)
@given(
    st.sampled_from([1, 8, 9, 64, 100]),
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from(
        [
            _MATRICES,
            "  a = SHAPE add(matrix, d)\n  ROOT t = (SHAPE, SHAPE) tuple(matrix, a)",
            "  b = SHAPE broadcast(s), dimensions={0,1}\n  ROOT r = SHAPE subtract(matrix, b)",
        ]
    ),
    st.sampled_from(["exact", "fast"]),
)
def test_the_same_bits(n: int, rows: int, columns: int, root: str, numerics: str) -> None:
    if "(s)" in root:
        root = f"""  zero = f32[] constant(0)
  s = f32[{n},{rows}] reduce(d, zero), dimensions={{2}}, to_apply=sum
{root}"""
    module = hlo.parse(_program(n, rows, columns, root))
    x = np.zeros(n, np.float32)  # whose exponential is the same in both numerics
    y = np.arange(1, n + 1, dtype=np.float32)
    expected = interp.evaluate(module, x, y)
    assert not differences(expected, backend_c.compile(module, numerics=numerics)(x, y))
