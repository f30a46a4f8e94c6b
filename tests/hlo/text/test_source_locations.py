"""Errors name the instruction, and the line of the user's source that it was made from."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from hlo.errors import Unsupported
from hlo.passes.inline import inline

TEXT = """HloModule m

FileNames
1 "model.py"
2 "lib\x1b[2J.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=2}
2 {file_name_id=2 function_name_id=1 line=3 end_line=3 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

inner {
  p = f32[2] parameter(0)
  ROOT r = f32[2] custom-call(p), custom_call_target="magic"META
}

ENTRY e {
  x = f32[2] parameter(0)
  ROOT c = f32[2] call(x), to_apply=inner, metadata={op_name="jit(f)" stack_frame_id=1}
}
"""


@pytest.mark.parametrize(
    ("metadata", "interpreted", "compiled"),
    [
        ("", "(called from jit(f) at model.py:7)", "(from jit(f) at model.py:7)"),
        (
            ', metadata={op_name="g"}',
            "(from g) (called from jit(f) at model.py:7)",
            "(from jit(f) at model.py:7)",
        ),
        (
            ', metadata={op_name="g" source_file="g.py" source_line=2}',
            "(from g at g.py:2)",
            "(from g at g.py:2)",
        ),
        # What a terminal would obey is not printed.
        (', metadata={stack_frame_id=2}', "(from lib?[2J.py:3)", "(from lib?[2J.py:3)"),
    ],
)  # fmt: skip
def test_an_error_names_the_line_of_source(metadata: str, interpreted: str, compiled: str) -> None:
    module = hlo.parse(TEXT.replace("META", metadata))
    with pytest.raises(Unsupported) as raised:
        interp.evaluate(module, np.ones(2, np.float32))
    assert str(raised.value).startswith("20: %r = custom-call: no function is registered")
    assert str(raised.value).endswith(interpreted)
    if has_c_compiler():
        with pytest.raises(Unsupported) as raised:
            backend_c.compile(module)
        assert str(raised.value).startswith("20: %inner.r = custom-call: no C for")
        assert str(raised.value).endswith(compiled)


def test_what_is_inlined_gets_the_source_of_its_call() -> None:
    (_, root) = inline(hlo.parse(TEXT.replace("META", ""))).entry.instructions
    assert root.annotations["metadata"] == '{op_name="jit(f)" stack_frame_id=1}'
