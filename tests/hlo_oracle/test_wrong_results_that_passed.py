"""Wrong results that were called within, or not judged, are so no longer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hlo_oracle as ho
from hlo.types import ELEMENT_TYPES

_SUM = """HloModule m
a {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[3] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=a
}
"""
_SORT = """HloModule m
lt {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LTTYPE
}
ENTRY e {
  p = f32[3] parameter(0)
  k = f32[3] OPCODE(p)
  s = (f32[3], f32[3]) sort(k, p), dimensions={0}, is_stable=true, to_apply=lt
  ROOT r = f32[3] get-tuple-element(s), index=1
}
"""


def _judged(text: str, arguments: list[Any], result: Any) -> str:
    """Return the worst verdict of a result."""
    found = ho.check(text, *arguments, results=[result], budget="xla-cpu")
    counts = found.outside, found.undetermined, found.within
    names = ("outside", "undetermined", "within")
    return next((name for name, count in zip(names, counts, strict=True) if count), "equal")


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_sum_with_a_zero_of_either_sign_is_judged(zero: float) -> None:
    """+0 + -0 is +0: its bits say that +0 is no identity of sums."""
    given = [np.float32([zero, 1, 2])]
    assert _judged(_SUM, given, np.float32(1e30)) == "outside"
    assert _judged(_SUM, given, np.float32(3)) == "equal"
    assert _judged(_SUM, [np.float32([-0.0] * 3)], np.float32(-0.0)) == "equal"


@pytest.mark.parametrize("divisor", ["negate(p)", "subtract(p, p)", "sqrt(p)", "sine(p)"])
@pytest.mark.parametrize("element_type", ["f16", "f32", "f64"])
def test_no_number_is_within_an_interval_without_end(divisor: str, element_type: str) -> None:
    text = f"""HloModule m
ENTRY e {{
  p = {element_type}[2] parameter(0)
  one = {element_type}[2] constant({{1, 1}})
  d = {element_type}[2] {divisor}
  ROOT r = {element_type}[2] divide(one, d)
}}
"""
    dtype = element_type.replace("f", "float")
    given = [np.zeros(2, dtype)]
    for claimed in ([7, -0.001], [np.inf, 3]):
        assert _judged(text, given, np.array(claimed, dtype)) == "undetermined"


@pytest.mark.parametrize("opcode", ["floor", "round-nearest-even", "ceil"])
def test_keys_that_are_zeros_of_open_sign_are_sorted_for_certain(opcode: str) -> None:
    text = _SORT.replace("OPCODE", opcode).replace("TYPE", "")
    x = np.float32([1.68, 1.64, 0.1]) - np.float32(opcode == "ceil")
    right = np.float32([x[2], x[0], x[1]])
    assert _judged(text, [x], right) == "equal"
    assert _judged(text, [x], right[[0, 2, 1]]) == "outside"
    assert _judged(text, [x], np.float32([x[2], x[0], x[0]])) == "outside"


def test_what_a_call_does_is_judged_as_elsewhere() -> None:
    """JAX makes a call of jnp.where and of each nested jit: its root was taken for the beginning of
    a longer chain, which a compiler may round otherwise."""
    text = """HloModule m
f {
  x = f32[2] parameter(0)
  one = f32[2] constant({1, 1})
  ROOT d = f32[2] subtract(x, one)
}
ENTRY e {
  p = f32[2] parameter(0)
  ROOT r = f32[2] call(p), to_apply=f
}
"""
    x = np.float32([0.7, 0.3])
    right = x - 1
    assert _judged(text, [x], right) == "equal"
    assert _judged(text, [x], np.nextafter(right, np.float32(2))) == "outside"


@pytest.mark.parametrize(
    ("source", "number"), [("s8", -1), ("u8", 200), ("s32", 1024), ("f32", 0.75)]
)
@pytest.mark.parametrize("target", ["f16", "bf16"])
def test_a_number_that_a_type_has_is_no_other(source: str, number: float, target: str) -> None:
    text = f"""HloModule m
ENTRY e {{
  p = {source}[] parameter(0)
  c = {target}[] convert(p)
  ROOT r = {target}[] negate(c)
}}
"""
    given, dtype = ELEMENT_TYPES[source].numpy.type(number), ELEMENT_TYPES[target].numpy
    right = np.asarray(-number).astype(dtype)
    assert _judged(text, [given], right) == "equal"
    beside = (right.view(np.int16) + np.int16(1)).astype(np.int16).view(dtype)
    assert _judged(text, [given], beside) == "outside"


def test_a_total_order_tells_zeros_apart() -> None:
    text = _SORT.replace("OPCODE", "floor").replace("TYPE", ", type=TOTALORDER")
    x = np.float32([0.2, 0.1, 1.5])
    for legal in (x, x[[1, 0, 2]]):  # the first or the second may have become -0
        assert _judged(text, [x], legal) != "outside"
