"""Removing layouts: bitcasts mean the same afterwards."""

import numpy as np
import pytest

import hlo
import interp
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.passes.layouts import layouts
from hlo.types import leaves


def one(operand: str, result: str) -> Module:
    return hlo.parse(f"""HloModule one
ENTRY main {{ p = {operand} parameter(0)
  c = {operand} copy(p)
  ROOT b = {result} bitcast(c) }}
""")


@pytest.mark.parametrize(
    ("operand", "result", "opcodes"),
    [
        ("f32[2,3]{1,0}", "f32[2,3]{1,0}", []),
        ("f32[2,3]{1,0}", "f32[6]{0}", ["reshape"]),
        ("f32[2,3]{0,1}", "f32[6]{0}", ["transpose", "reshape"]),
        ("f32[6]{0}", "f32[2,3]{0,1}", ["reshape", "transpose"]),
        ("f32[2,3]{0,1}", "f32[3,2]{1,0}", ["transpose"]),
        ("f32[2,3,4]{0,2,1}", "f32[4,6]{0,1}", ["transpose", "reshape", "transpose"]),
        ("f32[]", "s32[]", ["bitcast-convert"]),
        ("f32[4]{0}", "s32[2,2]{1,0}", ["bitcast-convert", "reshape"]),
        ("f32[2,3]{0,1}", "s8[24]{0}", ["transpose", "bitcast-convert", "reshape"]),
        ("s8[2,4,3]{0,2,1}", "s32[6]{0}", ["transpose", "reshape", "bitcast-convert"]),
    ],
)
def test_a_bitcast_becomes_row_major(operand: str, result: str, opcodes: list[str]) -> None:
    module = one(operand, result)
    changed = layouts(module)
    hlo.verify(changed)
    assert [i.opcode for i in changed.entry.instructions] == ["parameter", *opcodes]
    shape = leaves(module.entry.parameters[0].shape)[0]
    array = np.arange(shape.elements).astype(shape.element_type.numpy).reshape(shape.dims)
    assert not differences(interp.evaluate(module, array), interp.evaluate(changed, array))


def test_no_shape_has_a_layout() -> None:
    module = layouts(
        hlo.parse("""HloModule m, entry_computation_layout={(f32[2,2]{0,1})->(f32[2,2]{0,1})}
ENTRY main { p = f32[2,2]{0,1} parameter(0)
  c = f32[2,2]{0,1} constant({{1,2},{3,4}})
  s = f32[2,2]{0,1} add(p, c)
  ROOT t = (f32[2,2]{0,1}) tuple(s) }
""")
    )
    assert "{0,1}" not in hlo.format(module)
