"""Loops over trips of maps become loops over blocks of elements with the trips inside."""

from __future__ import annotations

import os

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from backend_c.ir.settings import Settings
from backend_c.lower.plan import Launch, Plan, Repeat, in_order
from backend_c.pipeline import lowered, planned
from fuzz.compilers.combined_programs import compiled
from fuzz.compilers.quick_compilers import quick
from fuzz.draw.choices import Choices, examples
from fuzz.draw.programs import single_op
from fuzz.draw.values import arguments
from fuzz.reducer.search import Case
from hlo.bit_equality import differences
from hlo_oracle.arguments import from_seed

_ELEMENTS = 700  # no block size divides it


_TYPES = ("f32", "f64", "f16", "bf16", "s8", "u64", "c64", "s4", "pred")


def _loop(state: str, body: str, entry: str, inner: str = "") -> str:
    """Write a program whose loop has a counter before a ``state``, and ``inner`` computations."""
    text = f"""HloModule m
condition {{ s = (s32[], s32[], {state}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  trips = s32[] get-tuple-element(s), index=1
  ROOT p = pred[] compare(i, trips), direction=LT }}
{inner}body {{ s = (s32[], s32[], {state}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  trips = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
{body} }}
ENTRY main {{ trips = s32[] parameter(0)
  zero = s32[] constant(0)
{entry} }}"""
    return text.replace("N]", f"{_ELEMENTS}]")


def _squares() -> str:
    """Write a program that repeats x * x + x with all kinds of numbers, and counts for each element
    how often the first of them changed."""
    state = ", ".join(f"{t}[N]" for t in (*_TYPES, "s32"))
    body = [f"  p{n} = {t}[N] get-tuple-element(s), index={n + 2}" for n, t in enumerate(_TYPES)]
    body += [f"  q{n} = {t}[N] multiply(p{n}, p{n})" for n, t in enumerate(_TYPES)]
    body += [f"  r{n} = {t}[N] add(q{n}, p{n})" for n, t in enumerate(_TYPES)]
    body += [
        f"  k = s32[N] get-tuple-element(s), index={len(_TYPES) + 2}",
        "  changed = pred[N] compare(p0, r0), direction=NE",
        "  m = s32[N] convert(changed)",
        "  l = s32[N] add(k, m)",
        f"  ROOT t = (s32[], s32[], {state}) tuple(n, trips,"
        f" {', '.join(f'r{n}' for n in range(len(_TYPES)))}, l)",
    ]
    entry = [f"  p{n} = {t}[N] parameter({n + 1})" for n, t in enumerate(_TYPES)]
    entry += [
        "  k = s32[N] broadcast(zero), dimensions={}",
        f"  s = (s32[], s32[], {state}) tuple(zero, trips,"
        f" {', '.join(f'p{n}' for n in range(len(_TYPES)))}, k)",
        f"  ROOT w = (s32[], s32[], {state}) while(s), condition=condition, body=body",
    ]
    return _loop(state, "\n".join(body), "\n".join(entry))


