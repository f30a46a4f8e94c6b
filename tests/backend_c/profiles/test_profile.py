"""Check profiles: they list all kernels, with reasons, and the times that the timers measured."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings

import fuzz
import hlo
from backend_c.ir.settings import Numerics, threaded
from backend_c.native.cache import Cache, default_directory, open_cache
from backend_c.native.toolchain import Compiler, known_compiler
from backend_c.pipeline import lowered
from backend_c.profiler import Profiler
from backend_c.profiles.limits import Limits
from backend_c.profiles.profile import Profile
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan
from hlo.errors import ArgumentError, Unsupported
from hlo.module import Module
from hlo.passes import run
from hlo.passes.fusion_targets import TARGETS
from hlo.work import byte_count, bytes_read

# Of a machine that moves 10 GB and does 100 billion operations a second, on any number of threads.
LIMITS = Limits({1 << 18: 1e10}, {1 << 18: 1e10}, {"f32": 1e11, "f64": 5e10}, 1e-6)
LAYER = """HloModule layer
add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT sum = f32[] add(a, b) }
ENTRY main {
  x = f32[64,256] parameter(0)
  w = f32[256,512] parameter(1)
  b = f32[512] parameter(2)
  product = f32[64,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  biases = f32[64,512] broadcast(b), dimensions={1}
  biased = f32[64,512] add(product, biases)
  active = f32[64,512] tanh(biased)
  zero = f32[] constant(0)
  rows = f32[64] reduce(active, zero), dimensions={1}, to_apply=add
  scales = f32[64,512] broadcast(rows), dimensions={0}
  scaled = f32[64,512] divide(active, scales)
  columns = f32[512] reduce(scaled, zero), dimensions={0}, to_apply=add
  ROOT both = (f32[64,512], f32[512]) tuple(scaled, columns)
}
"""
LOOP = """HloModule loop
condition { state = (s32[], f32[1000]) parameter(0)
            i = s32[] get-tuple-element(state), index=0
            ten = s32[] constant(10)
            ROOT less = pred[] compare(i, ten), direction=LT }
body { state = (s32[], f32[1000]) parameter(0)
       i = s32[] get-tuple-element(state), index=0
       x = f32[1000] get-tuple-element(state), index=1
       one = s32[] constant(1)
       next = s32[] add(i, one)
       root = f32[1000] sqrt(x)
       ROOT both = (s32[], f32[1000]) tuple(next, root) }
ENTRY main {
  zero = s32[] constant(0)
  start = f32[1000] parameter(0)
  init = (s32[], f32[1000]) tuple(zero, start)
  ROOT result = (s32[], f32[1000]) while(init), condition=condition, body=body
}
"""
_CONTROL = {"while", "conditional", "call", "scan", "fusion", "map", "sort"} | {
    f"{name}-{stage}" for name in ("async",) for stage in ("start", "update", "done")
}


@cache
def compiler() -> tuple[Compiler, Cache]:
    kept = open_cache(default_directory(os.environ))
    return known_compiler(os.environ, kept), kept


def profiler(module: Module) -> Profiler:
    fast = threaded(Numerics.FAST)
    return Profiler(module, fast, "backend_c_fast", *compiler(), lambda threads, cache: LIMITS)


def explained(module: Module) -> Profile:
    return profiler(module).explain(threads=2)


def test_table(golden: Callable[[str, str], None]) -> None:
    profile = replace(explained(hlo.parse(LAYER)), stages={"passes": 0.0123})
    golden("explain.txt", profile.table() + "\n")


def before_fusion(module: Module) -> Module:
    stages, found = [module], []

    def after(name: str, made: Module) -> None:
        found.extend(stages[-1:] if name in TARGETS else [])
        stages.append(made)

    run(module, "backend_c_fast", after)
    return found[0]


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(fuzz.modules())
def test_every_instruction_and_every_byte_is_accounted_for(module: Module) -> None:
    note(hlo.format(module))
    try:
        profile = explained(module)
    except Unsupported:
        assume(False)
    assert profile.table() and json.loads(json.dumps(profile.json()))
    done = {(row.computation, i) for row in profile.rows for i in row.instructions}
    done |= {(row.computation, row.instruction) for row in profile.rows}
    free = {(name, i) for name, names in profile.free.items() for i in names}
    assert not done & free
    entry = before_fusion(module).entry
    assert {(entry.name, i.name) for i in entry.instructions} <= done | free
    assert all(row.why for row in profile.kernels)
    if _CONTROL.isdisjoint(i.opcode for i in entry.instructions):
        needed = bytes_read(entry) + byte_count(entry.root_instruction.shape)
        assert sum(row.read + row.written for row in profile.kernels) >= needed


def test_reasons_are_those_of_fusion() -> None:
    profile = explained(hlo.parse(LAYER))
    by_name = {row.instruction: row for row in profile.rows}
    assert by_name["active"].why == "it is what a contraction computes of its sums last"
    assert by_name["active"].instructions == ("product", "biases", "biased", "active")
    assert by_name["active"].kind == "dot"
    assert by_name["scaled"].instructions == ("rows", "scales", "scaled")
    assert by_name["scaled"].kind == "rows" and by_name["columns"].kind == "reduce"
    assert {(e.producer, e.consumer) for e in profile.edges} == {(0, 1), (1, 2)}


def test_work_and_limits_of_a_dot() -> None:
    dot = explained(hlo.parse(LAYER)).rows[0]
    added, tanh = 64 * 512, 12 * 64 * 512
    assert dot.operations == {"f32": 2.0 * 64 * 512 * 256 + added + tanh}
    assert (dot.read, dot.written) == (4 * (64 * 256 + 256 * 512 + 512), 4 * 64 * 512)
    assert dot.bound.limit == "compute" and dot.bound.seconds == dot.flops / 1e11


def test_times_of_a_loop() -> None:
    module = hlo.parse(LOOP)
    start = np.linspace(0, 2, 1000, dtype=np.float32)
    profile = profiler(module).profile([start], repeat=2, threads=1)
    (loop,) = (row for row in profile.rows if not row.is_kernel)
    inside = [row for row in profile.rows if row.depth == 1]
    assert loop.kind == "while" and loop.runs == 10
    assert {row.runs for row in inside} == {10, 11}  # the condition holds ten times, then not
    assert loop.measured == pytest.approx(sum(row.measured or 0.0 for row in inside))
    shares = [profile.share(row) or 0.0 for row in profile.kernels]
    assert sum(shares) == pytest.approx(1.0)
    assert profile.seconds and profile.repeat == 2 and "compiling" in profile.stages
    assert repr(profile).startswith("Profile(loop, fast, ") and "\n" not in repr(profile)
    assert "% limit" in profile.table()


def test_trips_are_known_before_they_are_measured() -> None:
    profile = explained(hlo.parse(LOOP))
    assert [row.runs for row in profile.rows if row.kind == "while"] == [10]


def test_only_a_profile_has_timers() -> None:
    plan = lowered(hlo.parse(LOOP))
    plain, timed = render_plan(plan, OPENMP), render_plan(plan, OPENMP, timed=True)
    assert all("hlo_note" not in text for text in plain.sources.values())
    (one,), (other,) = plain.sources.values(), timed.sources.values()
    removed = [line for line in other.splitlines() if line not in one.splitlines()]
    assert removed and not set(one.splitlines()) - set(other.splitlines()) - {"    (void)seed;"}
    assert plain.times is None and timed.times is not None
    assert timed.workspace_bytes > timed.times >= plain.workspace_bytes


@pytest.mark.parametrize(
    "text",
    [
        "ROOT x = f32[0,4] parameter(0)",
        "x = f32[0,4] parameter(0)\n  ROOT y = f32[0,4] exponential(x)",
        "ROOT t = token[] after-all()",
        "ROOT t = () tuple()",
        "x = f32[] parameter(0)\n  z = (f32[]) tuple(x)\n  ROOT t = (f32[], (f32[])) tuple(x, z)",
        "x = f32[<=8] parameter(0)\n  ROOT y = f32[<=8] negate(x)",
    ],
)
def test_programs_with_little_to_do(text: str) -> None:
    profile = explained(hlo.parse(f"HloModule little\nENTRY main {{\n  {text}\n}}\n"))
    assert profile.table().startswith("little: fast numerics, 2 threads: ")


def test_what_cannot_be_profiled() -> None:
    with pytest.raises(ArgumentError, match="at least 1"):
        profiler(hlo.parse(LOOP)).profile([], repeat=0)
    with pytest.raises(ArgumentError, match="1 argument is"):
        profiler(hlo.parse(LOOP)).profile([], repeat=1)


def test_threads_that_no_program_runs_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenMP runtimes end the process if they are asked for too many."""
    looping = profiler(hlo.parse(LOOP))
    for threads in (0, -3, 10**9):
        with pytest.raises(ArgumentError, match=f"threads={threads}: from 1 to"):
            looping.explain(threads)
        with pytest.raises(ArgumentError, match=f"threads={threads}: from 1 to"):
            looping.profile([], repeat=1, threads=threads)
    monkeypatch.setenv("OMP_NUM_THREADS", str(10**9))
    with pytest.raises(ArgumentError, match="threads=1000000000"):
        looping.explain()
