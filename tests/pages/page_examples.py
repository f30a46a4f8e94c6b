"""Programs and pages that the tests of pages share."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from functools import cache

import numpy as np

import hlo
import interp
import pages
from backend_c.ir.settings import Numerics, threaded
from backend_c.native.cache import default_directory, open_cache
from backend_c.native.toolchain import known_compiler
from backend_c.profiler import Profiler
from backend_c.profiles.limits import Limits
from backend_c.profiles.profile import Profile
from fuzz.campaign import overview
from hlo.module import Module
from interp.envelope.enclosure import Enclosure, point
from interp.envelope.nested_values import Evaluation, FirstOutside, NestedValue
from interp.envelope.trying import Found, Output
from interp.envelope.verdict import KINDS, OUTSIDE, judged

# Of a machine that moves 10 GB and does 100 billion operations a second, on any number of threads.
LIMITS = Limits({1 << 18: 1e10}, {1 << 18: 1e10}, {"f32": 1e11, "f64": 5e10}, 1e-6)
# Its loop stays one: each element of a trip depends on another one of the trip before.
MODEL = """HloModule model

FileNames
1 "model.py"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=9}
2 {file_name_id=1 function_name_id=1 line=4 end_line=4 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT sum = f32[] add(a, b) }
condition { state = (s32[], f32[64,512]) parameter(0)
            i = s32[] get-tuple-element(state), index=0
            ten = s32[] constant(10)
            ROOT less = pred[] compare(i, ten), direction=LT }
body { state.1 = (s32[], f32[64,512]) parameter(0)
       i.1 = s32[] get-tuple-element(state.1), index=0
       x.1 = f32[64,512] get-tuple-element(state.1), index=1
       one = s32[] constant(1)
       next = s32[] add(i.1, one)
       back = f32[64,512] reverse(x.1), dimensions={0}
       doubled = f32[64,512] add(x.1, back), metadata={op_name="twice" stack_frame_id=2}
       ROOT both = (s32[], f32[64,512]) tuple(next, doubled) }
ENTRY main {
  x = f32[64,256] parameter(0)
  w = f32[256,512] parameter(1)
  b = f32[512] parameter(2)
  product = f32[64,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/dot" stack_frame_id=1}
  biases = f32[64,512] broadcast(b), dimensions={1}
  biased = f32[64,512] add(product, biases), metadata={op_name="jit(f)/add" stack_frame_id=1}
  active = f32[64,512] tanh(biased), metadata={op_name="jit(f)/tanh" stack_frame_id=2}
  zero = f32[] constant(0)
  rows = f32[64] reduce(active, zero), dimensions={1}, to_apply=add
  scales = f32[64,512] broadcast(rows), dimensions={0}
  scaled = f32[64,512] divide(active, scales)
  zero.1 = s32[] constant(0)
  init = (s32[], f32[64,512]) tuple(zero.1, scaled)
  loop = (s32[], f32[64,512]) while(init), condition=condition, body=body
  ROOT result = f32[64,512] get-tuple-element(loop), index=1
}
"""
SOURCES = {"model.py": ["import jax.numpy as np", "def f(x, w, b):", "  y = x @ w + b", "  g(y)"]}
# Names and strings that want to be markup, or more than a page can show.
TAG = "</script><script>hacked=1</script><img src=x onerror=hacked=1>"
NAMES = (TAG, "<!--", "\N{PILE OF POO}\N{RIGHT-TO-LEFT OVERRIDE}emoji", "n" * 10_000, "constructor")
METADATA = f'{{op_name="{TAG}" source_file="{TAG}" source_line=1}}'
HOSTILE = f"""HloModule %"{TAG}"
ENTRY main {{
  %"{NAMES[0]}" = f32[2] parameter(0), metadata={METADATA}
  %"{NAMES[1]}" = f32[2] negate(%"{NAMES[0]}")
  %"{NAMES[2]}" = f32[2] negate(%"{NAMES[1]}"), metadata={{op_name="&lt;b&gt; __proto__"}}
  %"{NAMES[3]}" = f32[2] negate(%"{NAMES[2]}"), frontend_attributes={{x="<svg onload=hacked=1>"}}
  ROOT %"{NAMES[4]}" = f32[2] negate(%"{NAMES[3]}")
}}
"""


@cache
def module(text: str) -> Module:
    """Return a verified module."""
    parsed = hlo.parse(text)
    hlo.verify(parsed)
    return parsed


@cache
def profile(text: str) -> Profile:
    """Explain a program, as it would run on the machine of LIMITS."""
    kept = open_cache(default_directory(os.environ))
    compiler = known_compiler(os.environ, kept)
    settings = threaded(Numerics.FAST)
    of_machine = Profiler(
        module(text), settings, "backend_c_fast", compiler, kept, lambda threads, cache: LIMITS
    )
    return of_machine.explain(1)


def chain(count: int) -> str:
    """Return a program of about so many instructions, a few of them in each layer."""
    lines = ["x0 = f32[8] parameter(0)"]
    for n in range(1, count - 1):
        other = f"x{max(0, n - 7 - n % 5)}"
        lines.append(f"x{n} = f32[8] add(x{n - 1 if n % 4 else max(0, n - 4)}, {other})")
    root = f"ROOT r = f32[8] negate(x{count - 2})"
    return "\n".join(["HloModule chain", "ENTRY main {", *lines, root, "}"])


def found(oracle: str, kind: str, **more: object) -> dict[str, object]:
    """Return a finding as an index page has it."""
    return asdict(overview.Found("runs/a/findings/b", oracle, kind, **more))  # type: ignore[arg-type]


def page_with_values() -> pages.Page:
    """Return the page of a run, and of a peer that is wrong in one element."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(d, dtype=np.float32) for d in ((64, 256), (256, 512), (512,))]
    observed = pages.Observed(module(MODEL))
    exact = interp.evaluate(module(MODEL), *arrays, watch=observed)
    legal = Enclosure(exact, exact, np.zeros(exact.shape, bool))
    actual = exact.copy()
    actual[3, 5] += 1
    output = Output("", judged(actual, exact, legal), actual, exact, legal)
    row = Output(
        "rows", judged(exact[0], exact[0], point(exact[0])), *2 * [exact[0]], point(exact[0])
    )
    inner = [replace(output, place="scaled"), row]
    ones, kinds = np.ones((64, 512), np.float32), np.zeros((64, 512), np.int8)
    trips = [Evaluation((n,), ones * (2 if n > 2 else 1), ones, kinds.copy()) for n in range(10)]
    trips[5].kinds[1, 1] = KINDS.index(OUTSIDE)
    nested = [NestedValue("body", "doubled", trips)]
    verdict = judged(actual, exact, legal)
    first = FirstOutside("body", "doubled", (5,), verdict, actual, legal), "proof <i>"
    known = pages.Judged("peer", Found((output,)), ["proof <b>"], inner, nested, first)
    values = pages.with_judged(observed.json(), known)
    return pages.explanation(module(MODEL), profile(MODEL), None, values)
