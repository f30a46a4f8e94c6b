"""Collectives, async forms and ids on the one rank that generated C is."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from against_interp import assert_same_bits

import backend_c
import hlo
from hlo.types import ELEMENT_TYPES

ADD = """
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
negated {
  x = f32[4] parameter(0)
  ROOT y = f32[4] negate(x)
}
"""
# What each gives of p = f32[4]; q = f32[6], i and j = s32[], v = s32[2].
LEGAL = """
f32[4] all-reduce(p), to_apply=add
(f32[4], f32[4]) all-reduce(p, n), to_apply=add, replica_groups={{0}}
f32[4] all-gather(p), dimensions={0}, replica_groups=[1,1]<=[1]
(f32[4], f32[4]) all-gather(p, n), dimensions={0}
f32[4] reduce-scatter(p), dimensions={0}, to_apply=add
f32[4] all-to-all(p), dimensions={0}
(f32[4]) all-to-all(p), replica_groups={{0}}
f32[4] collective-broadcast(p), replica_groups={{0}}
f32[4] collective-broadcast(p, z), replica_groups={{0}}, has_dynamic_root=true
f32[4] collective-permute(p), source_target_pairs={{0,0}}
f32[4] collective-permute(p), source_target_pairs={}
(f32[4], f32[4]) collective-permute(p, n), source_target_pairs={{0,0}}, channel_id=1
(f32[4], f32[4]) collective-permute(p, n), source_target_pairs={}
f32[6] collective-permute(p, q, a, b), source_target_pairs={{0,0}}, slice_sizes={{2}}
f32[6] collective-permute(p, q, a, b), source_target_pairs={}, slice_sizes={{2}}
f32[6] collective-permute(p, q, ab, ba), source_target_pairs={{0,0}}, slice_sizes={{2},{1}}
(f32[6], f32[6]) collective-permute(pn, qm, ab, ba), source_target_pairs={{0,0}}, \
slice_sizes={{2},{1}}
f32[6] ragged-all-to-all(p, q, v, w, w, w), replica_groups={{0}}
f32[6] ragged-all-to-all(p, q, w, v, w, v)
u32[] replica-id()
u32[] partition-id()
f32[4] opt-barrier(p)
f32[4] domain(p), domain={kind="sharding", entry={replicated}, exit={replicated}}
f32[4] add-dependency(p, t)
f32[4] call(p), to_apply=negated, is_composite=true, frontend_attributes={composite.name="x.y"}
"""
# The same as what is started and done.
STARTED = """
f32[4] | all-reduce | f32[4] | (p), to_apply=add
(f32[4], f32[4]) | all-reduce | (f32[4], f32[4]) | (p, n), to_apply=add
f32[4] | all-gather | (f32[4], f32[4]) | (p), dimensions={0}
f32[4] | collective-permute | (f32[4], f32[4], u32[], u32[]) | (p), source_target_pairs={{0,0}}
f32[4] | collective-permute | (f32[4], f32[4], u32[], u32[]) | (p), source_target_pairs={}
f32[6] | collective-permute | (f32[4], f32[6]) | (p, q, a, b), source_target_pairs={{0,0}}, \
slice_sizes={{2}}
f32[4] | copy | (f32[4], f32[4], u32[]) | (p)
f32[4] | async | ((f32[4]), f32[4], s32[], u32[]) | (p), calls=negated
f32[4] | reduce-scatter | ((f32[4]), f32[4]) | (p), dimensions={0}, to_apply=add
(f32[4]) | all-to-all | ((f32[4]), (f32[4])) | (p), replica_groups={{0}}
"""


def module(*lines: str) -> str:
    body = """  p = f32[4] parameter(0)
  q = f32[6] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  v = s32[2] parameter(4)
  n = f32[4] negate(p)
  m = f32[6] negate(q)
  pn = (f32[4], f32[4]) tuple(p, n)
  qm = (f32[6], f32[6]) tuple(q, m)
  z = s32[] constant(0)
  w = s32[2] constant({0, 2})
  t = token[] after-all()
  a = (s32[]) tuple(i)
  b = (s32[]) tuple(j)
  ab = ((s32[]), (s32[])) tuple(a, b)
  ba = ((s32[]), (s32[])) tuple(b, a)
