"""Loops over the same elements become one, where no step in between minds."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from backend_c.ir.loop_ir import Apply, Let, Loop, subexpressions
from backend_c.ir.settings import Settings
from backend_c.lower.plan import Launch, Plan, in_order
from backend_c.pipeline import lowered

_HEAD = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[2000] parameter(0)
  y = f32[2000] parameter(1)
"""
# A step of Adam: two moments and the weight, which reads both.
_STEP = """  m = f32[2000] subtract(x, y)
  v = f32[2000] multiply(x, x)
  r = f32[2000] sqrt(v)
  w = f32[2000] divide(m, r)
  ROOT t = (f32[2000], f32[2000], f32[2000]) tuple(m, v, w)
}"""
# The mask is read by two loops, and by nothing else.
_MASK = """  e = f32[2000] exponential(x)
  l = f32[2000] logistic(e)
  c = pred[2000] compare(l, y), direction=LT
  one = f32[2000] select(c, x, y)
  other = s32[2000] convert(c)
  ROOT t = (f32[2000], s32[2000]) tuple(one, other)
}"""
# Both results' loops compute the product and the quotient.
_ALIKE = """  a = f32[] parameter(2)
  h = f32[] divide(a, a)
  hs = f32[2000] broadcast(h), dimensions={}
  p = f32[2000] multiply(x, hs)
  m = f32[2000] subtract(p, y)
  n = f32[2000] add(p, y)
  ROOT t = (f32[2000], f32[2000]) tuple(m, n)
}"""
_REVERSED = """  m = f32[2000] multiply(x, y)
  b = f32[2000] reverse(m), dimensions={0}
  ROOT t = (f32[2000], f32[2000]) tuple(m, b)
}"""
# What lies between them needs the first one and is needed by the second one.
_BETWEEN = """  m = f32[2000] multiply(x, y)
  z = f32[] constant(0)
  s = f32[] reduce(m, z), dimensions={0}, to_apply=add
  sums = f32[2000] broadcast(s), dimensions={}
  w = f32[2000] subtract(m, sums)
  q = f32[2000] multiply(x, m)
  ROOT t = (f32[2000], f32[2000], f32[2000]) tuple(m, w, q)
}"""
_LOOP = """HloModule m
body { s = (s32[], f32[2000], f32[2000]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[2000] get-tuple-element(s), index=1
  y = f32[2000] get-tuple-element(s), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  m = f32[2000] subtract(x, y)
  w = f32[2000] multiply(x, m)
  ROOT t = (s32[], f32[2000], f32[2000]) tuple(n, w, m) }
condition { s = (s32[], f32[2000], f32[2000]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  five = s32[] constant(5)
  ROOT p = pred[] compare(i, five), direction=LT }
ENTRY main {
  x = f32[2000] parameter(0)
  y = f32[2000] parameter(1)
  z = s32[] constant(0)
  s = (s32[], f32[2000], f32[2000]) tuple(z, x, y)
  ROOT w = (s32[], f32[2000], f32[2000]) while(s), condition=condition, body=body
}"""


def _plan(text: str) -> Plan:
    return lowered(hlo.parse(text), Settings())


def _of_arrays(plan: Plan) -> list[Launch]:
    """Return the launches that write arrays."""
    launches = [step for _, step in in_order(plan.steps) if isinstance(step, Launch)]
    return [one for one in launches if any(b.shape.elements > 1 for b in one.outputs)]


@pytest.mark.parametrize(
    ("body", "launches", "outputs"),
    [(_STEP, 1, 3), (_MASK, 1, 2), (_REVERSED, 2, 2), (_BETWEEN, 2, 3)],
    ids=["step", "mask", "reversed", "between"],
)
def test_loops_that_share_arrays_are_one(body: str, launches: int, outputs: int) -> None:
    found = _of_arrays(_plan(_HEAD + body))
    assert len(found) == launches
    assert sum(len(launch.outputs) for launch in found) == outputs


def test_what_loops_compute_alike_is_computed_once() -> None:
    plan = _plan(_HEAD + _ALIKE)
    (kernel,) = plan.kernels
    *bound, loop = kernel.body
    assert isinstance(loop, Loop)
    values = [let.value for let in (*bound, *loop.body) if isinstance(let, Let)]
    assert len({*values}) == len(values)
    parts = [part for value in values for part in subexpressions(value) if isinstance(part, Apply)]
    assert sorted(part.operation for part in parts) == ["add", "divide", "multiply", "subtract"]


def test_loops_in_the_body_of_a_loop_are_one() -> None:
    assert len(_of_arrays(_plan(_LOOP))) == 1


def test_kernels_are_those_that_are_launched() -> None:
    plan = _plan(_HEAD + _STEP)
    numbers = {step.kernel for _, step in in_order(plan.steps) if isinstance(step, Launch)}
    assert numbers == set(range(len(plan.kernels)))


def test_loops_over_few_elements_or_of_many_arrays_stay_apart() -> None:
    assert len(_of_arrays(_plan((_HEAD + _STEP).replace("2000", "100")))) == 3
    lines = [f"  p{n} = f32[2000] parameter({n + 2})" for n in range(12)]
    lines += [f"  q{n} = f32[2000] multiply(x, p{n})" for n in range(12)]
    shapes = ", ".join(["f32[2000]"] * 12)
    names = ", ".join(f"q{n}" for n in range(12))
    lines.append(f"  ROOT t = ({shapes}) tuple({names})\n}}")
    for launch in _of_arrays(_plan(_HEAD + "\n".join(lines))):
        assert 2 < len(launch.inputs) + len(launch.outputs) <= 12


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_results_are_those_of_the_interpreter(numerics: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(0.5, 2.0, 2000).astype(np.float32) for _ in range(2))
    for text in (_HEAD + _STEP, _HEAD + _REVERSED, _LOOP):
        module = hlo.parse(text)
        found = backend_c.compile(module, numerics=numerics)(x, y)
        for one, other in zip(found, interp.evaluate(module, x, y), strict=True):
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_every_instruction_of_merged_loops_is_explained() -> None:
    rows = backend_c.explain(hlo.parse(_HEAD + _STEP)).rows
    assert [set(row.instructions) for row in rows] == [{"m", "v", "r", "w"}]
