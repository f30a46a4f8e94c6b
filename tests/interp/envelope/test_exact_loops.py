"""Loops as the interpreter runs them: those of one legal result, and how many trips others take."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

import hlo
import interp
from hlo.errors import Error, Unsupported
from hlo.opcodes import ELEMENTWISE, of_family
from hlo.types import ELEMENT_TYPES
from interp.envelope.anchors import planned
from interp.envelope.budget import REWRITTEN, UNKNOWN, XLA_CPU, XLA_TPU, Budget
from interp.envelope.evaluation import enclose
from interp.envelope.exact_loops import exact_loops
from interp.envelope.exact_trips import exact_trips

# Three trips, each of which applies an operation to what it has.
_LOOP = """HloModule loop
body {{
  s = (s32[], {0}[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = {0}[2] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = {0}[2] {1}(x, x)
  ROOT t = (s32[], {0}[2]) tuple(next, y)
}}
condition {{
  s = (s32[], {0}[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}}
ENTRY main {{
  zero = s32[] constant(0)
  x = {0}[2] parameter(0)
  t = (s32[], {0}[2]) tuple(zero, x)
  ROOT w = (s32[], {0}[2]) while(t), condition=condition, body=body
}}
"""


@pytest.mark.parametrize("element_type", ["s32", "u8", "s4", "pred"])
def test_a_loop_of_whole_numbers_is_evaluated(element_type: str) -> None:
    opcode = "xor" if element_type == "pred" else "multiply"
    module = hlo.parse(_LOOP.format(element_type, opcode))
    assert exact_loops(module) == {("main", "w")}
    x = np.array([1, 0]).astype(module.entry.parameters[0].shape.element_type.numpy)
    _, legal = enclose(module, x, peer=XLA_CPU).result
    _, right = interp.evaluate(module, x)
    assert legal.is_point and legal.low.tobytes() == right.tobytes()
    assert legal.low.dtype == right.dtype


@pytest.mark.parametrize(
    ("element_type", "opcode"), [("f32", "multiply"), ("s32", "power"), ("c64", "add")]
)
def test_others_are_followed(element_type: str, opcode: str) -> None:
    assert not exact_loops(hlo.parse(_LOOP.format(element_type, opcode)))


def test_a_power_of_zero_stays_open() -> None:
    exponents = """  i1 = s32[2] broadcast(one), dimensions={}
  i2 = s32[2] negate(i1)
"""
    text = _LOOP.format("s32", "power").replace("power(x, x)", "power(x, i2)")
    module = hlo.parse(text.replace("  y = ", f"{exponents}  y = "))
    _, legal = enclose(module, np.array([0, 1], np.int32), peer=XLA_CPU).result
    assert legal.low[0] < legal.high[0] and legal.low[1] == legal.high[1] == 1


# 1, 1/2, 1/4, … until it is small; floor(exp(x)) is 0, but 1 is legal: with the midpoint of both
# the loop goes on until its counter ends it.
HALVING = """HloModule halving

goes_on {
  s = (f32[], f32[], s32[]) parameter(0)
  t = f32[] get-tuple-element(s), index=0
  i = s32[] get-tuple-element(s), index=2
  small = f32[] constant(0.001)
  most = s32[] constant(500)
  more = pred[] compare(t, small), direction=GT
  few = pred[] compare(i, most), direction=LT
  ROOT r = pred[] and(more, few)
}
turn {
  s = (f32[], f32[], s32[]) parameter(0)
  t = f32[] get-tuple-element(s), index=0
  x = f32[] get-tuple-element(s), index=1
  i = s32[] get-tuple-element(s), index=2
  half = f32[] constant(0.5)
  less = f32[] multiply(t, half)
  power = f32[] exponential(x)
  whole = f32[] floor(power)
  next = f32[] maximum(less, whole)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (f32[], f32[], s32[]) tuple(next, x, j)
}
ENTRY e {
  x = f32[] parameter(0)
  start = f32[] constant(1)
  zero = s32[] constant(0)
  s = (f32[], f32[], s32[]) tuple(start, x, zero)
  w = (f32[], f32[], s32[]) while(s), condition=goes_on, body=turn
  ROOT r = f32[] get-tuple-element(w), index=0
}
"""
X = np.float32(-6e-8)  # one unit below 1 as a power of e


def test_a_loop_that_midpoints_never_leave_is_left() -> None:
    module = hlo.parse(HALVING)
    assert exact_trips(module, (X,)) == {("e", "w"): 10}
    plan = planned(module, X, peer=XLA_CPU)
    assert plan.trips == {"w": 14}  # a quarter and two more
    assert {"w:trips", "w:states:0", "w/whole"} <= plan.names.keys()


def test_the_most_trips_of_an_inner_loop_count() -> None:
    """The inner loop takes as many trips as the outer one has taken: none, one, two, three."""
    module = hlo.parse("""HloModule nested
less { s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT r = pred[] compare(i, n), direction=LT }
inner { s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], s32[]) tuple(j, n) }
outer { s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  zero = s32[] constant(0)
  t = (s32[], s32[]) tuple(zero, i)
  w = (s32[], s32[]) while(t), condition=less, body=inner
  again = s32[] get-tuple-element(w), index=0
  one = s32[] constant(1)
  j = s32[] add(again, one)
  ROOT r = (s32[], s32[]) tuple(j, n) }
ENTRY e { n = s32[] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], s32[]) tuple(zero, n)
  ROOT w = (s32[], s32[]) while(s), condition=less, body=outer }""")
    assert exact_trips(module, (np.int32(4),)) == {("outer", "w"): 3, ("e", "w"): 4}


_WHOLE = {
    "s32": [0, 1, -1, 7, -8, 31, 32, 2**31 - 1, -(2**31)],
    "u8": [0, 1, 7, 8, 100, 128, 255],
    "s4": [0, 1, -1, 7, -8],
    "pred": [0, 1],
}


@pytest.mark.parametrize("peer", [XLA_CPU, UNKNOWN, XLA_TPU, REWRITTEN], ids=lambda b: b.name)
@pytest.mark.parametrize("element_type", _WHOLE)
def test_whole_numbers_have_one_result(element_type: str, peer: Budget) -> None:
    """Instructions of exact loops have one legal result, the interpreter's, also quotients by zero,
    shifts by more bits than there are, and what wraps."""
    numbers = np.array(_WHOLE[element_type]).astype(ELEMENT_TYPES[element_type].numpy)
    pairs = [x.ravel() for x in np.meshgrid(numbers, numbers)]
    t = f"{element_type}[{pairs[0].size}]"
    count = 0
    for opcode in sorted(of_family(ELEMENTWISE) - {"power"}):
        for operands in ("x", "x, y"):
            given = f"x = {t} parameter(0)\n  y = {t} parameter(1)"
            text = f"{given}\n  ROOT r = {t} {opcode}({operands})"
            module = hlo.parse(f"HloModule m\nENTRY e {{\n  {text}\n}}\n")
            with suppress(Error):
                right = interp.evaluate(module, *pairs)
                legal = enclose(module, *pairs, peer=peer).result
                assert legal.is_point and legal.low.tobytes() == right.tobytes(), opcode
                count += 1
    assert count >= (4 if element_type == "pred" else 12)


def test_a_loop_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop of more than ``MOST_TURNS`` turns is refused: with a bound that a peer got wrong it
    may have no end."""
    monkeypatch.setattr("interp.envelope.exact_loops.MOST_TURNS", 100)
    text = _LOOP.format("s32", "multiply").replace("constant(3)", "constant(101)")
    assert exact_loops(hlo.parse(text)) == {("main", "w")}
    with pytest.raises(Unsupported, match="a loop of more than 100 turns is not enclosed"):
        enclose(hlo.parse(text), np.int32([1, 0]), peer=XLA_CPU)
    enclose(hlo.parse(text.replace("101", "100")), np.int32([1, 0]), peer=XLA_CPU)


