"""Remainders of numbers that are not certain: near where the whole quotient is."""

from __future__ import annotations

import numpy as np
import pytest

from hlo.types import ELEMENT_TYPES
from interp.envelope import budget
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import Enclosure, contains, is_nan
from interp.envelope.ops.arithmetic import remainder
from interp.ops import elementwise

_COUNT = 4000


def _boxes(name: str) -> tuple[Enclosure, Enclosure, list[tuple[np.ndarray, np.ndarray]]]:
    """Draw enclosures of dividends and divisors, and numbers in them."""
    element_type, rng = ELEMENT_TYPES[name], np.random.default_rng(0)
    unit = 2.0 ** -{"f64": 52, "f32": 23, "f16": 10, "bf16": 7, "f8e4m3fn": 3}[name]
    sides = []
    for _ in range(2):
        middle = rng.choice([-1, 1], _COUNT) * 2.0 ** rng.uniform(-4, 4, _COUNT)
        width = np.abs(middle) * unit * rng.integers(0, 40, _COUNT)
        with np.errstate(all="ignore"):
            ends = [(middle + by).astype(element_type.numpy) for by in (-width, width)]
        inside = [
            np.clip((middle + width * by).astype(element_type.numpy), *ends)
            for by in rng.uniform(-1, 1, (6, 1))
        ]
        sides.append((Enclosure(*ends, np.zeros(_COUNT, bool)), [*ends, *inside]))
    (lhs, xs), (rhs, ys) = sides
    return lhs, rhs, [(x, y) for x in xs for y in ys]


@pytest.mark.parametrize("name", ["f64", "f32", "f16", "bf16", "f8e4m3fn"])
def test_every_remainder_of_numbers_inside_is_legal(name: str) -> None:
    lhs, rhs, inside = _boxes(name)
    with budget.using(XLA_CPU), np.errstate(all="ignore"):
        legal = remainder(lhs, rhs)
        for x, y in inside:
            found = elementwise.remainder(x, y)
            assert (contains(legal, found) | (is_nan(found) & legal.nan)).all()


def test_a_remainder_of_one_whole_quotient_is_known() -> None:
    lhs, rhs, inside = _boxes("f32")
    with budget.using(XLA_CPU), np.errstate(all="ignore"):
        legal = remainder(lhs, rhs)
        corners = [inside[n] for n in (0, 1, 8, 9)]
        quotients = [np.trunc(x.astype(np.float64) / y) for x, y in corners]
    every = np.stack(quotients)
    is_one = (every == every[0]).all(0) & (np.abs(every[0]) < 50)
    width = legal.high.astype(np.float64) - legal.low
    terms = np.abs(lhs.high) + (1 + np.abs(every[0])) * np.abs(rhs.high)
    assert is_one.mean() > 0.9
    assert (width[is_one] < 2.0**-16 * terms[is_one]).all()