"""
    return f"HloModule m\n{ADD}\nENTRY e {{\n{body}  " + "\n  ".join(lines) + "\n}\n"


def arguments() -> list[Any]:
    p, q = np.arange(1, 5, dtype=np.float32), np.arange(6, dtype=np.float32) * 10
    return [p, q, np.int32(9), np.int32(1), np.array([1, 2], np.int32)]


def together(rows: list[tuple[str, list[str]]]) -> str:
    """One program of many: compiling each would take a second. A row is the shape of a result and
    its instructions, in which ``@`` is the number of the row."""
    lines = [line.replace("@", str(number)) for number, (_, row) in enumerate(rows) for line in row]
    shapes, names = [shape for shape, _ in rows], [f"r{number}" for number in range(len(rows))]
    return module(*lines, f"ROOT all = ({', '.join(shapes)}) tuple({', '.join(names)})")


def shape_of(instruction: str) -> str:
    return re.match(r"\(.*?\)|\S+", instruction)[0]  # type: ignore[index]


def test_one_rank() -> None:
    instructions = LEGAL.strip().splitlines()
    rows = [(shape_of(line), [f"r@ = {line}"]) for line in instructions]
    assert_same_bits(together(rows), *arguments())


def test_started_and_done() -> None:
    rows = []
    for row in STARTED.strip().splitlines():
        result, opcode, started, rest = (part.strip() for part in row.split(" | "))
        lines = [f"begun@ = {started} {opcode}-start{rest}", f"r@ = {result} {opcode}-done(begun@)"]
        rows.append((result, lines))
    assert_same_bits(together(rows), *arguments())


def test_updated() -> None:
    shape = "((f32[4]), f32[4], s32[])"
    lines = (
        f"s = {shape} async-start(p), calls=negated",
        f"u = {shape} async-update(s)",
        f"again = {shape} async-update(u)",
        "ROOT r = f32[4] async-done(again)",
    )
    assert_same_bits(module(*lines), *arguments())


@pytest.mark.parametrize(
    ("instruction", "complaint"),
    [
        ("f32[8] all-gather(p), dimensions={0}", "more than one rank: generated C is one rank"),
        ("f32[4] all-reduce(p), to_apply=add, replica_groups={{0,1}}", r"replica_groups=\{\{0,1\}"),
        ("f32[4] collective-permute(p), source_target_pairs={{0,1}}", r"pairs=\{\{0,1\}\}: gener"),
        ("(f32[4], token[]) infeed(t)", "takes no infeed: generated C has no host"),
        ("token[] outfeed(p, t)", "takes no outfeed"),
    ],
)
def test_more_ranks_and_hosts_are_refused(instruction: str, complaint: str) -> None:
    with pytest.raises(hlo.Unsupported, match=complaint):
        backend_c.compile(hlo.parse(module(f"ROOT r = {instruction}")))


def test_channels_are_refused() -> None:
    lines = (
        "s = (f32[4], u32[], token[]) send(p, t), channel_id=1",
        "ROOT r = token[] send-done(s), channel_id=1",
    )
    with pytest.raises(hlo.Unsupported, match="takes no send: generated C has no host"):
        backend_c.compile(hlo.parse(module(*lines)))


NO_SUM = ("token", "opaque")
TYPES = [name for name, type_ in ELEMENT_TYPES.items() if type_.kind not in NO_SUM]


DIMS = [(), (0, 3), (2, 3), (3, 1, 2, 1, 2)]


def test_every_type() -> None:
    """On one replica, a collective-permute gives zeros without pairs and its operand with the pair
    {0,0}: arrays of every type, also a type without zero, of ranks 0, 2 and 5."""
    lines, values, shapes = [], [], []
    for number, name in enumerate(TYPES):
        dims = DIMS[number % len(DIMS)]
        codes = np.arange(math.prod(dims), dtype=np.float32).reshape(dims)
        with np.errstate(invalid="ignore"):  # 2 is no s2; ml_dtypes 0.7 tells of it
            values.append((codes % 3).astype(ELEMENT_TYPES[name].numpy))
        shapes.append(f"{name}[{','.join(map(str, dims))}]")
        permute = f"{shapes[-1]} collective-permute(p{number}), source_target_pairs="
        lines += [
            f"p{number} = {shapes[-1]} parameter({number})",
            f"a{number} = {permute}{{}}",
            f"b{number} = {permute}{{{{0,0}}}}",
        ]
    names = [f"{letter}{number}" for letter in "ab" for number in range(len(TYPES))]
    lines.append(f"ROOT r = ({', '.join(shapes * 2)}) tuple({', '.join(names)})")
    body = "\n  ".join(lines)
    assert_same_bits(f"HloModule m\n\nENTRY e {{\n  {body}\n}}\n", *values)
