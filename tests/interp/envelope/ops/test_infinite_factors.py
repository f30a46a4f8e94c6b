"""An infinite factor decides the sums it goes into, however uncertain other sums are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import hlo
from interp.envelope.budget import BUDGETS, Budget
from interp.envelope.enclosure import Enclosure
from interp.envelope.evaluation import enclose

_RESULTS = {
    "dot": "ROOT r = f32[2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "convolution": "z = f32[3,1] reshape(y)\n c = f32[2,1] convolution(x, z),"
    " dim_labels=bf_io->bf\n ROOT r = f32[2] reshape(c)",
}
_BUDGETS = [budget for budget in BUDGETS.values() if budget.name != "exact"]
_INF, _NAN = np.inf, np.nan
_ONES, _INFINITE = [1, 1, 1], [1, _INF, 1]
# The least factors, the greatest, what they are multiplied with, and the sum.
_KNOWN = {
    "certain": ([_INF, 1, 2], [_INF, 1, 2], _ONES, _INF),
    "beside a number of either sign": ([_INF, -1, 2], [_INF, 5, 2], _ONES, _INF),
    "of both signs": ([_INF, 1, -_INF], [_INF, 5, -_INF], _ONES, _NAN),
    "times a negative number": ([2, -3, 1], [2, -2, 4], _INFINITE, -_INF),
    "times zero": ([2, 0, 1], [2, 0, 4], _INFINITE, _NAN),
}
_OPEN = {
    "times a number of either sign": ([2, -1, 1], [2, 1, 1], _INFINITE),
    "times zero or more": ([2, 0, 1], [2, 1, 1], _INFINITE),
    "infinity or less": ([1, 1, 1], [1, 1, _INF], _ONES),
}


def _enclosed(
    opcode: str, peer: Budget, low: Sequence[float], high: Sequence[float], by: Sequence[float]
) -> Enclosure:
    """Enclose the sum of one row, above another row of an interval."""
    module = hlo.parse(
        f"HloModule m\nENTRY e {{ x = f32[2,3] parameter(0)\n y = f32[3] parameter(1)\n"
        f" {_RESULTS[opcode]} }}"
    )
    ends = (np.float32([row, other]) for row, other in ((low, [1, 2, -_INF]), (high, [1, 5, 3])))
    given = Enclosure(*ends, np.zeros((2, 3), np.bool_))
    found: Enclosure = enclose(module, given, np.float32(by), peer=peer).result
    assert found.low[1] == -_INF and found.high[1] >= 8
    return found


@pytest.mark.parametrize("peer", _BUDGETS, ids=lambda peer: peer.name)
@pytest.mark.parametrize("case", _KNOWN)
@pytest.mark.parametrize("opcode", _RESULTS)
def test_known(opcode: str, case: str, peer: Budget) -> None:
    low, high, by, total = _KNOWN[case]
    legal = _enclosed(opcode, peer, low, high, by)
    np.testing.assert_array_equal([legal.low[0], legal.high[0]], [total, total])
    assert legal.nan[0] == np.isnan(total)


@pytest.mark.parametrize("case", _OPEN)
@pytest.mark.parametrize("opcode", _RESULTS)
def test_open(opcode: str, case: str) -> None:
    for peer in _BUDGETS:
        legal = _enclosed(opcode, peer, *_OPEN[case])
        assert legal.low[0] == -_INF and legal.high[0] == _INF and legal.nan[0]
