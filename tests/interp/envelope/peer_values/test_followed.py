"""A step is wrong only if it is wrong whichever values a compiler computes again, or never."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import hlo
import interp
from hlo.module import Module
from hlo.values import Array
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import Enclosure
from interp.envelope.judgement import Judge
from interp.envelope.peer_values.followed import Trust, followed
from interp.envelope.verdict import OUTSIDE, UNDETERMINED, WITHIN

_QUOTIENT = """HloModule m
ENTRY e {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  c = f32[2] parameter(2)
  ea = f32[2] exponential(a)
  eb = f32[2] exponential(b)
  ec = f32[2] exponential(c)
  product = f32[2] multiply(ea, eb)
  ROOT quotient = f32[2] divide(product, ec)
}
"""


def merged(module: Module, a: Array, b: Array, c: Array) -> Sequence[Array]:
    """Compute as XLA does: products and quotients of exponentials as exponentials of sums."""
    with np.errstate(over="ignore"):
        values = {
            "a": a, "b": b, "c": c, "ea": np.exp(a), "eb": np.exp(b), "ec": np.exp(c),
            "product": np.exp(a + b), "quotient": np.exp(a + (b - c)),
        }  # fmt: skip
    root = module.entry.root_instruction
    names = root.operands if root.opcode == "tuple" else (root.name,)
    return [values[name] for name in names]


def test_an_exponential_of_a_sum_does_not_pass_through_the_product() -> None:
    """exp(a) exp(b) / exp(c) as exp(a + (b - c)): a product that is shown is exp(a + b), whose
    argument is rounded on its own. In the second element the quotient may be anything."""
    module = hlo.parse(_QUOTIENT)
    arguments = [np.array(x, np.float32) for x in ([60.1, 200], [20.3, 0], [-0.01, 200])]
    exact = [("", np.asarray(interp.evaluate(module, *arguments)))]
    judge = Judge(module, tuple(arguments), exact, peer=XLA_CPU)
    actual = merged(module, *arguments)
    found = judge.judged(actual, lambda other: merged(other, *arguments))
    assert not found.wrong
    assert (found.counts[OUTSIDE], found.counts[UNDETERMINED], found.counts[WITHIN]) == (0, 1, 1)


_BITS = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  c = f32[2] parameter(1)
  power = f32[2] exponential(x)
  difference = f32[2] subtract(power, c)
  bits = s32[2] bitcast-convert(difference)
  ones = s32[] constant(8388607)
  mask = s32[2] broadcast(ones), dimensions={}
  ROOT fraction = s32[2] and(bits, mask)
}
"""


def test_bits_are_those_of_the_float_that_is_shown() -> None:
    """Bits of a float within its interval are taken as shown, unless the interval has both signs:
    then anything lies between the bits of its ends."""
    module = hlo.parse(_BITS)
    x, c = np.float32([5, 1]), np.float32([0, np.exp(np.float32(1))])
    bits = (np.exp(x) * np.float32(1 + 2**-22) - c).view(np.int32)
    found, wrong = followed(module, {"bits": bits}, x, c, peer=XLA_CPU, trust=Trust.STEPS)
    assert not wrong
    assert isinstance(found.result, Enclosure)
    low, high = found.result.low, found.result.high
    assert low[0] == high[0] == bits[0] & 8388607
    assert low[1] < high[1]


