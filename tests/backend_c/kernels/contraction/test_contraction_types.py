"""dot of every mix of element types: by the definition in Python's fractions, and in C.

To a result type of another kind XLA converts the sum of the wider operand type (jaxlib 0.10.2:
f32 1.5*1.5 + 1.5*1.5 as s32 is 4, s32 2*1 + 2*-1 as pred is false, c64 (1+i)**2 + 1 as f32 is 1).
"""

from typing import Any

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import hlo
import interp
from hlo.types import ELEMENT_TYPES

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


def program(lhs: str, rhs: str, result: str, depth: int) -> str:
    return f"""HloModule m
ENTRY e {{
  x = {lhs}[1,{depth}] parameter(0)
  y = {rhs}[{depth},1] parameter(1)
  ROOT r = {result}[1,1] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""


_KNOWN: tuple[tuple[str, str, str, list[Any], list[Any], Any], ...] = (
    ("f32", "f32", "s32", [1.5, 1.5], [1.5, 1.5], 4),
    ("f32", "f32", "s8", [100, 3], [1.5, 1.5], 127),
    ("f32", "f32", "pred", [0.5, 0.5], [0.5, -0.5], False),
    ("s32", "s32", "pred", [2, 2], [1, -1], False),
    ("s32", "s32", "s8", [100, 2], [3, 1], 46),
    ("c64", "c64", "f32", [1 + 1j, 1], [1 + 1j, 1], 1),
    ("c64", "c64", "s32", [1 + 1j, 1.5], [1 + 1j, 1.5], 2),
    ("c64", "f32", "c64", [1 + 1j, 1], [2, 2], 4 + 2j),
    ("pred", "pred", "s32", [True, True], [True, True], 2),
    ("u8", "s8", "s32", [255, 1], [-128, 1], -32639),
    ("s64", "s64", "f32", [2**62, 1], [2, -(2**63)], 0),
    ("s64", "u64", "f64", [2**62 + 1, -1], [4, 2**64 - 1], 5),
    ("u64", "u64", "bf16", [2**64 - 1, 0], [2**64 - 1, 1], 2.0**128),
    ("f64", "f64", "f32", [1 + 2.0**-24, 2.0**-60], [1, 1], 1 + 2.0**-23),
    ("f64", "f64", "f16", [1e300, -1e300], [1e300, 1e300], 0),
    ("s32", "s32", "f16", [46341, 46341], [46341, -46340], 46336),
)


@pytest.mark.parametrize("case", _KNOWN, ids=lambda case: "-".join(case[:3]))
def test_known(case: tuple[str, str, str, list[Any], list[Any], Any]) -> None:
    lhs, rhs, result, left, right, expected = case
    x = np.array([left], ELEMENT_TYPES[lhs].numpy)
    y = np.array([right], ELEMENT_TYPES[rhs].numpy).T
    text = program(lhs, rhs, result, len(left))
    if result == "bf16":
        expected = np.inf  # 2**128 is beyond
    assert interp.evaluate(hlo.parse(text), x, y)[0, 0] == expected
    assert_same_bits(text, x, y)
