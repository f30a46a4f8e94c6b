"""A product of n factors errs by n roundings in any order, and by no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hlo
from hlo.values import Array
from interp.envelope.budget import BUDGETS, XLA_CPU, Budget
from interp.envelope.enclosure import Enclosure, contains
from interp.envelope.evaluation import enclose

_PRODUCT = """HloModule m
times {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] multiply(a, b)
}
ENTRY e {
  x = f32[80] parameter(0)
  i = f32[] parameter(1)
  ROOT r = f32[RESULT, to_apply=times
}
"""
_RESULTS = {
    "reduce": "] reduce(x, i), dimensions={0}",
    "reduce-window": "1] reduce-window(x, i), window={size=80}",
}
_LITERAL = replace(XLA_CPU, name="literal", contracts=False, keeps_wide=False, rewrites=False)
_ALL = [*(x for x in BUDGETS.values() if x.name not in ("exact", "a rewriting")), _LITERAL]
_EPS = float(np.finfo(np.float32).eps)


def _product(factors: list[np.float32]) -> np.float32:
    result = np.float32(1)
    for factor in factors:
        result = np.float32(result * factor)
    return result


def _rounded_one_way(factors: list[np.float32], sign: int) -> list[np.float32]:
    """Order factors so that each partial product is rounded up (sign 1) or down, if it can be."""
    left, found, result = list(factors), [], np.float32(1)
    while left:
        errors = [sign * (float(result * x) - float(result) * float(x)) for x in left]
        found.append(left.pop(int(np.argmax(errors))))
        result = np.float32(result * found[-1])
    return found


@pytest.fixture(scope="module")
def orders() -> tuple[Array, float]:
    """Factors in an order that rounds down, and their product in one that rounds up. Both products
    are just below 2, where a unit is the least part of the number."""
    drawn = np.random.default_rng(1).integers(580, 3766, 79)
    factors = [np.float32(1 + k * _EPS) for k in drawn]
    down, up = (_rounded_one_way(factors, sign) for sign in (-1, 1))
    last = np.float32(1.99 / float(_product(up)))
    return np.array([*down, last]), float(_product([*up, last]))


@pytest.mark.parametrize("peer", _ALL, ids=lambda peer: peer.name)
@pytest.mark.parametrize("opcode", _RESULTS)
def test_the_bound_is_that_of_the_roundings(
    opcode: str, peer: Budget, orders: tuple[Array, float]
) -> None:
    factors, other = orders
    module = hlo.parse(_PRODUCT.replace("RESULT", _RESULTS[opcode]))
    legal = enclose(module, factors, np.float32(1), peer=peer).result
    in_order, unit = float(_product(list(factors))), _EPS
    assert other - in_order > 130 * unit
    assert contains(legal, np.float32([in_order, other])).all()
    assert legal.high.item() - legal.low.item() < 2 * 82 * unit


@pytest.mark.parametrize("opcode", _RESULTS)
def test_signs_intervals_and_zeros(opcode: str) -> None:
    module = hlo.parse(_PRODUCT.replace("RESULT", _RESULTS[opcode]))
    low = np.ones(80, np.float32)
    low[:3] = -2, 3, 0.25
    high = low.copy()
    high[:3] = -1, 5, 0.5
    given = Enclosure(low, high, np.zeros(80, np.bool_))
    legal = enclose(module, given, np.float32(2), peer=XLA_CPU).result
    assert -10.001 < legal.low <= -10 and -1.5 <= legal.high < -1.499
    low[5] = high[5] = 0
    legal = enclose(module, given, np.float32(2), peer=XLA_CPU).result
    assert legal.low == legal.high == 0 and not legal.nan.any()
