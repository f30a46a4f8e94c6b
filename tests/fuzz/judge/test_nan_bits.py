"""A NaN that was computed has any bits; who looks at them has no one result."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
from fuzz.judge.nan_bits import depends_on_them

_PROGRAM = """HloModule m
ENTRY e {
  x = f16[2] parameter(0)
  f = f16[2] floor(x)
  b = bf16[2] bitcast-convert(f)
  ROOT r = bf16[2] sinh(b)
}
"""


@pytest.mark.parametrize(("number", "depends"), [(1.5, False), (np.nan, True)])
def test_only_where_there_is_a_nan(number: float, depends: bool) -> None:
    x = np.array([1, number], np.float16)
    assert depends_on_them(hlo.parse(_PROGRAM), [x]) == depends
    assert not depends_on_them(hlo.parse(_PROGRAM.replace("bitcast-convert", "convert")), [x])


def test_bits_besides_the_sign() -> None:
    """The half that has no sign, of a sum of one element: it passed its payload on in one column,
    and not in the other."""
    program = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  s = f32[2] add(x, x)
  b = f16[2,2] bitcast-convert(s)
  half = f16[2,1] slice(b), slice={[0:2], [0:1]}
  ROOT r = f16[2,1] abs(half)
}
"""
    x = np.array([1, np.nan], np.float32)
    assert depends_on_them(hlo.parse(program), [x])
    assert not depends_on_them(hlo.parse(program.replace("[0:1]}", "[1:2]}")), [x[:1].repeat(2)])


@pytest.mark.parametrize("type_", ["TOTALORDER", "FLOAT"])
def test_a_total_order_looks_at_the_sign(type_: str) -> None:
    """Of a minimum, which is a NaN of either sign: with AVX2 gcc's is another than with SSE2."""
    program = f"""HloModule m
ENTRY e {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  m = f32[] minimum(x, y)
  ROOT r = pred[] compare(y, m), direction=GT, type={type_}
}}
"""
    arguments = [np.array(-np.nan, np.float32), np.array(0, np.float32)]
    assert depends_on_them(hlo.parse(program), arguments) == (type_ == "TOTALORDER")
