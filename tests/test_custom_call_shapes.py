"""Custom calls of known targets with shapes that make no sense to them: refused in both columns."""

from __future__ import annotations

import numpy as np
import pytest

import backend_c
import hlo
import interp
from hlo.errors import Unsupported
from hlo.types import ArrayShape

_CALLS = (
    ("TopK", "(f32[2], s32[2])", "f32[]", ()),
    ("TopK", "(f32[2], s32[1])", "f32[4]", ()),
    ("PadToStatic", "(f32[2], s32[])", "f32[4]", ()),
    ("PadToStatic", "(f32[2,2], s32[], s32[])", "f32[4]", ()),
    ("SliceToDynamic", "f32[<=4]", "f32[4]", ("s32[]", "s32[]")),
    ("SliceToDynamic", "f32[<=4]", "f32[]", ("s32[2]",)),
    ("lapack_spotrf_ffi", "(f32[2,3], s32[])", "f32[2,3]", ()),
    ("lapack_strsm_ffi", "f32[3,2]", "f32[2,2]", ("f32[3,3]",)),
)


@pytest.mark.parametrize("call", _CALLS, ids=lambda call: f"{call[0]} of {call[2]}")
def test_what_does_not_fit_is_unsupported(call: tuple[str, str, str, tuple[str, ...]]) -> None:
    target, result, operand, others = call
    shapes = (operand, *others)
    parameters = "".join(f" x{n} = {s} parameter({n})\n" for n, s in enumerate(shapes))
    operands = ", ".join(f"x{n}" for n in range(len(shapes)))
    text = f'{parameters} ROOT r = {result} custom-call({operands}), custom_call_target="{target}"'
    module = hlo.parse(f"HloModule m\nENTRY e {{\n{text}\n}}\n")
    arrays = []
    for parameter in module.entry.parameters:
        assert isinstance(parameter.shape, ArrayShape)
        arrays.append(np.zeros(parameter.shape.dims, parameter.shape.element_type.dtype))
    with pytest.raises(Unsupported, match="does not give"):
        interp.evaluate(module, *arrays)
    with pytest.raises(Unsupported, match="does not give"):
        backend_c.compile(module)
