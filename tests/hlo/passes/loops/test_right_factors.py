"""Invariant right factors are laid out before a loop: which ones, and that no bit changes."""

from __future__ import annotations

import pytest

import backend_c
import hlo
import interp
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.passes.dead_code import dead_code
from hlo.passes.loops.loop_invariants import loop_invariants
from hlo.passes.loops.right_factors import right_factors
from hlo.passes.pipelines import PIPELINES
from hlo_oracle.arguments import from_seed

LOOP = """HloModule loop
body {{
  s = (s32[], {state}, {w}) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  x = {state} get-tuple-element(s), index=1
  w = {w} get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(k, one)
  y = {state} dot(x, w), lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{right}}}{more}
  z = {state} tanh(y)
  v = {w} negate(w)
  ROOT t = (s32[], {state}, {w}) tuple(next, z, {handed})
}}
condition {{
  s = (s32[], {state}, {w}) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  n = s32[] constant({trips})
  ROOT l = pred[] compare(k, n), direction=LT
}}
ENTRY main {{
  x = {state} parameter(0)
  w = {w} parameter(1)
  zero = s32[] constant(0)
  start = (s32[], {state}, {w}) tuple(zero, x, w)
  ROOT all = (s32[], {state}, {w}) while(start), condition=condition, body=body
}}
"""
SQUARE = {
    "state": "f32[8,256]", "w": "f32[256,256]", "left": 1, "right": 0, "more": "", "handed": "w",
    "trips": 8,
}  # fmt: skip
PADDED = {
    "rows at a pitch of 1024 bytes": {},
    "two dimensions of rows": {"state": "f32[2,4,256]", "left": 2},
    "doubles": {"state": "f64[8,128]", "w": "f64[128,128]"},
    "precision": {"more": ", operand_precision={highest,highest}"},
}
LEFT = {
    "another pitch": {"state": "f32[8,250]", "w": "f32[250,250]"},
    "few trips": {"trips": 7},
    "few rows": {"state": "f32[4,256]"},
    "many rows": {"state": "f32[31,256]"},
    "weights of the trip": {"handed": "v"},
    "a narrow type": {"state": "bf16[8,512]", "w": "bf16[512,512]"},
    "integers": {"state": "s32[8,256]", "w": "s32[256,256]"},
    "batches": {
        "state": "f32[2,8,256]", "w": "f32[2,256,256]", "left": 2, "right": 1,
        "more": ", lhs_batch_dims={0}, rhs_batch_dims={0}",
    },
}  # fmt: skip
SHORT = {"state": "f32[8,32]", "w": "f32[32,32]"}


def loop(**changed: object) -> Module:
    text = LOOP.format(**{**SQUARE, **changed})
    if "s32[8" in text:
        text = text.replace("tanh(y)", "negate(y)")
    module = hlo.parse(text)
    hlo.verify(module)
    return module


def opcodes(module: Module) -> list[str]:
    """List the opcodes of the entry, and of the body of its loop, that lay a factor out."""
    moved = dead_code(loop_invariants(right_factors(module)))
    hlo.verify(moved)
    bodies = [c for c in moved.computations if any(i.opcode == "dot" for i in c.instructions)]
    (body,) = bodies
    found = [i.opcode for c in (moved.entry, body) for i in c.instructions]
    return [name for name in found if name in ("pad", "transpose", "slice", "dot")]


@pytest.mark.parametrize("name", PADDED)
def test_rows_are_padded_before_the_loop(name: str) -> None:
    assert opcodes(loop(**PADDED[name])) == ["pad", "dot", "slice"]


def test_columns_become_rows_before_the_loop() -> None:
    assert opcodes(loop(right=1)) == ["transpose", "pad", "dot", "slice"]
    assert opcodes(loop(right=1, **LEFT["another pitch"])) == ["transpose", "dot"]


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left(name: str) -> None:
    module = loop(**LEFT[name])
    assert right_factors(module) == module


def test_few_steps_stay_in_the_cache() -> None:
    module = loop(**SHORT)
    assert right_factors(module) == module


@pytest.mark.parametrize("right", [0, 1])
def test_bits_stay(right: int) -> None:
    module = loop(right=right)
    arguments = from_seed(module, 0)
    moved = loop_invariants(right_factors(module))
    exact = interp.evaluate(module, *arguments)
    assert not differences(exact, interp.evaluate(moved, *arguments))


@pytest.mark.parametrize("right", [0, 1])
def test_fast_sums_stay(right: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Longer lines that are not laid out are read in place, with lanes along them.
    module = loop(right=right, state="f32[8,128]", w="f32[128,128]")
    arguments = from_seed(module, 0)
    moved = backend_c.compile(module)(*arguments)
    names = PIPELINES["backend_c_fast"]
    assert "right_factors" in names
    others = tuple(name for name in names if name != "right_factors")
    monkeypatch.setitem(PIPELINES, "backend_c_fast", others)
    # The cache knows programs by their module: another name is another one.
    other = hlo.parse(hlo.format(module).replace("HloModule loop", "HloModule other"))
    assert not differences(backend_c.compile(other)(*arguments), moved)


def test_exact_products_and_targets_with_little_memory_have_no_copies() -> None:
    named = {name for name, passes in PIPELINES.items() if "right_factors" in passes}
    assert named == {"backend_c_fast", "backend_c_fast_by_threads", "backend_c_fast_library"}
