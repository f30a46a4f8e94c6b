"""Argmax and argmin, enclosed at once: what any order of any reading of subnormals keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
from hlo.walk import Callee
from interp.envelope import budget
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import Enclosure, contains
from interp.envelope.evaluation import Enclosing, enclose
from interp.envelope.folds import arg_extremes
from interp.envelope.folds.arg_extremes import Kept
from selftest.legal_compilers.compiler import Perturbed

_HEAD = """fold {{ a = {0}[] parameter(0)
  i = s32[] parameter(1)
  b = {0}[] parameter(2)
  j = s32[] parameter(3)
"""
_KEEPS = """  same = pred[] compare(a, b), direction=EQ
  before = pred[] compare(i, j), direction={1}
  first = pred[] and(same, before)
  is = pred[] or(above, first)
  v = {0}[] select({2}, a, b)
  k = s32[] select(is, i, j)
  ROOT r = ({0}[], s32[]) tuple(v, k) }}
"""
_NAN_FIRST = """  more = pred[] compare(a, b), direction={3}
  other = pred[] compare(a, a), direction=NE
  above = pred[] or(more, other)
"""
_AS_IT_IS = "  above = pred[] compare(a, b), direction={3}\n"
# The greatest value, and an index that a single decision keeps, of equal numbers either.
_EITHER = """  at = pred[] compare(a, b), direction={3}
  v = {0}[] select(at, a, b)
  k = s32[] select(at, i, j)
  ROOT r = ({0}[], s32[]) tuple(v, k) }}
