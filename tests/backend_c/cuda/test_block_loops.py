"""Loops whose trips are little work are one kernel, with the bits of the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from backend_c.cuda import phases
from backend_c.ir.settings import Numerics, launched
from backend_c.lower.plan import Repeat, in_order
from backend_c.pipeline import lowered
from hlo.bit_equality import differences

needs_compiler = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
_ADD = """add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT sum = f32[] add(a, b) }"""


def loop(shape: str, step: str, limit: int = 5) -> str:
    """Write a loop that counts beside a state ``x``; ``step`` gives ``next`` from it."""
    state = f"(s32[], {shape})"
    return f"""HloModule loops
    {_ADD}
    below {{ s = {state} parameter(0)
            n = s32[] get-tuple-element(s), index=0
            limit = s32[] constant({limit})
            ROOT less = pred[] compare(n, limit), direction=LT }}
    step {{ s = {state} parameter(0)
           n = s32[] get-tuple-element(s), index=0
           x = {shape} get-tuple-element(s), index=1
           one = s32[] constant(1)
           more = s32[] add(n, one)
           zero = f32[] constant(0)
           {step}
           ROOT state = {state} tuple(more, next) }}
    ENTRY main {{ x = {shape} parameter(0)
                 zero = s32[] constant(0)
                 start = {state} tuple(zero, x)
                 end = {state} while(start), condition=below, body=step
                 ROOT r = {shape} get-tuple-element(end), index=1 }}"""


SUM = """sum = f32[] reduce(x, zero), dimensions={0}, to_apply=add
           all = f32[300] broadcast(sum), dimensions={}
           next = f32[300] divide(x, all)"""
ROW = """line = s32[] multiply(n, n)
           row = f32[1,7] dynamic-slice(x, line, n), dynamic_slice_sizes={1,7}
           twice = f32[1,7] add(row, row)
           next = f32[40,9] dynamic-update-slice(x, twice, more, n)"""
SCALAR = "square = f32[] multiply(x, x)\n           next = f32[] subtract(square, x)"
LITTLE = {"sum": ("f32[300]", SUM), "row": ("f32[40,9]", ROW), "scalar": ("f32[]", SCALAR)}
# A product of matrices is written for many blocks.
MUCH = loop(
    "f32[16,16]",
    "next = f32[16,16] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
)


def repeats(text: str) -> int:
    """Count the loops of the host."""
    plan = phases.split(lowered(hlo.parse(text), launched(Numerics.EXACT)))
    return sum(isinstance(step, Repeat) for _, step in in_order(plan.steps))


@pytest.mark.sampled(2)
@needs_compiler
@pytest.mark.parametrize("name", LITTLE)
@pytest.mark.parametrize("threads", [1, 96])
def test_one_block_makes_all_trips(name: str, threads: int) -> None:
    text = loop(*LITTLE[name])
    assert repeats(text) == 0
    module = hlo.parse(text)
    dims = module.entry.parameters[0].shape.dims  # type: ignore[union-attr]
    x = np.linspace(-1, 2, int(np.prod(dims)), dtype=np.float32).reshape(dims)
    schedule = backend_c.Schedule(threads=threads, seed=threads)
    found = backend_c.emulate(module)(x, schedule=schedule)
    assert not differences(interp.evaluate(module, x), found)


@needs_compiler
def test_loops_inside_of_loops_are_in_the_same_kernel() -> None:
    inner = loop("f32[40]", "next = f32[40] reverse(x), dimensions={0}", limit=3)
    computations = inner.replace("HloModule loops", "").replace("ENTRY main", "turned")
    body = "next = f32[40] call(x), to_apply=turned"
    text = loop("f32[40]", body).replace("HloModule loops", "HloModule loops\n" + computations)
    for name in ("add", "below", "step"):  # those of the inner one, which come first
        text = text.replace(f"{name} {{", f"inner_{name} {{", 1)
    text = text.replace("condition=below, body=step", "condition=inner_below, body=inner_step", 1)
    assert repeats(text) == 0
    module, x = hlo.parse(text), np.arange(40, dtype=np.float32)
    assert not differences(interp.evaluate(module, x), backend_c.emulate(module)(x))


def test_loops_of_much_work_are_those_of_the_host() -> None:
    assert repeats(MUCH) == 1


@needs_compiler
def test_a_loop_of_copies_alone() -> None:
    """A loop that only copies is no kernel of its own: there is no kernel to put it in."""
    text = """HloModule copies
    again { s = (pred[], f32[4], f32[4]) parameter(0)
            ROOT p = pred[] get-tuple-element(s), index=0 }
    swap { s = (pred[], f32[4], f32[4]) parameter(0)
           x = f32[4] get-tuple-element(s), index=1
           y = f32[4] get-tuple-element(s), index=2
           no = pred[] constant(false)
           ROOT t = (pred[], f32[4], f32[4]) tuple(no, y, x) }
    ENTRY main { p = pred[] parameter(0)
                 x = f32[4] parameter(1)
                 y = f32[4] parameter(2)
                 start = (pred[], f32[4], f32[4]) tuple(p, x, y)
                 ROOT end = (pred[], f32[4], f32[4]) while(start), condition=again, body=swap }"""
    module, x = hlo.parse(text), np.arange(4, dtype=np.float32)
    for given in (np.asarray(True), np.asarray(False)):
        expected = interp.evaluate(module, given, x, -x)
        assert not differences(expected, backend_c.emulate(module)(given, x, -x))