# Two parts of the state change places, one of them is a sine, and the entry wants one alone.
_SWAP = _loop(
    "f32[N], f32[N]",
    """  x = f32[N] get-tuple-element(s), index=2
  y = f32[N] get-tuple-element(s), index=3
  z = f32[N] sine(x)
  f = f32[] convert(i)
  b = f32[N] broadcast(f), dimensions={}
  w = f32[N] add(z, b)
  ROOT t = (s32[], s32[], f32[N], f32[N]) tuple(n, trips, y, w)""",
    """  x = f32[N] parameter(1)
  y = f32[N] parameter(2)
  s = (s32[], s32[], f32[N], f32[N]) tuple(zero, trips, x, y)
  w = (s32[], s32[], f32[N], f32[N]) while(s), condition=condition, body=body
  ROOT r = f32[N] get-tuple-element(w), index=3""",
)
# A loop inside, of as many trips as the outer one has done, on an array of two dimensions.
_NESTED = _loop(
    "f32[20,N]",
    """  x = f32[20,N] get-tuple-element(s), index=2
  u = f32[20,N] negate(x)
  z = s32[] constant(0)
  q = (s32[], s32[], f32[20,N]) tuple(z, i, u)
  v = (s32[], s32[], f32[20,N]) while(q), condition=condition, body=inner
  w = f32[20,N] get-tuple-element(v), index=2
  y = f32[20,N] add(w, x)
  ROOT t = (s32[], s32[], f32[20,N]) tuple(n, trips, y)""",
    """  x = f32[20,N] parameter(1)
  s = (s32[], s32[], f32[20,N]) tuple(zero, trips, x)
  w = (s32[], s32[], f32[20,N]) while(s), condition=condition, body=body
  ROOT r = f32[20,N] get-tuple-element(w), index=2""",
    """inner { s = (s32[], s32[], f32[20,N]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  trips = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  x = f32[20,N] get-tuple-element(s), index=2
  half = f32[] constant(0.5)
  b = f32[20,N] broadcast(half), dimensions={}
  h = f32[20,N] multiply(x, b)
  y = f32[20,N] cosine(h)
  ROOT t = (s32[], s32[], f32[20,N]) tuple(n, trips, y) }
""",
)
# Each trip takes its number from a table that all elements share, and turns the table.
_TABLE = _loop(
    "f32[4], s32[N], f32[N]",
    """  t0 = f32[4] get-tuple-element(s), index=2
  g = s32[N] get-tuple-element(s), index=3
  x = f32[N] get-tuple-element(s), index=4
  rest = f32[3] slice(t0), slice={[1:4]}
  first = f32[1] slice(t0), slice={[0:1]}
  turned = f32[4] concatenate(rest, first), dimensions={0}
  taken = f32[N] gather(t0, g), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1}
  y = f32[N] subtract(taken, x)
  ROOT t = (s32[], s32[], f32[4], s32[N], f32[N]) tuple(n, trips, turned, g, y)""",
    """  t0 = f32[4] parameter(1)
  g = s32[N] parameter(2)
  x = f32[N] parameter(3)
  s = (s32[], s32[], f32[4], s32[N], f32[N]) tuple(zero, trips, t0, g, x)
  ROOT w = (s32[], s32[], f32[4], s32[N], f32[N]) while(s), condition=condition, body=body""",
)
# The same of a table that each trip changes in place.
_PATCHED = _TABLE.replace(
    "concatenate(rest, first), dimensions={0}", "dynamic-update-slice(t0, negated, i)"
).replace("  rest = f32[3] slice(t0), slice={[1:4]}\n", "").replace(
    "  turned = ", "  negated = f32[1] negate(first)\n  turned = "
)  # fmt: skip
# Not one element by itself: the neighbour's; an order of trips in memory; few elements.
_ROLLED = _SWAP.replace("sine(x)", "reverse(x), dimensions={0}")
_MAXIMUM = """HloModule m
most { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT m = s32[] maximum(a, b) }
body { x = s32[700] parameter(0)
  one = s32[] constant(1)
  b = s32[700] broadcast(one), dimensions={}
  ROOT y = s32[700] subtract(x, b) }
condition { x = s32[700] parameter(0)
  zero = s32[] constant(0)
  m = s32[] reduce(x, zero), dimensions={0}, to_apply=most
  ROOT p = pred[] compare(m, zero), direction=GT }
ENTRY main { trips = s32[] parameter(0)
  x = s32[700] broadcast(trips), dimensions={}
  ROOT w = s32[700] while(x), condition=condition, body=body }"""
