"""Check which instructions count as the same."""

import hlo
from hlo.passes.common_subexpressions import common_subexpressions

_TWICE = """HloModule m
ENTRY e {{
  x = f32[2,3] parameter(0)
  v = f32[3] parameter(1)
  a = f32[2,3] batch-norm-inference(x, v, v, v, v), epsilon={}, feature_index=1
  b = f32[2,3] batch-norm-inference(x, v, v, v, v), epsilon={}, feature_index=1
  ROOT r = (f32[2,3], f32[2,3]) tuple(a, b)
}}
"""


def _instructions(*epsilons: str) -> int:
    module = common_subexpressions(hlo.parse(_TWICE.format(*epsilons)))
    return len(set(module.entry.root_instruction.operands))


def test_attributes_are_the_same_to_the_sign_of_zero() -> None:
    assert _instructions("0", "0") == 1
    assert _instructions("0", "-0") == 2
    assert _instructions("0", "0.5") == 2
