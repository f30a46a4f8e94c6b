"""Dots of slices in loops become slices of one dot: where, and that no bit of a result changes."""

from __future__ import annotations

import pytest

import hlo
import interp
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.passes.dead_code import dead_code
from hlo.passes.loops.loop_invariants import loop_invariants
from hlo.passes.loops.products_of_slices import products_of_slices
from hlo_oracle.arguments import from_seed

LOOP = """HloModule loop
body {{
  s = (s32[], {result}, {x}, {w}) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  z = {result} get-tuple-element(s), index=1
  x = {x} get-tuple-element(s), index=2
  w = {w} get-tuple-element(s), index=3
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(k, one)
  {start}
  part = {part} dynamic-slice(x, {starts}), dynamic_slice_sizes={{{sizes}}}
  row = {row} reshape(part)
  y = {result} dot({operands}), {numbers}
  r = {result} {combined}(z, y)
  ROOT t = (s32[], {result}, {x}, {w}) tuple(next, r, x, {handed})
}}
condition {{
  s = (s32[], {result}, {x}, {w}) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  n = s32[] constant({trips})
  ROOT l = pred[] compare(k, n), direction=LT
}}
ENTRY main {{
  z = {result} parameter(0)
  x = {x} parameter(1)
  w = {w} parameter(2)
  first = s32[] constant(0)
  start = (s32[], {result}, {x}, {w}) tuple(first, z, x, w)
  ROOT all = (s32[], {result}, {x}, {w}) while(start), condition=condition, body=body
}}
"""
# Rows of an input by a matrix of weights, as recurrent networks have them.
ROWS = {
    "x": "f32[5,3,16]", "w": "f32[16,4]", "part": "f32[1,3,16]", "row": "f32[3,16]",
    "result": "f32[3,4]", "sizes": "1,3,16", "starts": "at, zero, zero",
    "start": "at = s32[] add(k, zero)", "operands": "row, w",
    "numbers": "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "combined": "add", "handed": "w", "trips": 5,
}  # fmt: skip
MIDDLE = {
    "x": "f32[3,5,16]", "part": "f32[3,1,16]", "sizes": "3,1,16", "starts": "zero, at, zero",
}  # fmt: skip
RIGHT = {
    "operands": "w, row", "numbers": "lhs_contracting_dims={0}, rhs_contracting_dims={1}",
    "result": "f32[4,3]",
}  # fmt: skip
BATCH = {
    "x": "f32[2,5,3,16]", "w": "f32[2,16,4]", "part": "f32[2,1,3,16]", "row": "f32[2,3,16]",
    "result": "f32[2,3,4]", "sizes": "2,1,3,16", "starts": "zero, at, zero, zero",
    "numbers": "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0},"
    " rhs_contracting_dims={1}",
}  # fmt: skip
BACKWARDS = {"start": "four = s32[] constant(4)\n  at = s32[] subtract(four, k)"}
BEYOND = {"start": "three = s32[] constant(3)\n  at = s32[] subtract(k, three)"}
TWICE = {"start": "at = s32[] multiply(k, k)"}
BYTES = {
    "x": "s8[5,3,16]", "w": "s8[16,4]", "part": "s8[1,3,16]", "row": "s8[3,16]",
    "result": "s32[3,4]",
}  # fmt: skip
LAST = {
    "x": "f32[16,5]", "w": "f32[16,4]", "part": "f32[16,1]", "row": "f32[16]", "result": "f32[4]",
    "sizes": "16,1", "starts": "zero, at",
    "numbers": "lhs_contracting_dims={0}, rhs_contracting_dims={0}",
}  # fmt: skip
TAKEN = {
    "rows": {}, "middle": MIDDLE, "right": RIGHT, "right of middle": {**MIDDLE, **RIGHT},
    "batch": BATCH, "backwards": BACKWARDS, "clamped": BEYOND, "jumping": TWICE, "bytes": BYTES,
    "columns": LAST, "more trips": {"trips": 7},
}  # fmt: skip
LEFT = {
    "few terms": {
        "x": "f32[5,3,8]", "w": "f32[8,4]", "part": "f32[1,3,8]", "row": "f32[3,8]",
        "sizes": "1,3,8",
    },
    "few trips": {"trips": 4},
    "weights of the trip": {"handed": "v", "combined": "add"},
    "part of the rows": {
        "x": "f32[5,4,16]", "starts": "at, k, zero",
    },
    "another start": {"starts": "at, k, zero"},
    "no one index": {"part": "f32[2,3,16]", "row": "f32[6,16]", "sizes": "2,3,16",
                     "result": "f32[6,4]"},
    "many rows": {
        "x": "f32[5,200,16]", "part": "f32[1,200,16]", "row": "f32[200,16]",
        "sizes": "1,200,16", "result": "f32[200,4]",
    },
}  # fmt: skip


def loop(**changed: object) -> Module:
    given = {**ROWS, **changed}
    text = LOOP.format(**given)
    if given["handed"] == "v":
        negated = f"  v = {given['w']} negate(w)\n  ROOT t ="
        text = text.replace("  ROOT t =", negated)
    module = hlo.parse(text)
    hlo.verify(module)
    return module


def dots(module: Module, computation: str) -> int:
    """Count the dots of the computations of a name."""
    named = (c for c in module.computations if c.name.partition(".")[0] == computation)
    return sum(i.opcode == "dot" for c in named for i in c.instructions)


def evaluated(module: Module) -> object:
    return interp.evaluate(module, *from_seed(module, 0))


@pytest.mark.parametrize("changed", TAKEN.values(), ids=TAKEN)
def test_one_dot_before_the_loop(changed: dict[str, object]) -> None:
    module = loop(**changed)
    exchanged = products_of_slices(module)
    hlo.verify(exchanged)
    whole = dead_code(loop_invariants(exchanged))
    hlo.verify(whole)
    assert dots(whole, "main") == 1 and dots(whole, "body") == 0
    assert not differences(evaluated(module), evaluated(whole))


@pytest.mark.parametrize("changed", LEFT.values(), ids=LEFT)
def test_other_dots_stay(changed: dict[str, object]) -> None:
    module = loop(**changed)
    assert products_of_slices(module) == module


def test_a_body_of_two_loops_has_the_trips_of_the_shorter() -> None:
    """Two loops with one body: the dot of all slices is taken if both take all of them."""
    text = hlo.format(loop())
    second = text.replace(
        "ROOT all =",
        "short = (s32[], f32[3,4], f32[5,3,16], f32[16,4]) while(start), condition=few, body=body\n"
        "  ROOT all =",
    )
    few = text[text.index("condition {") : text.index("ENTRY")].replace("condition", "few", 1)
    for trips, count in (("5", 1), ("4", 0)):
        bounded = few.replace("constant(5)", f"constant({trips})")
        module = hlo.parse(second.replace("ENTRY", bounded + "ENTRY"))
        body = products_of_slices(module).computation("body")
        assert sum("whole" in i.name for i in body.instructions) == count
