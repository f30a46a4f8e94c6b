"""Check that selects are removed where ranges of integers decide them, and keep every bit."""

from __future__ import annotations

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import hlo
import interp
from backend_c.ir.conditions.decided_selects import with_decided_selects
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Constant,
    Let,
    Load,
    Loop,
    Store,
    Variable,
    every,
    expressions,
    subexpressions,
)
from backend_c.ir.settings import Numerics, alone, threaded
from backend_c.pipeline import lowered
from backend_c.render.dialect import EMBEDDED, OPENMP
from backend_c.render.translation_units import render_plan
from hlo.types import F32, PRED, S32

_NORMALISED = """HloModule m
ENTRY main {
  x = f32[40] parameter(0)
  i = s32[33] iota(), iota_dimension=0
  one = s32[] constant(1)
  ones = s32[33] broadcast(one), dimensions={}
  next = s32[33] add(i, ones)
  zero = s32[] constant(0)
  zeros = s32[33] broadcast(zero), dimensions={}
  is_negative = pred[33] compare(next, zeros), direction=LT
  n = s32[] constant(40)
  ns = s32[33] broadcast(n), dimensions={}
  from_end = s32[33] add(next, ns)
  place = s32[33] select(is_negative, from_end, next)
  places = s32[33,1] reshape(place)
  ROOT r = f32[33] gather(x, places), offset_dims={}, collapsed_slice_dims={0}, \
    start_index_map={0}, index_vector_dim=1, slice_sizes={1}
}
"""
_ENDS = """HloModule m
ENTRY main {
  x = f32[9,64] parameter(0)
  first = f32[9,1] slice(x), slice={[0:9], [0:1]}
  last = f32[9,1] slice(x), slice={[0:9], [63:64]}
  p = f32[9,66] concatenate(first, x, last), dimensions={1}
  before = f32[9,64] slice(p), slice={[0:9], [0:64]}
  after = f32[9,64] slice(p), slice={[0:9], [2:66]}
  ROOT r = f32[9,64] add(before, after)
}
"""


@pytest.mark.parametrize(
    ("text", "dims"), [(_NORMALISED, 40), (_ENDS, (9, 64))], ids=["indices", "ends"]
)
def test_nothing_is_chosen(text: str, dims: tuple[int, ...]) -> None:
    module = hlo.parse(text)
    for settings, dialect in (
        (threaded(Numerics.EXACT), OPENMP),
        (alone(Numerics.EXACT), EMBEDDED),
    ):
        source = "".join(render_plan(lowered(module, settings), dialect).sources.values())
        body = source[source.index("kernel_0(") :]
        assert (" ? " in body) == (text is _ENDS and dialect is EMBEDDED)
    if has_c_compiler():
        assert_same_bits(text, np.random.default_rng(0).standard_normal(dims, np.float32))


def test_what_may_be_either_stays() -> None:
    i = Variable(INDEX, "i1", 0, 63)
    k = Variable(S32, "v1")
    array, result = Array("a0", F32, 64), Array("r0", F32, 64, mutable=True)

    def body(limit: int) -> tuple[Let | Store, ...]:
        condition = Apply("compare-LT", (k, Constant(S32, limit)), PRED)
        chosen = Apply("select", (condition, Load(array, i), Constant(F32, 0.0)), F32)
        return Let(k, Apply("convert", (i,), S32)), Store(result, i, chosen)

    def decided(limit: int) -> object:
        (loop,) = with_decided_selects([Loop(i, Constant(INDEX, 64), "serial", body(limit))])
        assert isinstance(loop, Loop)
        return loop.body

    assert decided(63) == body(63)
    assert decided(64) == (Store(result, i, Load(array, i)),)
    assert decided(0) == (Store(result, i, Constant(F32, 0.0)),)


def _modulo(element_type: str, divisor: int, n: int) -> list[str]:
    """Return instructions for ``x % divisor`` rounded down, as JAX writes it."""
    kind = f"{element_type}[{n}]"
    return [
        f"x = {kind} parameter(0)",
        f"c = s64[] constant({divisor})",
        f"narrow = {element_type}[] convert(c)",
        f"d = {kind} broadcast(narrow), dimensions={{}}",
        f"zero = {element_type}[] constant(0)",
        f"zeros = {kind} broadcast(zero), dimensions={{}}",
        f"r = {kind} remainder(x, d)",
        f"a = pred[{n}] compare(r, zeros), direction=LT",
        f"b = pred[{n}] compare(d, zeros), direction=LT",
        f"differ = pred[{n}] compare(a, b), direction=NE",
        f"rest = pred[{n}] compare(r, zeros), direction=NE",
        f"both = pred[{n}] and(differ, rest)",
        f"corrected = {kind} add(r, d)",
        f"ROOT m = {kind} select(both, corrected, r)",
    ]


@pytest.mark.sampled(2)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("element_type", ["s8", "s16", "s32", "s64", "u8", "u64"])
def test_remainders_rounded_down(element_type: str) -> None:
    ends = np.iinfo({"s": "int", "u": "uint"}[element_type[0]] + element_type[1:])
    near = range(-20, 21) if ends.min else range(41)
    numbers = [ends.min, ends.min + 1, *near, ends.max - 1, ends.max]
    x = np.array(numbers, ends.dtype)
    divisors = [1, 2, 3, 8, 100, *((-1, -3, -8) if ends.min else ())]
    for divisor in divisors:
        lines = "\n  ".join(_modulo(element_type, divisor, x.size))
        text = f"HloModule m\nENTRY e {{\n  {lines}\n}}\n"
        found = np.asarray(interp.evaluate(hlo.parse(text), x))
        assert found.tolist() == [number % divisor for number in numbers]
        assert_same_bits(text, x)


def test_a_remainder_by_a_power_of_two_is_one_operation() -> None:
    """A divisor that was converted outside of a parallel loop was no constant inside of it, so that
    the loop divided: 11 times as long."""
    for divisor, operations in ((8, {"and"}), (100, {"remainder", "compare-LT", "add", "select"})):
        lines = "\n  ".join(_modulo("s32", divisor, 4096))
        module = hlo.parse(f"HloModule m\nENTRY e {{\n  {lines}\n}}\n")
        (kernel,) = lowered(module, threaded(Numerics.EXACT)).kernels
        parts = [
            part
            for statement in every(kernel.body)
            for value in expressions(statement)
            for part in subexpressions(value)
        ]
        assert {p.operation for p in parts if isinstance(p, Apply)} == operations
