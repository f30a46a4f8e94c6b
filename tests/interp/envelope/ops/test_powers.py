"""Powers of intervals are enclosed where they are monotone: also of negative numbers and zero."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
from hlo.values import Array
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import Enclosure, point
from interp.envelope.evaluation import enclose

_POWER = hlo.parse("""HloModule m
ENTRY e {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] power(x, y)
}
""")


def _interval(low: float, high: float) -> Enclosure:
    ends: tuple[Array, Array] = np.asarray(np.float32(low)), np.asarray(np.float32(high))
    return Enclosure(*ends, np.asarray(np.False_))


def _powers(low: float, high: float, exponent: float) -> Enclosure:
    y = point(np.asarray(np.float32(exponent)))
    found: Enclosure = enclose(_POWER, _interval(low, high), y, peer=XLA_CPU).result
    return found


@pytest.mark.parametrize(
    ("base", "exponent", "least", "greatest"),
    [
        ((-3, -2), 3, -27, -8),
        ((-3, -2), 2, 4, 9),
        ((-3, -2), -1, -1 / 2, -1 / 3),
        ((-3, -2), -2, 1 / 9, 1 / 4),
        ((-3, 2), 3, -27, 8),
        ((-3, 2), 2, 0, 9),
        ((-3, 2), 0, 1, 1),
        ((-np.inf, -2), 3, -np.inf, -8),
        ((0, 4), 0.5, 0, 2),
    ],
)
def test_of_a_certain_exponent(
    base: tuple[float, float], exponent: float, least: float, greatest: float
) -> None:
    legal = _powers(*base, exponent)
    assert legal.low == pytest.approx(least, rel=1e-5, abs=1e-37) and legal.low <= least
    assert legal.high == pytest.approx(greatest, rel=1e-5) and legal.high >= greatest
    assert not legal.nan


def test_of_negative_numbers_to_no_integer() -> None:
    legal = _powers(-3, -2, 0.5)
    assert legal.nan and np.isnan(legal.low) and np.isnan(legal.high)


@pytest.mark.parametrize(("base", "exponent"), [((-3, 2), -1), ((-3, 2), 0.5), ((0, 2), -1)])
def test_open(base: tuple[float, float], exponent: float) -> None:
    """There is a pole, or NaN beside numbers."""
    legal = _powers(*base, exponent)
    assert legal.low == -np.inf and legal.high == np.inf and legal.nan


def test_of_exponents_that_may_be_no_integers() -> None:
    legal = enclose(_POWER, _interval(-3, -2), _interval(2, 3), peer=XLA_CPU).result
    assert legal.low == -np.inf and legal.high == np.inf and legal.nan
