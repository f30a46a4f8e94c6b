"""A NaN that is certain makes NaN, however uncertain what it meets is."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
from interp.envelope.budget import BUDGETS, Budget
from interp.envelope.enclosure import Enclosure, contains
from interp.envelope.evaluation import enclose

_SUM = """HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[2,3] parameter(0)
  z = f32[] constant(0)
  RESULT
}
"""
_RESULTS = {
    "reduce": "ROOT r = f32[2] reduce(x, z), dimensions={1}, to_apply=sum",
    "reduce-window": "ROOT r = f32[2,1] reduce-window(x, z), window={size=1x3}, to_apply=sum",
    "scatter": "i = s32[3,1] constant({{0}, {0}, {0}})\n"
    " b = f32[2,1] broadcast(z), dimensions={}\n ROOT r = f32[2,1] scatter(b, i, x),"
    " update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1},"
    " index_vector_dim=1, to_apply=sum",
    "dot": "y = f32[3] constant({1, 0, 2})\n ROOT r = f32[2] dot(x, y), lhs_contracting_dims={1},"
    " rhs_contracting_dims={0}",
    "convolution": "y = f32[3,1] constant({{1}, {0}, {2}})\n ROOT r = f32[2,1] convolution(x, y),"
    " dim_labels=bf_io->bf",
}
# The first row has a NaN, an infinity and a number beside an interval, the second an interval.
_LOW = np.float32([[1, np.nan, np.inf], [1, 2, 3]])
_HIGH = np.float32([[2, np.nan, np.inf], [1, 5, 3]])
_ALL_BUDGETS = [budget for budget in BUDGETS.values() if budget.name != "exact"]


@pytest.mark.parametrize("budget", _ALL_BUDGETS, ids=lambda budget: budget.name)
@pytest.mark.parametrize("opcode", _RESULTS)
def test_a_certain_nan_is_all_there_is(opcode: str, budget: Budget) -> None:
    module = hlo.parse(_SUM.replace("RESULT", _RESULTS[opcode]))
    legal = enclose(module, Enclosure(_LOW, _HIGH, np.isnan(_LOW)), peer=budget).result
    first, second = legal.low.reshape(2), legal.nan.reshape(2)
    assert np.isnan(first[0]) and second.tolist() == [True, False]
    assert contains(legal, np.full(legal.shape, np.nan, np.float32)).reshape(2)[0]


@pytest.mark.parametrize("budget", _ALL_BUDGETS, ids=lambda budget: budget.name)
@pytest.mark.parametrize("opcode", ["multiply", "divide", "add", "subtract"])
def test_an_operation_on_a_certain_nan(opcode: str, budget: Budget) -> None:
    module = hlo.parse(f"""HloModule m
ENTRY e {{
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  ROOT r = f32[2] {opcode}(x, y)
}}
""")
    nan, none = np.float32([np.nan] * 2), np.zeros(2, np.bool_)
    certain = Enclosure(nan, nan, ~none)
    other = Enclosure(np.float32([1, -1]), np.float32([2, np.inf]), none)
    for given in ((certain, other), (other, certain)):
        legal = enclose(module, *given, peer=budget).result
        assert np.isnan(legal.low).all() and np.isnan(legal.high).all() and legal.nan.all()


def test_an_infinity_beside_an_interval_is_all_there_is() -> None:
    module = hlo.parse(_SUM.replace("RESULT", _RESULTS["reduce"]))
    low, high = (np.where(np.isnan(x), np.float32(7), x) for x in (_LOW, _HIGH))
    nan = np.zeros(low.shape, np.bool_)
    for other, ends in ((7, (np.inf, np.inf)), (-np.inf, (np.nan, np.nan))):
        low[0, 1] = high[0, 1] = other
        legal = enclose(module, Enclosure(low, high, nan), peer=BUDGETS["XLA:CPU 0.10"]).result
        np.testing.assert_array_equal((legal.low[0], legal.high[0]), ends)


def test_what_may_be_nan_leaves_a_sum_open() -> None:
    module = hlo.parse(_SUM.replace("RESULT", _RESULTS["reduce"]))
    low, high = (np.where(np.isnan(x), np.float32(7), x) for x in (_LOW, _HIGH))
    nan = np.zeros(low.shape, np.bool_)
    nan[0, 1] = True
    legal = enclose(module, Enclosure(low, high, nan), peer=BUDGETS["XLA:CPU 0.10"]).result
    assert contains(legal, np.float32([np.inf, 8])).all() and legal.nan[0]


def test_a_maximum_that_drops_nan_is_proven() -> None:
    """Rows divided by their norm, but at least by 1e-6: of a NaN all of the row is NaN."""
    text = _SUM.replace(
        "RESULT",
        "y = f32[2,3] multiply(x, x)\n s = f32[2] reduce(y, z), dimensions={1}, to_apply=sum\n"
        " n = f32[2] sqrt(s)\n t = f32[] constant(1e-6)\n"
        " b = f32[2] broadcast(t), dimensions={}\n m = f32[2] maximum(n, b)\n"
        " d = f32[2,3] broadcast(m), dimensions={0}\n ROOT r = f32[2,3] divide(x, d)",
    )
    x = np.float32([[1, np.nan, 3], [1, 2, 3]])
    legal = enclose(hlo.parse(text), x, peer=BUDGETS["XLA:CPU 0.10"]).result
    assert not contains(legal, x / np.float32(1e-6))[0, [0, 2]].any()
