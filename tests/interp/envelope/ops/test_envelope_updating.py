"""Updates by computations that are no sums: each alone is known, several may come in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hlo
import interp
from hlo.types import ELEMENT_TYPES
from hlo.values import Array
from interp.envelope.budget import EXACT, XLA_CPU
from interp.envelope.enclosure import Enclosure, contains
from interp.envelope.evaluation import enclose

_SCATTER = """HloModule m
fold {{ a = {type}[] parameter(0)
  b = {type}[] parameter(1)
  ROOT r = {type}[] {opcode}(a, b) }}
ENTRY e {{ x = {type}[4] parameter(0)
  i = s32[4,1] constant({{{{0}}, {{1}}, {{1}}, {{9}}}})
  u = {type}[4] parameter(1)
  ROOT r = {type}[4] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=fold }}
"""
# of each element: whether it has one legal result
_KNOWN = {
    "remainder": ("s32", [False, False, True, True]),  # of a by b, or of b by a
    "multiply": ("s32", [True, True, True, True]),
    "xor": ("s32", [True, True, True, True]),
    "multiply f32": ("f32", [False, False, True, True]),  # a rounding, or several
}


@pytest.mark.parametrize("case", _KNOWN)
def test_updates_of_one_place(case: str) -> None:
    element_type, known = _KNOWN[case]
    text = _SCATTER.format(type=element_type, opcode=case.split()[0])
    module = hlo.parse(text)
    dtype = np.dtype({"s32": np.int32, "f32": np.float32}[element_type])
    arguments = np.array([7, 9, 5, 3], dtype), np.array([3, 5, 4, 2], dtype)
    exact: Any = interp.evaluate(module, *arguments)
    legal = enclose(module, *arguments, peer=XLA_CPU).result
    assert contains(legal, exact).all()
    assert (legal.low == legal.high).tolist() == known
    assert contains(legal, arguments[0]).tolist()[2:] == [True, True]
    fixed = enclose(module, *arguments, peer=EXACT).result
    assert (fixed.low == fixed.high).all() and (fixed.low == exact).all()


def test_a_product_of_one_update_is_off_by_its_rounding() -> None:
    module = hlo.parse(_SCATTER.format(type="f32", opcode="multiply"))
    x, u = np.float32([1.1, 1, 1, 1]), np.float32([1.3, 1, 1, 1])
    legal = enclose(module, x, u, peer=XLA_CPU).result
    exact = x[0] * u[0]
    assert legal.low[0] <= exact <= legal.high[0] < exact * (1 + 1e-6)


_SELECT = """HloModule m
ge { a = s8[] parameter(0)
  b = s8[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE }
fold { a = s8[] parameter(0)
  b = s8[] parameter(1)
  ROOT r = s8[] multiply(a, b) }
ENTRY e { x = s8[6] parameter(0)
  s = s8[2] parameter(1)
  i = s8[] constant(2)
  ROOT r = s8[6] select-and-scatter(x, s, i), window={size=3 stride=3}, select=ge, scatter=fold }
"""


def test_a_product_at_the_greatest_of_each_window() -> None:
    x, s = np.int8([1, 5, 3, 9, 8, 7]), np.int8([3, 4])
    legal = enclose(hlo.parse(_SELECT), x, s, peer=XLA_CPU).result
    assert legal.low.tolist() == legal.high.tolist() == [2, 6, 2, 8, 2, 2]


_TABLE = """HloModule m
add {{ a = {type}[] parameter(0)
  b = {type}[] parameter(1)
  ROOT r = {type}[] add(a, b) }}
ENTRY e {{ x = {type}[{rows},2] parameter(0)
  i = s32[{count},1] parameter(1)
  u = {type}[{count},2] parameter(2)
  y = {type}[{rows},2] tanh(x)
  v = {type}[{count},2] tanh(u)
  ROOT r = {type}[{rows},2] scatter(y, i, v), update_window_dims={{1}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add }}
"""


@pytest.mark.parametrize("element_type", ["f32", "bf16"])
def test_a_row_of_a_large_table_is_as_in_a_small_one(element_type: str) -> None:
    """A row of a large table has the envelope of the same row in a small table, also beside rows
    that are infinite, NaN or subnormal, or that get no update."""
    dtype = ELEMENT_TYPES[element_type].numpy
    rng = np.random.default_rng(2)
    x = rng.standard_normal((20_000, 2)).astype(dtype)
    x[[3, 4_000, 4_001, 19_998]] = np.array([np.nan, 1e-40, 0, -0.0])[:, None].astype(dtype)
    rows = np.array([3, 4_000, 4_001, 5, 19_998, 19_999])
    places = rng.integers(0, 4, (40, 1))  # not in the last two of them
    updates = rng.standard_normal((40, 2)).astype(dtype)

    def legal(table: Array, indices: Array) -> Enclosure:
        module = hlo.parse(_TABLE.format(type=element_type, rows=len(table), count=40))
        given = table, indices.astype(np.int32), updates
        found: Enclosure = enclose(module, *given, peer=XLA_CPU).result
        return found

    large, small = legal(x, rows[places]), legal(x[rows], places)
    for one, other in zip(large.ends(), small.ends(), strict=True):
        assert one[rows].tobytes() == other.tobytes()
    assert (large.nan[rows] == small.nan).all()


def test_no_updates_of_a_number() -> None:
    """The rule raised an AssertionError for an array without dimensions that nothing updates."""
    module = hlo.parse("""
last { a = f32[] parameter(0)
  ROOT b = f32[] parameter(1) }
ENTRY e { x = f32[] parameter(0)
  i = s32[0,1,0] constant({})
  u = f32[0,1] parameter(1)
  ROOT r = f32[] scatter(x, i, u), update_window_dims={}, inserted_window_dims={},
    scatter_dims_to_operand_dims={}, index_vector_dim=2, to_apply=last }""")
    for number in (np.float32(3), np.float32(np.nan)):
        legal = enclose(module, number, np.ones((0, 1), np.float32), peer=XLA_CPU).result
        assert contains(legal, np.asarray(number)).all()
        assert not contains(legal, np.float32(2)).any()
