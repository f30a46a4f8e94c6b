"""Sums that a compiler merges with what reads them keep the bound for all of their terms."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose
from interp.envelope.float_sums.merged_sums import merged

_ADD = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
"""
_PARAMETERS = """
  x = f32[8,8] parameter(0)
  y = f32[8] parameter(1)
  z = f32[] constant(0)
"""
_SUM = "r = f32[8] reduce(x, z), dimensions={0}, to_apply=add"
_DOT = "r = f32[8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
_WRAPPED = f"""wrapped {{{_PARAMETERS}
  ROOT {_SUM}
}}
"""


@pytest.mark.parametrize(
    "body, is_merged",
    [
        (f"ROOT {_SUM}", False),
        (f"ROOT {_DOT}", False),
        (f"{_SUM}\n  ROOT e = f32[8] exponential(r)", False),
        (f"{_SUM}\n  ROOT m = f32[8] multiply(r, y)", False),
        (f"{_DOT}\n  ROOT m = f32[8] multiply(r, y)", True),
        (f"{_SUM}\n  ROOT a = f32[8] add(r, y)", True),
        (f"{_DOT}\n  ROOT a = f32[8] subtract(y, r)", True),
        (f"{_SUM}\n  c = f32[2,4] reshape(r)\n  n = f32[2,4] negate(c)\n  ROOT a = f32[2,4] add(n, n)", True),  # noqa: E501
        (f"{_SUM}\n  ROOT a = f32[] reduce(r, z), dimensions={{0}}, to_apply=add", True),
        (f"{_SUM}\n  ROOT d = f32[8] dot(x, r), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", True),  # noqa: E501
    ],
)  # fmt: skip
def test_sums_that_reach_additions_are_merged(body: str, is_merged: bool) -> None:
    module = hlo.parse(f"{_ADD}ENTRY e {{{_PARAMETERS}  {body}\n}}")
    assert ("r" in merged(module)["e"]) == is_merged


@pytest.mark.parametrize("tail, is_merged", [("", False), ("ROOT a = f32[8] add(f, y)", True)])
def test_the_users_of_a_call_decide_for_its_root(tail: str, is_merged: bool) -> None:
    root = "" if tail else "ROOT "
    body = f"{root}f = f32[8] fusion(x, y), kind=kLoop, calls=wrapped\n  {tail}"
    module = hlo.parse(f"{_ADD}{_WRAPPED}ENTRY e {{{_PARAMETERS}  {body}\n}}")
    assert ("r" in merged(module)["wrapped"]) == is_merged


def test_updates_may_be_added_to_what_their_sum_is_added_to() -> None:
    """XLA:CPU turns A + scatter(0, places, updates) to scatter(A, places, updates), which rounds
    each of the partial sums, though the counts alone are exact."""
    module = hlo.parse(f"""{_ADD}ENTRY e {{
  v = f32[1] parameter(0)
  x = f32[100] parameter(1)
  p = s32[100,1] parameter(2)
  z = f32[1] constant({{0}})
  c = f32[1] scatter(z, p, x), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
  ROOT r = f32[1] add(v, c)
}}
""")  # noqa: E501 (one instruction)
    v, x = np.float32([0.005]), np.ones(100, np.float32)
    one_by_one = np.add.accumulate(np.concatenate([v, x]))[-1:]
    legal = enclose(module, v, x, np.zeros((100, 1), np.int32), peer=XLA_CPU).result
    assert one_by_one != v + np.float32(100) and contains(legal, one_by_one).all()


def test_a_sum_of_sums_may_be_added_by_columns() -> None:
    """The sums of the rows are whole numbers of f32, but not those of parts of the columns."""
    module = hlo.parse(f"""{_ADD}ENTRY e {{
  x = f32[64,3] parameter(0)
  z = f32[] constant(0)
  r = f32[64] reduce(x, z), dimensions={{1}}, to_apply=add
  ROOT s = f32[] reduce(r, z), dimensions={{0}}, to_apply=add
}}
""")
    x = np.tile(np.float32([2.0**22 + 1, -(2.0**22), 0]), (64, 1))
    x[:, 2] = np.arange(64)
    columns = np.float32(0)
    for number in x.T.reshape(-1):
        columns = np.float32(columns + number)
    legal = enclose(module, x, peer=XLA_CPU).result
    assert columns != x.astype(np.float64).sum() and contains(legal, columns)
