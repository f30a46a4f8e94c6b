"""Offsets that are apart in names take no division where their sum takes none."""

from __future__ import annotations

import hlo
from backend_c.ir import index as ix
from backend_c.ir.folded_divisions import with_folded_divisions
from backend_c.ir.loop_ir import INDEX, Array, Let, Load, Loop, Store, Variable, every, expressions
from backend_c.pipeline import lowered, settings_for
from hlo.types import F32

_SOURCE, _TARGET = Array("a0", F32, 64), Array("r0", F32, 64, mutable=True)
_I = Variable(INDEX, "i", 0, 63)
# Squares of groups of channels, whose groups are kept.
_GROUPS = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e { x = f32[4,32,32,256] parameter(0)
  g = f32[4,32,32,32,8] reshape(x)
  q = f32[4,32,32,32,8] multiply(g, g)
  z = f32[] constant(0)
  ROOT r = f32[4,32] reduce(q, z), dimensions={1,2,4}, to_apply=add }
"""


def _loop(factor: int) -> Loop:
    """Return a loop that reads at ``factor`` * (i / 8) + i % 8."""
    q, r = Variable(INDEX, "q", 0, 7), Variable(INDEX, "r", 0, 7)
    offset = ix.add(ix.multiply(q, factor), r)
    body = Let(q, ix.divide(_I, 8)), Let(r, ix.modulo(_I, 8))
    return Loop(_I, ix.constant(64), "lanes", (*body, Store(_TARGET, _I, Load(_SOURCE, offset))))


def test_a_quotient_and_its_remainder_are_what_they_are_of() -> None:
    (loop,) = with_folded_divisions([_loop(8)])
    assert isinstance(loop, Loop)
    assert loop.body == (Store(_TARGET, _I, Load(_SOURCE, _I)),)


def test_others_stay() -> None:
    assert with_folded_divisions([_loop(4)]) == (_loop(4),)


def test_groups_of_channels_are_read_in_order() -> None:
    plan = lowered(hlo.parse(_GROUPS), settings_for("fast"))
    loops = [s for k in plan.kernels for s in every(k.body) if isinstance(s, Loop)]
    inside = [s for loop in loops if "lanes" in loop.kind for s in loop.body]
    assert inside
    assert not any(ix.has_division(e) for s in inside for e in expressions(s))