_PARTS = """HloModule m
difference {
  t = (f32[2], f32[2], f32[2]) parameter(0)
  a = f32[2] get-tuple-element(t), index=0
  b = f32[2] get-tuple-element(t), index=1
  c = f32[2] get-tuple-element(t), index=2
  p = f32[2] multiply(a, b)
  ROOT s = f32[2] subtract(p, c)
}
first {
  t = (f32[2], f32[2], f32[2]) parameter(0)
  ROOT a = f32[2] get-tuple-element(t), index=0
}
less {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = pred[] compare(x, y), direction=LT
}
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y)
}
again {
  t = (s32[], f32[2], f32[2], f32[2], f32[2]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(TRIPS)
  ROOT r = pred[] compare(i, n), direction=LT
}
trip {
  t = (s32[], f32[2], f32[2], f32[2], f32[2]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  a = f32[2] get-tuple-element(t), index=1
  b = f32[2] get-tuple-element(t), index=2
  c = f32[2] get-tuple-element(t), index=3
  p = f32[2] multiply(a, b)
  s = f32[2] subtract(p, c)
  kept = f32[2] get-tuple-element(t), index=4
  ROOT r = (s32[], f32[2], f32[2], f32[2], f32[2]) tuple(j, a, b, c, CARRIED)
}
ENTRY e {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  c = f32[2] parameter(2)
  sure = pred[] constant(true)
  zero = f32[] constant(0)
  none = s32[] constant(0)
  p = f32[2] multiply(a, b)
  d = f32[2] subtract(p, c)
  column = f32[2,1] reshape(d)
  operands = (f32[2], f32[2], f32[2]) tuple(a, b, c)
  state = (s32[], f32[2], f32[2], f32[2], f32[2]) tuple(none, a, b, c, d)
  PART
  many = f32[] constant(1048576)
  k = f32[2] broadcast(many), dimensions={}
  ROOT r = f32[2] multiply(s, k)
}
"""
_WHILE = """w = (s32[], f32[2], f32[2], f32[2], f32[2]) while(state), condition=again, body=trip
  s = f32[2] get-tuple-element(w), index=4"""
_CONVOLUTION = """image = f32[2,1,1] reshape(d)
  ones = f32[1] constant({1})
  kernel = f32[1,1,1] reshape(ones)
  f = f32[2,1,1] convolution(image, kernel), window={size=1}, dim_labels=b0f_0io->b0f
  s = f32[2] reshape(f)"""
_SCATTER = """at = s32[1] constant({0})
  zeros = f32[2] broadcast(zero), dimensions={}
  s = f32[2] scatter(zeros, at, d), to_apply=add, update_window_dims={0},
    inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=0"""


def _blamed(part: str, trips: int, carried: str) -> list[str]:
    """Name the steps that are blamed of a compiler that shows a difference of a product as rounded
    twice, and goes on with it as rounded once."""
    text = _PARTS.replace("PART", part).replace("TRIPS", str(trips)).replace("CARRIED", carried)
    a, b = np.array([1.1, 1.3], np.float32), np.array([1.7, 1.9], np.float32)
    product = np.multiply(a, b)
    rest = (a.astype(np.float64) * b - product).astype(np.float32)
    shown = {"s": product - product, "w:trips": np.int32(trips), "r": rest * np.float32(2**20)}
    _, wrong = followed(hlo.parse(text), shown, a, b, product, peer=XLA_CPU, trust=Trust.ONCE)
    return [step.instruction.name for step in wrong]


@pytest.mark.parametrize(
    "part",
    [
        "s = f32[2] conditional(sure, operands, operands), true_computation=difference,"
        " false_computation=first",
        "s = f32[2] reduce-window(d, zero), window={size=1}, to_apply=add",
        "f = f32[2,1] sort(column), dimensions={1}, to_apply=less\n  s = f32[2] reshape(f)",
        's = f32[2] custom-call(d), custom_call_target="Sharding"',
        _CONVOLUTION,
        _SCATTER,
        _WHILE,
    ],
)
def test_what_may_be_inlined_may_be_computed_twice(part: str) -> None:
    """XLA inlines a loop of one trip and a branch that is always taken, and computes their
    elements again where they are read."""
    assert not _blamed(part, 1, "s")


def test_an_element_that_no_trip_changes_may_be_computed_twice() -> None:
    assert not _blamed(_WHILE, 2, "kept")


def test_a_loop_of_two_trips_is_computed_once() -> None:
    assert _blamed(_WHILE, 2, "s") == ["r"]
