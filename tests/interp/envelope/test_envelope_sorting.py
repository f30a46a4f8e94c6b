"""Sorts of what is not certain: every legal order is inside, and little else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hlo
from hlo.values import Array
from hlo.walk import Callee
from interp.envelope import budget
from interp.envelope.enclosure import Enclosure, contains, point
from interp.envelope.evaluation import enclose
from interp.envelope.ops import selection, sorting
from interp.ops import indexing

_LESS = """HloModule m
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=DIRECTION }
ENTRY e { x = f32[3,9] parameter(0)
  y = f32[3,9] parameter(1)
  ROOT r = (f32[3,9], f32[3,9]) sort(x, y), dimensions={1}, to_apply=less }
"""


def _comparator(direction: str) -> Callee[Any]:
    computation = hlo.parse(_LESS.replace("DIRECTION", direction)).computation("less")
    return Callee(computation, lambda a, b, c, d: selection.compare(a, b, direction=direction))


def _sorted(x: Array, y: Array, direction: str, is_stable: bool) -> tuple[Array, ...]:
    order = np.argsort(x if direction == "LT" else -x, axis=1, kind="stable")
    if not is_stable:  # equal keys the other way round
        turned = np.argsort((x if direction == "LT" else -x)[:, ::-1], axis=1, kind="stable")
        order = x.shape[1] - 1 - turned
    return np.take_along_axis(x, order, 1), np.take_along_axis(y, order, 1)


def _between(low: Array, high: Array) -> Enclosure:
    return Enclosure(low, high, np.zeros(low.shape, np.bool_))


@pytest.mark.parametrize("is_stable", [False, True])
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_every_order_of_uncertain_keys_is_inside(direction: str, is_stable: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        low = rng.integers(0, 8, (3, 9)).astype(np.float32)
        high = low + rng.integers(0, 3, (3, 9))
        y = np.arange(27, dtype=np.float32).reshape(3, 9)
        given = {"dimensions": (1,), "to_apply": _comparator(direction), "is_stable": is_stable}
        with budget.using(budget.XLA_CPU):
            keys, others = sorting.sort(_between(low, high), point(y), **given)
        for _ in range(20):
            x = rng.integers(low, high + 1).astype(np.float32)
            x_sorted, y_sorted = _sorted(x, y, direction, is_stable)
            assert contains(keys, x_sorted).all() and contains(others, y_sorted).all()


def test_a_companion_is_beside_its_key_or_one_that_may_be_equal() -> None:
    low = np.float32([[5, 1, 9, 1.5]])
    high = np.float32([[6, 2, 9, 3]])
    given = {"dimensions": (1,), "to_apply": _comparator("LT")}
    with budget.using(budget.XLA_CPU):
        keys, others = sorting.sort(_between(low, high), point(np.float32([[0, 1, 2, 3]])), **given)
    assert keys.low.tolist() == [[1, 1.5, 5, 9]] and keys.high.tolist() == [[2, 3, 6, 9]]
    assert others.low.tolist() == [[1, 1, 0, 2]] and others.high.tolist() == [[3, 3, 0, 2]]


def test_certain_keys_have_one_order() -> None:
    """Certain keys have one order, which also moves companions that are intervals."""
    x, y = np.float32([[3, 1, 2]]), np.float32([[10, 20, 30]])
    given = {"dimensions": (1,), "to_apply": _comparator("LT")}
    with budget.using(budget.XLA_CPU):
        keys, others = sorting.sort(point(x), _between(y, y + 1), **given)
    assert keys.low.tolist() == keys.high.tolist() == [[1, 2, 3]]
    assert (others.low.tolist(), others.high.tolist()) == ([[20, 30, 10]], [[21, 31, 11]])


@pytest.mark.parametrize("largest", [True, False])
def test_the_greatest_of_uncertain_numbers(largest: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        low = rng.integers(0, 8, (3, 9)).astype(np.float32)
        high = low + rng.integers(0, 3, (3, 9))
        with budget.using(budget.XLA_CPU):
            legal = sorting.topk(_between(low, high), k=4, largest=largest)
            exactly = sorting.topk(point(low), k=4, largest=largest)
        for _ in range(20):
            x = rng.integers(low, high + 1).astype(np.float32)
            found = indexing.topk(x, k=4, largest=largest)
            assert all(contains(one, other).all() for one, other in zip(legal, found))
        right = indexing.topk(low, k=4, largest=largest)
        assert all((one.low == other).all() for one, other in zip(exactly, right))
        assert all((one.high == other).all() for one, other in zip(exactly, right))


def test_a_sort_with_a_wrong_companion_is_outside() -> None:
    """Companions in the wrong order are outside, also if another compiler computes the keys a few
    units off."""
    text = _LESS.replace("DIRECTION", "LT").replace("sort(x, y)", "sort(z, y)")
    module = hlo.parse(text.replace("  ROOT r = (", "  z = f32[3,9] exponential(x)\n  ROOT r = ("))
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, 3, 9)).astype(np.float32)
    _, others = enclose(module, x, y, peer=budget.XLA_CPU).result
    right = np.take_along_axis(y, np.argsort(x, axis=1), 1)
    assert contains(others, right).all() and not contains(others, right[:, ::-1]).all()


def test_what_may_be_subnormal_is_equal_to_zeros() -> None:
    """A key that may be subnormal is equal to zero for a compiler that flushes, and is moved with
    its bits."""
    low, high = np.float32([[0, -2e-38, 0]]), np.float32([[0, 2e-38, 0]])
    given = {"dimensions": (1,), "to_apply": _comparator("LT"), "is_stable": True}
    with budget.using(budget.XLA_CPU):
        keys, others = sorting.sort(_between(low, high), point(np.float32([[0, 1, 2]])), **given)
    assert contains(keys, np.float32([[0, 1e-45, 0]])).all()
    assert contains(others, np.float32([[0, 1, 2]])).all()


@pytest.mark.parametrize(
    "line", ["(f32[4], s32[4]) topk(x), k=4", "f32[4] sort(x), dimensions={0}"]
)
def test_a_nan_of_either_sign_may_be_at_either_end(line: str) -> None:
    module = hlo.parse(f"""HloModule m