_ROWS = _loop(
    "f32[9,N], f32[N]",
    """  a = f32[9,N] get-tuple-element(s), index=2
  x = f32[N] get-tuple-element(s), index=3
  z = s32[] constant(0)
  row = f32[1,N] dynamic-slice(a, i, z), dynamic_slice_sizes={1,N}
  r = f32[N] reshape(row)
  y = f32[N] add(x, r)
  ROOT t = (s32[], s32[], f32[9,N], f32[N]) tuple(n, trips, a, y)""",
    """  a = f32[9,N] parameter(1)
  x = f32[N] parameter(2)
  s = (s32[], s32[], f32[9,N], f32[N]) tuple(zero, trips, a, x)
  ROOT w = (s32[], s32[], f32[9,N], f32[N]) while(s), condition=condition, body=body""",
).replace("{1,N}", "{1,700}")
_SQUARES_OF_F32 = _loop(
    "f32[N]",
    """  x = f32[N] get-tuple-element(s), index=2
  q = f32[N] multiply(x, x)
  y = f32[N] add(q, x)
  ROOT t = (s32[], s32[], f32[N]) tuple(n, trips, y)""",
    """  x = f32[N] parameter(1)
  s = (s32[], s32[], f32[N]) tuple(zero, trips, x)
  w = (s32[], s32[], f32[N]) while(s), condition=condition, body=body
  ROOT r = f32[N] get-tuple-element(w), index=2""",
).replace(
    "  ROOT p = pred[] compare(i, trips)", "  last = s32[] constant(LAST)\n"
    "  ROOT p = pred[] compare(i, last)"
)  # fmt: skip
_FEW = _SWAP.replace("[700]", "[9]")
_TAKEN = {
    "types": _squares(),
    "swap": _SWAP,
    "nested": _NESTED,
    "table": _TABLE,
    "patched": _PATCHED,
}
_LEFT = {"neighbours": _ROLLED, "maximum": _MAXIMUM, "rows": _ROWS, "few": _FEW}


def _plan(text: str) -> Plan:
    return lowered(hlo.parse(text), Settings())


def _around(plan: Plan) -> list[bool]:
    """Return for each loop over trips whether it launches kernels over many elements."""
    loops = [step for _, step in in_order(plan.steps) if isinstance(step, Repeat)]
    return [
        any(b.shape.elements > 16 for _, s in in_order((loop,)) if isinstance(s, Launch)
            for b in s.outputs)
        for loop in loops
    ]  # fmt: skip


@pytest.mark.parametrize("name", _TAKEN)
def test_loops_of_maps_are_single_kernels(name: str) -> None:
    assert not any(_around(_plan(_TAKEN[name])))


@pytest.mark.parametrize("name", _LEFT)
def test_loops_stay_where_elements_need_each_other_or_nothing_is_gained(name: str) -> None:
    plan = _plan(_LEFT[name])
    assert any(isinstance(step, Repeat) for _, step in in_order(plan.steps))
    assert all(kernel.kind != "trips" for kernel in plan.kernels)


def test_what_all_elements_share_is_left_where_it_is_used() -> None:
    assert len(_around(_plan(_squares()))) == 1  # the counter is a result
    assert not _around(_plan(_SWAP))


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_operations_of_all_trips_are_explained() -> None:
    texts = (_SQUARES_OF_F32.replace("LAST", str(trips)) for trips in (10, 20))
    counts = [
        sum((row.operations or {}).get("f32", 0) for row in backend_c.explain(hlo.parse(text)).rows)
        for text in texts
    ]
    assert counts == [2 * 700 * 10, 2 * 700 * 20]


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("name", _TAKEN)
def test_results_are_those_of_the_interpreter(name: str) -> None:
    for trips in (0, 6):
        given = from_seed(hlo.parse(_TAKEN[name]), 3)[1:]
        assert_same_bits(_TAKEN[name], np.int32(trips), *given)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_threads_share_blocks_and_give_the_same_bits() -> None:
    module = hlo.parse(_SWAP.replace("[700]", "[70001]"))
    given = (np.int32(5), *from_seed(module, 3)[1:])
    executable = backend_c.compile(module, "fast")
    results = [executable.in_threads(n)(*given) for n in (1, 2, 3)]
    assert any("parallel" in text for text in executable.source.values())
    assert len({np.asarray(result).tobytes() for result in results}) == 1


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_drawn_loops_keep_every_bit() -> None:
    def case(choices: Choices) -> Case:
        module = single_op(choices, "while")
        return Case(module, arguments(choices, module))

    cases = examples(case, 60, 5)
    settings = Settings(least_interchanged=2)
    plans = [planned(case.module, settings) for case in cases]
    assert (
        sum(any(k.kind == "trips" for k in plan.kernels) for plan in plans) > 20
    )  # loops of at most one trip are none
    executables = compiled([c.module for c in cases], quick(os.environ), settings)
    for one, executable in zip(cases, executables, strict=True):
        assert not isinstance(executable, hlo.Error)
        expected = interp.evaluate(one.module, *one.arrays)
        assert not differences(expected, executable(*one.arrays)), hlo.format(one.module)
