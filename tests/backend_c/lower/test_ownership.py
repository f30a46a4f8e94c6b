"""Check which operands an instruction may overwrite: those dead after it that it reads once."""

from __future__ import annotations

import pytest

import hlo
from backend_c.lower.ownership import Ownership
from backend_c.lower.plan import Buffer, Plan
from backend_c.lower.views import window
from hlo.types import F32, ArrayShape

_MODULE = hlo.parse("""HloModule m
ENTRY e { x = f32[8] parameter(0)
  u = f32[4] parameter(1)
  i = s32[] parameter(2)
  ROOT r = f32[8] dynamic-update-slice(x, u, i) }
""")


@pytest.mark.parametrize("is_view", [False, True])
def test_an_array_that_another_operand_lies_in_is_kept(is_view: bool) -> None:
    plan = Plan()
    array = plan.buffer(ArrayShape(F32, (8,)))
    view = window(array, (2,)) if is_view else None
    update = plan.buffer(ArrayShape(F32, (4,)), None, view)
    index = plan.buffer(ArrayShape(F32, ()))
    operands: list[Buffer] = [array, update, index]
    owned = frozenset((array,))
    entry = _MODULE.entry
    ownership = Ownership(plan, entry, operands, entry.instructions, owned)
    assert (array in ownership.reusable(entry.root_instruction, operands)) is not is_view
