"""Counts of operations and bytes are those of the definition of each instruction."""

from __future__ import annotations

import pytest

import hlo
from hlo.types import C64, ELEMENT_TYPES, PRED, TOKEN, ArrayShape, Shape, TupleShape
from hlo.work import Operations, byte_count

COMPUTATIONS = """HloModule m
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
larger { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE }
larger_sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] add(a, b)
  ROOT r = pred[] compare(c, b), direction=GE }
sums { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  e = f32[] add(a, c)
  f = f32[] add(b, d)
  ROOT r = (f32[], f32[]) tuple(e, f) }
step { x = f32[5] parameter(0)
  carry = f32[5] parameter(1)
  next = f32[5] add(x, carry)
  ROOT r = (f32[5], f32[5]) tuple(next, next) }
ENTRY main {
  x = f32[8,8] parameter(0)
  y = f32[4,4] parameter(1)
  s = f32[7,5] parameter(2)
  carry = f32[5] parameter(3)
  z = f32[] constant(0)
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("r = f32[8] reduce(x, z), dimensions={0}, to_apply=sum", 64),
        ("r = f32[4,4] reduce-window(x, z), window={size=2x2 stride=2x2}, to_apply=sum", 64),
        ("r = f32[6,6] reduce-window(x, z), window={size=3x3}, to_apply=sum", 36 * 9),
        ("r = f32[8,8] reduce-window(x, z), window={size=1x3 pad=0_0x1_1}, to_apply=sum", 64 * 3),
        # A cumulative sum, and a sum of everything.
        ("r = f32[8,8] reduce-window(x, z), window={size=8x1 pad=7_0x0_0}, to_apply=sum", 64),
        ("r = f32[1,1] reduce-window(x, z), window={size=8x8}, to_apply=sum", 64),
        (
            "r = (f32[4,4], f32[4,4]) reduce-window(x, x, z, z), window={size=2x2 stride=2x2}, "
            "to_apply=sums",
            128,
        ),
        (
            "r = f32[8,8] select-and-scatter(x, y, z), window={size=2x2 stride=2x2}, "
            "select=larger, scatter=sum",
            16,
        ),
        (
            "r = f32[8,8] select-and-scatter(x, y, z), window={size=2x2 stride=2x2}, "
            "select=larger_sum, scatter=sum",
            16 * 4,
        ),
        (
            "r = (f32[7,5], f32[5]) scan(s, carry), dimensions={0}, num_carries=1, to_apply=step",
            35,
        ),
    ],
)
def test_operations(line: str, expected: int) -> None:
    module = hlo.parse(f"{COMPUTATIONS}  ROOT {line}\n}}\n")
    hlo.verify(module)
    assert Operations(module).of("main") == {("f32", False): expected}


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (ArrayShape(PRED, (3, 5)), 15),
        (ArrayShape(C64), 8),
        # Elements of less than a byte take one each in arguments, results and workspace.
        (ArrayShape(ELEMENT_TYPES["s4"], (100,)), 100),
        (TupleShape((ArrayShape(ELEMENT_TYPES["u2"], (7,)), ArrayShape(TOKEN))), 7),
    ],
)
def test_bytes(shape: Shape, expected: int) -> None:
    assert byte_count(shape) == expected