less {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GT, type=TOTALORDER }}
ENTRY e {{ x = f32[4] parameter(0)
  ROOT r = {line}{", to_apply=less" if "sort" in line else ""} }}
""")
    x = np.float32([1, np.nan, 3, 2])
    legal = enclose(module, x, peer=budget.XLA_CPU).result
    values = legal[0] if isinstance(legal, tuple) else legal
    for row in ([np.nan, 3, 2, 1], [3, 2, 1, np.nan]):
        assert contains(values, np.float32(row)).all()


@pytest.mark.parametrize("keys", [[3, np.nan, np.nan, 4], [np.nan, 4, np.nan, np.nan, 3, np.nan]])
def test_a_nan_that_is_level_with_all_leaves_the_order_open(keys: list[float]) -> None:
    """Stable sorts, too, may compare 3 with 4, or only neighbours; other rows have one order."""
    given = {"dimensions": (1,), "to_apply": _comparator("GT"), "is_stable": True}
    x = np.float32([keys, range(len(keys))])
    y = np.arange(x.size, dtype=np.float32).reshape(x.shape)
    with budget.using(budget.XLA_CPU):
        sorted_keys, others = sorting.sort(point(x), point(y), **given)
    for order in np.random.default_rng(0).permuted([range(len(keys))] * 20, axis=1):
        assert contains(sorted_keys, x[:, order])[0].all()
        assert contains(others, y[:, order])[0].all()
    assert contains(others, y[:, ::-1])[1].all() and not contains(others, y)[1].all()


def test_zeros_of_both_signs_come_in_total_order() -> None:
    text = """HloModule m
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER }
ENTRY e { x = f32[3] parameter(0)
  ROOT r = f32[3] sort(x), dimensions={0}, to_apply=less, is_stable=true }
"""
    given = Enclosure(np.float32([0, -0.0, 1]), np.float32([0, -0.0, 2]), np.zeros(3, np.bool_))
    legal = enclose(hlo.parse(text), given, peer=budget.EXACT).result
    assert contains(legal, np.float32([-0.0, 0, 1.5])).all()
