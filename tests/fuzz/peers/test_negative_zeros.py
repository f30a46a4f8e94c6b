"""XLA gets zeros below zero of a text that it printed, whose ``-0`` it reads as 0."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from fuzz.peers.negative_zeros import with_signed_zeros
from fuzz.peers.xla import XLA
from hlo.bit_equality import differences
from hlo.values import arrays_of


def _program(constant: str) -> str:
    shape = constant.partition(" constant")[0]
    return f"HloModule m\nENTRY e {{\n  c = {constant}\n  ROOT r = {shape} copy(c)\n}}\n"


@pytest.mark.parametrize(
    "constant",
    [
        "f32[] constant(-0)",
        "f64[2] constant({1, -0})",
        "bf16[2,2] constant({ { -0, -0.5 }, {\n -0, nan } })",
        "f16[3]{0} constant({-0, 2, /*index=2*/ -0})",
        "c64[2] constant({(-0, -0), (2, -0)})",
        "c128[] constant((-0, 0))",
        "f8e4m3fn[2] constant({-0, 3})",
        "f8e4m3fnuz[2] constant({-0, 3})",
        "s32[2] constant({-0, -1})",
        "pred[2] constant({0, 1})",
    ],
)
def test_xla_gets_the_constants_of_a_text(constant: str) -> None:
    pytest.importorskip("jaxlib")
    text = _program(constant)
    with XLA(timeout=60) as peer:
        answer = peer(text, ())
    assert answer.outputs is not None, answer
    (found,), (exact,) = answer.outputs, arrays_of(interp.evaluate(hlo.parse(text)))
    assert not differences(found, exact)


def test_what_is_no_constant_of_numbers_stays() -> None:
    text = """HloModule m
ENTRY e {
  c = s32[2] constant({-0, 1})
  x = f32[4] parameter(0), metadata={op_name="a -0 b"}
  p = f32[2] pad(x, x), padding=-0_-2
  ROOT k = f32[3] constant({-0.5, -01, 1e-0})
}
"""
    assert with_signed_zeros(text) == text


def test_a_text_without_an_end_stays_one() -> None:
    text = "HloModule m\nENTRY e {\n  c = f32[2] constant({-0, ("
    assert with_signed_zeros(text) == text.replace("-0", "-0.0")


def test_an_infinite_quotient_has_the_sign_of_its_zero() -> None:
    """`hlo check` called the sign that XLA gave for the text of a dump a miscompilation."""
    pytest.importorskip("jaxlib")
    text = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  c = f32[] constant(-0)
  b = f32[2] broadcast(c), dimensions={}
  ROOT q = f32[2] divide(x, b)
}
"""
    x = np.array([1, -2], np.float32)
    with XLA(timeout=60) as peer:
        answer = peer(text, [x])
    assert answer.outputs is not None
    assert answer.outputs[0].tolist() == [-np.inf, np.inf]
