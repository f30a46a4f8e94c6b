"""Inlining: names, nesting, what stays, and the cap on growth."""

import numpy as np
import pytest

import hlo
import interp
from hlo.errors import Unsupported
from hlo.passes.dead_code import dead_code
from hlo.passes.inline import inline

NESTED = """HloModule nested
inner { x = f32[2] parameter(0)
  ROOT twice = f32[2] add(x, x) }
outer { a = f32[2] parameter(0)
  b = f32[2] fusion(a), kind=kLoop, calls=inner
  ROOT c = f32[2] call(b), to_apply=inner }
ENTRY main { p = f32[2] parameter(0)
  q = f32[2] call(p), to_apply=outer
  ROOT r = f32[2] negate(q), control-predecessors={q} }
"""


def test_nested_calls_become_one_computation() -> None:
    module = dead_code(inline(hlo.parse(NESTED)))
    assert [c.name for c in module.computations] == ["main"]
    found = [(i.name, i.opcode, i.operands) for i in module.entry.instructions]
    assert found == [
        ("p", "parameter", ()),
        ("inner.twice", "add", ("p", "p")),
        ("inner.twice.1", "add", ("inner.twice", "inner.twice")),
        ("r", "negate", ("inner.twice.1",)),
    ]
    assert "control-predecessors" not in module.entry.root_instruction.annotations


def test_the_result_of_a_callee_may_be_its_parameter() -> None:
    module = inline(
        hlo.parse("""HloModule m
same { x = s32[] parameter(0)
  ROOT y = s32[] parameter(1) }
ENTRY main { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] call(b, a), to_apply=same }
""")
    )
    assert module.entry.root == "a"


def test_computations_that_are_applied_stay() -> None:
    module = dead_code(
        inline(
            hlo.parse("""HloModule m
sum { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
ENTRY main { p = f32[4] parameter(0)
  zero = f32[] constant(0)
  s = f32[] reduce(p, zero), dimensions={0}, to_apply=sum
  ROOT t = f32[] call(s, zero), to_apply=sum }
""")
        )
    )
    assert [c.name for c in module.computations] == ["sum", "main"]
    assert [i.opcode for i in module.entry.instructions][-1] == "add"


def test_doubling_at_every_level_is_refused_before_it_happens() -> None:
    levels = "".join(
        f"f{n} {{ x = f32[] parameter(0)\n  y = f32[] call(x), to_apply=f{n - 1}\n"
        f"  ROOT z = f32[] call(y), to_apply=f{n - 1} }}\n"
        for n in range(1, 60)
    )
    first = "f0 { x = f32[] parameter(0)\n  ROOT y = f32[] negate(x) }\n"
    entry = "ENTRY main { p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply=f59 }\n"
    with pytest.raises(Unsupported, match=r"instructions once its calls are inlined"):
        inline(hlo.parse(f"HloModule deep\n{first}{levels}{entry}"))


def test_what_is_started_is_inlined() -> None:
    """An asynchronous call is inlined at its start, or at the update that brings the last
    operand."""
    module = hlo.parse("""
less { a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  ROOT r = f32[2] subtract(a, b) }
ENTRY e { x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  s = ((f32[2], f32[2]), f32[2], u32[]) async-start(x, y), calls=less
  u = ((f32[2], f32[2]), f32[2], u32[]) async-update(s)
  d = f32[2] async-done(u)
  t = ((f32[2]), f32[2]) async-start(d), calls=less
  v = ((f32[2], f32[2]), f32[2]) async-update(t, y), calls=less
  ROOT r = f32[2] async-done(v)
}""")
    changed = inline(module)
    hlo.verify(changed)
    assert [i.opcode for i in changed.entry.instructions] == ["parameter"] * 2 + ["subtract"] * 2
    arrays = np.array([[5, 7], [1, 2]], np.float32)
    assert interp.evaluate(changed, *arrays).tolist() == [3, 3]
    assert interp.evaluate(module, *arrays).tolist() == [3, 3]
