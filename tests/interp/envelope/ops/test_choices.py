"""A window that may choose one of several elements opens these, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hlo
import interp
from hlo.module import Module
from hlo.values import Array
from interp.envelope.budget import EXACT, XLA_CPU, Budget
from interp.envelope.enclosure import Enclosure, contains
from interp.envelope.evaluation import enclose

_SELECT = """HloModule m
best {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction={direction}
}}
fold {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] {fold}(a, b)
}}
ENTRY e {{
  x = f32[{size}] parameter(0)
  s = f32[{count}] parameter(1)
  i = f32[] constant(0)
  ROOT r = f32[{size}] select-and-scatter(x, s, i), window={{{window}}}, select=best, scatter=fold
}}
"""
_NAN = np.nan


def _module(size: int, count: int, window: str, direction: str = "GE", fold: str = "add") -> Module:
    given = {"size": size, "count": count, "window": window}
    return hlo.parse(_SELECT.format(direction=direction, fold=fold, **given))


def _intervals(low: list[float], high: list[float]) -> Enclosure:
    return Enclosure(np.float32(low), np.float32(high), np.isnan(np.float32(low)))


@pytest.mark.parametrize("fold", ["add", "maximum"])
@pytest.mark.parametrize("padding", ["", " pad=0_1"])
@pytest.mark.parametrize("peer", [EXACT, XLA_CPU], ids=lambda peer: peer.name)
def test_only_what_may_be_chosen_is_open(peer: Budget, padding: str, fold: str) -> None:
    """The first window may choose two of its elements, the second chooses its last, whatever the
    others are, and the third its first."""
    low = [1, 3, 2, 1, 1, 9, 7, 5, -1]
    high = [2, 5, 4, 4, 3, 9, 8, 6, 0]
    module = _module(9, 3, f"size=3 stride=3{padding}", fold=fold)
    source = np.float32([1, 2, 3])
    legal = enclose(module, _intervals(low, high), source, peer=peer).result
    is_open = legal.low == -np.inf
    assert is_open.tolist() == [False, True, True, *[False] * 6]
    for end in (legal.low, legal.high):
        assert end[~is_open] == pytest.approx([0, 0, 0, 2, 3, 0, 0], rel=1e-6)


def test_a_subnormal_may_equal_zero() -> None:
    module = _module(4, 2, "size=2 stride=2")
    given = np.float32([0, 1e-40, 1e-40, 1])
    legal = enclose(module, given, np.float32([1, 2]), peer=XLA_CPU).result
    assert (legal.low == -np.inf).tolist() == [True, True, False, False]


def test_a_tie_in_another_order() -> None:
    """With padding the first element need not win against one that may be equal."""
    low, high, source = [1, 1, 0, 5], [2, 1, 3, 6], np.float32([1, 2])
    for padding, open_ in (("", [False, False]), (" pad=0_1", [True, True])):
        module = _module(4, 2, f"size=2 stride=2{padding}")
        legal = enclose(module, _intervals(low, high), source, peer=XLA_CPU).result
        assert (legal.low == -np.inf).tolist() == [*open_, False, False]


@pytest.mark.parametrize("direction", ["GE", "GT", "LE", "LT", "NE"])
@pytest.mark.parametrize("window", ["size=3", "size=3 stride=2 pad=1_1", "size=2 pad=0_1"])
def test_exact_results_are_inside(window: str, direction: str) -> None:
    size = 12
    count = {"size=3": 10, "size=3 stride=2 pad=1_1": 6, "size=2 pad=0_1": 12}[window]
    module = _module(size, count, window, direction)
    rng = np.random.default_rng(1)

    def numbers(least: Array, greatest: Array) -> Array:
        drawn = np.where(rng.random(size) < 0.5, rng.uniform(least, greatest), least)
        return np.float32(np.where(rng.random(size) < 0.3, greatest, drawn))

    for _ in range(6):
        low = np.float32(rng.integers(-3, 4, size))
        high = low + np.float32(rng.integers(0, 3, size) * (rng.random(size) < 0.4))
        nan = rng.random(size) < 0.1
        source = np.float32(rng.integers(1, 9, count))
        for peer in (EXACT, XLA_CPU):
            legal = enclose(module, Enclosure(low, high, nan), source, peer=peer).result
            for _ in range(4):
                is_nan = nan & (rng.random(size) < 0.5)
                given = np.where(is_nan, np.float32(_NAN), numbers(low, high))
                exact: Any = interp.evaluate(module, given, source)
                assert contains(legal, exact).all()


@pytest.mark.parametrize("direction", ["NE", "EQ"])
@pytest.mark.parametrize("padding", ["", " pad=0_1"])
def test_what_is_no_order_chooses_others_in_another_order(direction: str, padding: str) -> None:
    """XLA searches a padded window in an order of its own, and what is equal or different to the
    best so far is no order: backwards another element is chosen (found by drawing programs)."""
    module = _module(6, 2, f"size=3 stride=3{padding}", direction)
    x, source = np.float32([1, 2, 3, 5, 4, 5]), np.float32([1, 10])
    legal = enclose(module, x, source, peer=XLA_CPU).result
    exact = interp.evaluate(module, x, source)
    backwards = interp.evaluate(module, x[::-1].copy(), source[::-1].copy())[::-1]
    assert contains(legal, exact).all() and not (exact == backwards).all()
    assert contains(legal, backwards).all() == bool(padding)


def test_no_window_chooses_nothing() -> None:
    module = _module(6, 0, "size=9 pad=0_1", "NE")
    x, source = np.float32([1, 2, 3, 5, 4, 5]), np.zeros(0, np.float32)
    legal = enclose(module, x, source, peer=XLA_CPU).result
    assert (legal.low == 0).all() and (legal.high == 0).all()
