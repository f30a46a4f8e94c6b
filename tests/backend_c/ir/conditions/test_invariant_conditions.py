"""Check that a condition that is the same in all lanes is computed before the loop over lanes, as a
mask as wide as the elements that it selects."""

from __future__ import annotations

import pytest

import hlo
from backend_c.ir import index as ix
from backend_c.ir.conditions.invariant_conditions import with_hoisted_conditions
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Constant,
    Expr,
    Let,
    Load,
    Loop,
    Store,
    Variable,
    every,
    expressions,
    subexpressions,
)
from backend_c.pipeline import lowered
from hlo.types import F32, F64, PRED, S8, S32, S64, ElementType

_I, _ROW = Variable(INDEX, "i", 0, 63), Variable(INDEX, "row", 0, 9)
_STENCIL = """HloModule m
ENTRY e { x = f32[40,96] parameter(0)
  z = f32[] constant(0)
  up = f32[40,96] pad(x, z), padding=1_-1x0_0
  down = f32[40,96] pad(x, z), padding=-1_1x0_0
  ROOT r = f32[40,96] subtract(up, down) }
"""


def _loop(condition: Expr, element_type: ElementType = F32, kind: str = "lanes") -> Loop:
    """Return a loop that chooses between an element and zero."""
    source = Array("a0", element_type, 64)
    choice = (condition, Load(source, _I), Constant(element_type, 0))
    value = Apply("select", choice, element_type)
    target = Array("r0", element_type, 64, mutable=True)
    return Loop(_I, ix.constant(64), kind, (Store(target, _I, value),))


def _inside(value: Expr) -> Expr:
    return Apply("within", (value, ix.constant(1), ix.constant(5)), PRED)


@pytest.mark.parametrize(("chosen", "mask"), [(F32, S32), (F64, S64), (S8, S8)], ids=str)
def test_a_condition_on_the_row(chosen: ElementType, mask: ElementType) -> None:
    let, loop = with_hoisted_conditions([_loop(_inside(_ROW), chosen)])
    assert isinstance(let, Let) and let.variable.type is mask
    assert isinstance(loop, Loop)
    (store,) = loop.body
    assert isinstance(store, Store) and isinstance(store.value, Apply)
    assert store.value.operands[0] == Apply("compare-NE", (let.variable, Constant(mask, 0)), PRED)


@pytest.mark.parametrize(
    "loop",
    [
        _loop(_inside(_I)),
        _loop(Load(Array("a1", PRED, 1), ix.constant(0))),
        _loop(Constant(PRED, True)),
        _loop(_inside(_ROW), kind="serial"),
        _loop(Variable(PRED, "p", mutable=True)),
    ],
    ids=["of a lane", "a load", "a constant", "a serial loop", "of a mutable variable"],
)
def test_what_stays(loop: Loop) -> None:
    assert with_hoisted_conditions([loop]) == (loop,)


def test_rows_of_a_stencil() -> None:
    plan = lowered(hlo.parse(_STENCIL))
    loops = [s for k in plan.kernels for s in every(k.body) if isinstance(s, Loop)]
    parts = [
        part
        for loop in loops
        if loop.kind == "lanes"
        for statement in loop.body
        for value in expressions(statement)
        for part in subexpressions(value)
    ]
    assert parts
    assert not [part for part in parts if isinstance(part, Apply) and part.operation == "within"]
