"""Each rewrite keeps every bit, and shows a defect that the program as it was does not show."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import hlo
import interp
from fuzz.campaign.plan import Plan, cases
from fuzz.reducer.search import Case
from fuzz.rewrites import REWRITES, fitting, rewritten
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.types import ArrayShape
from hlo.values import Value
from tests.fuzz.planted import planted

_TRIALS = 12
_PROGRAM = """HloModule m
sum {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b)
}
twice {
  x = s32[2,3] parameter(0)
  ROOT r = s32[2,3] add(x, x)
}
few {
  p = (s32[]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  most = s32[] constant(3)
  ROOT r = pred[] compare(n, most), direction=LT
}
more {
  p = (s32[]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  m = s32[] add(n, one)
  ROOT r = (s32[]) tuple(m)
}
ENTRY e {
  x = s32[2,3] parameter(0)
  y = u8[3,4,2] parameter(1)
  d = s32[4] dot(x, y), lhs_contracting_dims={0,1}, rhs_contracting_dims={2,0}
  zero = s32[] constant(5)
  s = s32[2] reduce(x, zero), dimensions={1}, to_apply=sum
  c = s32[2,3] call(x), to_apply=twice
  a = s32[2,3] add(x, c)
  b = s32[2,3] add(a, x)
  start = (s32[]) tuple(zero)
  last = (s32[]) while(start), condition=few, body=more
  ROOT all = (s32[4], s32[2], s32[2,3], (s32[])) tuple(d, s, b, last)
}
"""
_ARRAYS = (
    np.arange(-2, 4, dtype=np.int32).reshape(2, 3) * 100_000_007,
    np.arange(100, 124, dtype=np.uint8).reshape(3, 4, 2),
)


def _seen(is_seen: Callable[[Module], bool], module: Module, arrays: tuple[Value, ...]) -> Value:
    """A compiler that is wrong wherever it sees something."""
    value = interp.evaluate(module, *arrays)
    return (value, None) if is_seen(module) else value


def _has_layout(module: Module) -> bool:
    shapes = (i.shape for i in module.entry.instructions)
    return any(isinstance(s, ArrayShape) and s.layout is not None for s in shapes)


def _has_equals(module: Module) -> bool:
    told = [str(i[1:]) for i in module.entry.instructions]
    return len(set(told)) < len(told)


def _has_dead_code(module: Module) -> bool:
    entry = module.entry
    used = {entry.root, *(o for i in entry.instructions for o in i.operands)}
    return any(i.name not in used for i in entry.instructions)


def _has_branches(module: Module) -> bool:
    return any(i.opcode == "conditional" for i in module.entry.instructions)


# rewrite -> a compiler with a defect that it shows
_DEFECTS: dict[str, str | Callable[[Module], bool]] = {
    "reverse twice": "reverse",
    "transpose and back": "transpose",
    "reshape and back": "reshape",
    "copy": "copy",
    "concatenate slices": "concatenate",
    "select either": "select",
    "branches": "conditional",
    "call": "call",
    "tuple": "get_tuple_element",
    "loop": "get_tuple_element",
    "pad and slice": "pad",
    "negate twice": "negate",
    "layout": "bitcast",
    "lie otherwise": _has_layout,
    "dot as multiply and reduce": "dot",
    "sum as dot": "dot",
    "regroup": "add",
    "inline": "call",
    "outline": "call",
    "peel": _has_branches,
    "duplicate": _has_equals,
    "dead code": _has_dead_code,
}


@pytest.mark.parametrize("name", REWRITES)
def test_a_defect_is_shown(name: str) -> None:
    module, defect = hlo.parse(_PROGRAM), _DEFECTS[name]
    wrong = planted(defect, lambda x: x + x + 1) if isinstance(defect, str) else None
    run = wrong or partial(_seen, defect)
    before, right = run(module, _ARRAYS), interp.evaluate(module, *_ARRAYS)
    shown = 0
    for seed in range(_TRIALS):
        other = rewritten(module, name, random.Random(seed))
        assert other is not None
        hlo.verify(other)
        assert not differences(right, interp.evaluate(other, *_ARRAYS))
        shown += bool(differences(before, run(other, _ARRAYS)))
    assert shown


@pytest.fixture(scope="module")
def drawn() -> list[Case]:
    return [case for number in range(3) for case in cases(Plan(11, ("rewrites",), 10), number)]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", REWRITES)
def test_every_bit_is_kept(name: str, drawn: list[Case]) -> None:
    for number, case in enumerate(drawn):
        module = rewritten(case.module, name, random.Random(number))
        if module is not None:
            hlo.verify(module)
            assert module != case.module
            assert hlo.format(hlo.parse(hlo.format(module))) == hlo.format(module)
            one, other = (interp.evaluate(m, *case.arrays) for m in (case.module, module))
            assert not differences(one, other), f"{hlo.format(case.module)}\n{hlo.format(module)}"


def test_rewrites_that_seldom_fit_are_chosen_often() -> None:
    module, rng = hlo.parse(_PROGRAM), random.Random(0)
    assert {fitting(module, rng) for _ in range(300)} == set(REWRITES)


_ORDERED = """HloModule m, replica_count=2, is_scheduled=true
twice {
  x = s32[2] parameter(0)
  n = s32[2] negate(x)
  ROOT r = s32[2] add(x, n), control-predecessors={n}
}
ENTRY e {
  x = s32[2] parameter(0)
  y = s32[2] multiply(x, x)
  a = s32[2] add(x, x), control-predecessors={y}
  c = s32[2] call(a), to_apply=twice
  ROOT r = s32[2] subtract(c, y)
}
"""


@pytest.mark.parametrize("name", ["outline", "inline", "duplicate"])
def test_rewritten_programs_are_valid_and_of_as_many_ranks(name: str) -> None:
    for seed in range(8):
        module = rewritten(hlo.parse(_ORDERED), name, random.Random(seed))
        assert module is not None
        hlo.verify(hlo.parse(hlo.format(module)))
        assert dict(module.attributes) == {"replica_count": "2"}