"""


def _text(element_type: str, body: str, direction: str, of_equal: str = "LT") -> str:
    chosen = "above" if body is _NAN_FIRST else "is"
    rest = "" if body is _EITHER else _KEEPS
    fold = (_HEAD + body + rest).format(element_type, of_equal, chosen, direction)
    return f"""HloModule m
{fold}ENTRY e {{ x = {element_type}[6,3] parameter(0)
  n = s32[6,3] parameter(1)
  i = {element_type}[] parameter(2)
  m = s32[] parameter(3)
  ROOT r = ({element_type}[3], s32[3]) reduce(x, n, i, m), dimensions={{0}}, to_apply=fold }}"""


def _kept(text: str) -> Kept | None:
    module = hlo.parse(text)
    fold = module.computation("fold")
    with budget.using(XLA_CPU):
        return arg_extremes.kept_by(Callee(fold, Enclosing(module)._enter(fold)))


@pytest.mark.parametrize(
    ("body", "direction", "of_equal", "expected"),
    [
        (_NAN_FIRST, "GT", "LT", Kept(is_greatest=True, of_equal="least")),
        (_NAN_FIRST, "LT", "LT", Kept(is_greatest=False, of_equal="least")),
        (_AS_IT_IS, "GT", "GT", Kept(is_greatest=True, of_equal="greatest")),
        (_EITHER, "GE", "", Kept(is_greatest=True, of_equal=None)),
        (_EITHER, "LT", "", Kept(is_greatest=False, of_equal=None)),
        (_EITHER, "EQ", "", None),
        (_EITHER, "NE", "", None),
        (_AS_IT_IS, "NE", "LT", None),
    ],
)
def test_what_a_computation_keeps(
    body: str, direction: str, of_equal: str, expected: Kept | None
) -> None:
    for element_type in ("f32", "bf16", "s8", "u64"):
        assert _kept(_text(element_type, body, direction, of_equal)) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("direction=GT", "direction=GT, type=TOTALORDER"),
        ("select(above, a, b)", "add(a, b)"),
        ("select(is, i, j)", "add(i, j)"),
        ("compare(i, j)", "compare(i, i)"),
        ("k = s32[] select(is, i, j)", "z = s32[] constant(0)\n  k = s32[] select(is, i, z)"),
        ("ROOT r = (f32[], s32[]) tuple(v, k)", "ROOT r = (f32[], s32[]) tuple(b, k)"),
    ],
)
def test_what_only_looks_like_it(old: str, new: str) -> None:
    text = _text("f32", _NAN_FIRST, "GT")
    assert old in text
    found = _kept(text.replace(old, new))
    assert found is None or found.of_equal is None


_Pair = tuple[float, int]
_Numbers = st.sampled_from([0.0, -0.0, 1.0, 2.0, -3.0, 1e-45, 2e-45, -1e-45, -2e-45, np.inf])


def _reading(data: st.DataObject) -> Callable[[float], float]:
    """Read subnormals as zeros, or as they are, anew at each reading."""

    def read(x: float) -> float:
        is_flushed = 0 < abs(x) < 1e-38 and data.draw(st.booleans())
        return 0.0 if is_flushed else x

    return read


def _kept_of_two(x: _Pair, y: _Pair, kept: Kept, data: st.DataObject) -> _Pair:
    """Keep one of two pairs as the text has it, number and index by decisions of their own."""
    read, sign = _reading(data), 1 if kept.is_greatest else -1
    above = sign * read(x[0]) > sign * read(y[0])
    first = x[1] < y[1] if kept.of_equal == "least" else x[1] > y[1]
    if kept.of_equal is None:
        first = False
    takes = above or (read(x[0]) == read(y[0]) and first)
    return (x[0] if above else y[0]), (x[1] if takes else y[1])


def _folded(pairs: list[_Pair], kept: Kept, data: st.DataObject) -> _Pair:
    """Fold pairs in any order: take two, put back what is kept of them."""
    left = list(pairs)
    while len(left) > 1:
        one = left.pop(data.draw(st.integers(0, len(left) - 1)))
        other = left.pop(data.draw(st.integers(0, len(left) - 1)))
        left.append(_kept_of_two(one, other, kept, data))
    return left[0]


@given(st.data())
def test_no_order_keeps_anything_else(data: st.DataObject) -> None:
    """Whichever number each interval is, and in whatever order: the fold is enclosed."""
    kept = data.draw(st.builds(Kept, st.booleans(), st.sampled_from(["least", "greatest", None])))
    ends = data.draw(st.lists(st.tuples(_Numbers, _Numbers), min_size=2, max_size=5))
    low, high = (np.array([f(pair) for pair in ends], np.float32) for f in (min, max))
    if data.draw(st.booleans()):
        high = low
    index = np.array(data.draw(st.permutations(range(len(ends)))), np.int32)
    numbers = Enclosure(low, high, np.zeros(len(ends), np.bool_))
    with budget.using(XLA_CPU):
        found = arg_extremes.folded(kept, numbers, Enclosure(index, index, numbers.nan))
    pairs = []
    for one, other, number in zip(low.tolist(), high.tolist(), index.tolist()):
        among = [x for x in (one, other, 0.0, 1.0, 1e-45) if one <= x <= other]
        pairs.append((data.draw(st.sampled_from(among)), number))
    number, at = _folded(pairs, kept, data)
    assert contains(found[0], np.float32(number)).all(), (found, pairs, number)
    assert contains(found[1], np.int32(at)).all(), (found, pairs, at)


@pytest.mark.parametrize("direction", ["GT", "LT"])
@pytest.mark.parametrize("element_type", ["f32", "bf16", "f16", "f64", "s8", "u32"])
def test_certain_numbers_have_one_winner(element_type: str, direction: str) -> None:
    module = hlo.parse(_text(element_type, _NAN_FIRST, direction))
    dtype: Any = hlo.types.ELEMENT_TYPES[element_type].numpy
    rng = np.random.default_rng(0)
    x = rng.integers(1, 4, (6, 3)).astype(dtype)
    n = np.arange(18, dtype=np.int32).reshape(6, 3)
    init = np.asarray(0 if direction == "GT" else 9, dtype)
    number, index = enclose(module, x, n, init, np.int32(0), peer=XLA_CPU).result
    best = x.max(axis=0) if direction == "GT" else x.min(axis=0)
    assert number.is_point and np.array_equal(number.low, best)
    place = np.argmax(x == best, axis=0)
    assert index.is_point and np.array_equal(index.low, n[place, np.arange(3)])
    for seed in range(2):
        actual = Perturbed(XLA_CPU, seed)(module, x, n, init, np.int32(0))
        assert all(contains(*pair).all() for pair in zip((number, index), actual))


def test_more_numbers_than_are_followed_one_by_one() -> None:
    text = _text("f32", _NAN_FIRST, "LT").replace("[6,3]", "[9000]").replace("[3]", "[]")
    x = np.random.default_rng(0).standard_normal(9000).astype(np.float32)
    given_ = x, np.arange(9000, dtype=np.int32), np.float32(np.inf), np.int32(0)
    for one, other in zip(
        enclose(hlo.parse(text), *given_, peer=XLA_CPU).result, (x.min(), x.argmin()), strict=True
    ):
        assert isinstance(one.low, np.ndarray) and one.is_point and one.low == other


def test_nan_leaves_its_column_open() -> None:
    module = hlo.parse(_text("f32", _NAN_FIRST, "GT"))
    x = np.ones((6, 3), np.float32)
    x[2, 1] = np.nan
    n = np.arange(18, dtype=np.int32).reshape(6, 3)
    given_ = x, n, np.float32(-np.inf), np.int32(0)
    number, index = enclose(module, *given_, peer=XLA_CPU).result
    assert (index.low == index.high).tolist() == [True, False, True]
    assert number.nan.tolist() == [False, True, False]


def test_an_uncertain_number_that_cannot_win_is_left_out() -> None:
    """exp is off by some units: the index is one of those of nearly equal numbers."""
    text = _text("f32", _NAN_FIRST, "GT").replace("x = f32[6,3]", "y = f32[6,3]")
    module = hlo.parse(text.replace("  n = s32", "  x = f32[6,3] exponential(y)\n  n = s32"))
    y = np.float32([[0, 1, 2], [1, 1, 3], [3, 0, 1], [3, -1, 3], [2.5, 1, 0], [0, 0, 3]])
    n = np.repeat(np.arange(6, dtype=np.int32)[:, None], 3, axis=1)
    number, index = enclose(module, y, n, np.float32(-np.inf), np.int32(0), peer=XLA_CPU).result
    assert (index.low.tolist(), index.high.tolist()) == ([2, 0, 1], [3, 4, 5])
    assert (number.low > np.exp(y.max(axis=0)) * 0.99).all()
