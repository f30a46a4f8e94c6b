"""Constants of a chain of sums may be added up first; other sums keep their certainty."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from interp.envelope.budget import FAST, XLA_CPU
from interp.envelope.evaluation import enclose
from interp.envelope.verdict import OUTSIDE, WITHIN, judged

_MAIN = """HloModule m
add_d {{ x = {t}[] parameter(0)
  c = {t}[] parameter(1)
  ROOT s = {t}[] add(x, c) }}
ENTRY main {{
  p = {t}[] parameter(0)
  c = {t}[] constant({c})
  d = {t}[] constant({d})
  e = {t}[] constant({c})
  {body}
}}
"""
_BODIES = {
    "x - c + d": "a = {t}[] subtract(p, c)\n  ROOT r = {t}[] add(a, d)",
    "d + (x - c)": "a = {t}[] subtract(p, c)\n  ROOT r = {t}[] add(d, a)",
    "-(c - x) + d": "a = {t}[] subtract(c, p)\n b = {t}[] negate(a)\n  ROOT r = {t}[] add(b, d)",
    "c - c + d, of constants alone": "a = {t}[] subtract(e, c)\n  ROOT r = {t}[] add(a, d)",
    "through a call": "a = {t}[] subtract(p, c)\n  ROOT r = {t}[] call(a, d), to_apply=add_d",
}
_TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}


def _worst(element_type: str, body: str, c: str, d: str, actual: object) -> str:
    text = _MAIN.format(t=element_type, c=c, d=d, body=body.replace("{t}", element_type))
    module, dtype = hlo.parse(text), _TYPES[element_type]
    argument = np.asarray(1e30, dtype)
    exact = np.asarray(interp.evaluate(module, argument))
    legal = enclose(module, argument, peer=XLA_CPU).result
    return judged(np.asarray(actual, dtype), exact, legal).worst


@pytest.mark.parametrize("body", _BODIES)
@pytest.mark.parametrize("element_type", _TYPES)
def test_constants_may_be_added_up_first(element_type: str, body: str) -> None:
    """(x − c) + d with x = c is d, or x − (c − d), where c − d is c: 0."""
    parts = ("(1e30, 0)", "(1, 0)") if element_type[0] == "c" else ("1e30", "1")
    assert _worst(element_type, _BODIES[body], *parts, 0.0) != OUTSIDE


def test_a_sum_of_no_two_constants_keeps_its_certainty() -> None:
    for body in (
        "ROOT r = f32[] subtract(p, c)",
        "a = f32[] subtract(p, c)\n ROOT r = f32[] abs(a)",
    ):
        assert _worst("f32", body, "1e30", "1", 7e22) == OUTSIDE


def test_no_more_than_the_constants_round() -> None:
    assert _worst("f32", _BODIES["x - c + d"], "1e30", "1", 1e27) == OUTSIDE


def test_fast_keeps_the_order_of_constants() -> None:
    text = _MAIN.format(t="f32", c="1e30", d="1", body=_BODIES["x - c + d"].replace("{t}", "f32"))
    legal = enclose(hlo.parse(text), np.float32(1e30), peer=FAST).result
    assert legal.low == legal.high == 1


def test_constants_that_are_computed_may_be_added_up_first() -> None:
    """XLA gives -5.071404, the sum of the first two of three numbers computed from constants, and
    then the third; the text adds up the last two first."""
    text = """HloModule m
ENTRY e {
  c = f32[] constant(1.70138097)
  n = f32[] negate(c)
  s = f32[] subtract(n, c)
  x = f32[] exponential(s)
  y = f32[] log-plus-one(x)
  a = f32[] add(n, y)
  ROOT r = f32[] add(s, a)
}
"""
    module = hlo.parse(text)
    exact, actual = np.asarray(interp.evaluate(module)), np.asarray(-5.071404, np.float32)
    assert exact != actual
    for order in (text, text.replace("add(s, a)", "add(a, s)").replace("add(n, y)", "add(y, n)")):
        legal = enclose(hlo.parse(order), peer=XLA_CPU).result
        assert judged(actual, exact, legal).worst == WITHIN
    fast = enclose(module, peer=FAST).result
    assert judged(actual, exact, fast).worst == OUTSIDE