def test_computations_of_whole_numbers_are_run_exactly() -> None:
    """A fold of two values is followed step by step; each step is one call of the interpreter's,
    as long as nothing is uncertain."""
    text = """HloModule m
f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  e = s32[] multiply(a, c)
  g = s32[] xor(b, d)
  ROOT t = (s32[], s32[]) tuple(e, g)
}
ENTRY e {
  x = s32[7,2] parameter(0)
  y = f32[7,2] parameter(1)
  z = f32[7,2] exponential(y)
  w = s32[7,2] convert(z)
  one = s32[] constant(1)
  ROOT r = (s32[2], s32[2]) reduce(x, OTHER, one, one), dimensions={0}, to_apply=f
}
"""
    random = np.random.default_rng(0)
    x = random.integers(-9, 9, (7, 2), np.int32)
    y = random.uniform(16, 20, (7, 2)).astype(np.float32)
    module = hlo.parse(text.replace("OTHER", "x"))
    found = enclose(module, x, y, peer=XLA_CPU)
    right = interp.evaluate(module, x, y)
    for legal, array in zip(found.result, right, strict=True):
        assert legal.is_point and legal.low.tobytes() == array.tobytes()
    assert found.followed < 6 + 7 * 7  # the fold's seven instructions, seven times
    uncertain = hlo.parse(text.replace("OTHER", "w"))
    one, other = enclose(uncertain, x, y, peer=XLA_CPU).result
    assert one.is_point and not other.is_point
