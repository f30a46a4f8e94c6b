"""A NaN that was computed has any bits; who looks at them has no one result."""

from __future__ import annotations

import ml_dtypes
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


@pytest.mark.parametrize("name", ["float8_e3m4", "float8_e4m3", "float8_e5m2"])
def test_narrow_types_have_several_nans(name: str) -> None:
    """Quotients of them, joined to a wider integer."""
    element_type = f"f8{name.removeprefix('float8_')}"
    program = f"""HloModule m
ENTRY e {{
  x = {element_type}[2] parameter(0)
  q = {element_type}[2] divide(x, x)
  ROOT r = s16[] bitcast-convert(q)
}}
"""
    dtype = getattr(ml_dtypes, name)
    assert depends_on_them(hlo.parse(program), [np.array([1, 0], dtype)])
    assert not depends_on_them(hlo.parse(program), [np.array([1, 2], dtype)])


@pytest.mark.parametrize("type_", ["TOTALORDER", "FLOAT"])
def test_a_total_order_looks_at_the_sign(type_: str) -> None:
    """A comparison in total order depends on the sign of a NaN that a minimum gives (gcc's differs
    between AVX2 and SSE2); a comparison of floats does not."""
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


_HANDED_ON = {
    "opt-barrier": "h = f32[2] opt-barrier(x)",
    "get-tuple-element": "t = (f32[2]) tuple(x)\n  h = f32[2] get-tuple-element(t), index=0",
    "call": "h = f32[2] call(x), to_apply=same",
    "conditional": "p = pred[] constant(true)\n"
    "  h = f32[2] conditional(p, x, x), true_computation=same, false_computation=same",
    "while": "h = f32[2] while(x), condition=never, body=same",
    "dynamic-reshape": "n = s32[] constant(2)\n  h = f32[2] dynamic-reshape(x, n)",
}


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("handed_on", _HANDED_ON)
def test_a_nan_that_is_handed_on_is_not_computed(handed_on: str, computed: bool) -> None:
    """It keeps the bits that it was given."""
    program = f"""HloModule m
same {{
  ROOT x = f32[2] parameter(0)
}}
never {{
  x = f32[2] parameter(0)
  ROOT p = pred[] constant(false)
}}
ENTRY e {{
  x = f32[2] parameter(0)
  {_HANDED_ON[handed_on]}
  y = f32[2] {"ceil" if computed else "copy"}(h)
  ROOT r = s32[2] bitcast-convert(y)
}}
"""
    x = np.array([1, np.nan], np.float32)
    assert depends_on_them(hlo.parse(program), [x]) == computed


def test_a_sign_that_decides_which_of_two_is_greater() -> None:
    """The default NaN is the high half of a great number or of a small one; all ones is that of a
    NaN, and so is the remainder of the great number's exponential."""
    program = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  f = f32[2] floor(x)
  b = f64[] bitcast-convert(f)
  y = f64[] parameter(1)
  m = f64[] maximum(b, y)
  e = f64[] exponential(m)
  ROOT r = f64[] remainder(e, y)
}
"""
    x = np.array([1, np.nan], np.float32)
    assert depends_on_them(hlo.parse(program), [x, np.float64(2.5)])
    assert not depends_on_them(hlo.parse(program), [x[:1].repeat(2), np.float64(2.5)])


def test_the_order_of_several_nans() -> None:
    """Which of three is first among the largest depends on their bits: of an infinity less itself,
    C and the interpreter had NaNs of other signs."""
    program = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  n = f32[4] subtract(x, x)
  t = (f32[2], s32[2]) topk(n), k=2
  ROOT r = s32[2] get-tuple-element(t), index=1
}
"""
    for x in ([1, np.inf, 2, np.inf], [np.inf] * 4):
        assert depends_on_them(hlo.parse(program), [np.float32(x)])
    assert not depends_on_them(hlo.parse(program), [np.float32([1, 2, 3, 4])])
