"""Folds in any order against folds in row-major order, and what the language says about windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from fraction_sums import hard_arrays, same_bits
from hypothesis import given
from hypothesis import strategies as st

import backend_c
from hlo.attributes import Window, WindowDimension
from hlo.errors import Unsupported
from hlo.text.parser import parse
from hlo.types import ELEMENT_TYPES, F32, S32, ElementType
from hlo.values import Array
from interp.evaluator import evaluate
from interp.ops.reduction import reduce, reduce_window, select_and_scatter
from interp.windows import positions


class Computation:
    """A callee as the functions see it; ``monoid`` None hides what it is."""

    def __init__(self, function: Callable[..., Any], monoid: str | None = None) -> None:
        self.function, self.monoid = function, monoid
        self.is_elementwise = True

    def __call__(self, *arguments: Array) -> Any:
        with np.errstate(all="ignore"):
            result = self.function(*arguments)
        return tuple(map(np.asarray, result)) if isinstance(result, tuple) else np.asarray(result)

    def bundled(self, results: Sequence[Array]) -> Any:
        return results[0] if len(results) == 1 else tuple(results)


def maximum(lhs: Array, rhs: Array) -> Array:
    zero = np.where(np.signbit(lhs) & np.signbit(rhs), -0.0, 0.0).astype(lhs.dtype)
    return np.where((lhs == 0) & (rhs == 0), zero, np.maximum(lhs, rhs))


def minimum(lhs: Array, rhs: Array) -> Array:
    return -maximum(-lhs, -rhs)


ON_FLOATS = {"maximum": maximum, "minimum": minimum, "multiply": np.multiply}
ON_INTEGERS = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
ON_PRED = {
    "add": np.logical_or,
    "multiply": np.logical_and,
    "maximum": np.logical_or,
    "minimum": np.logical_and,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
NAMES = ["f32", "f64", "bf16", "f8e4m3fn", "s8", "u8", "s32", "u64", "pred"]
TYPES = [ELEMENT_TYPES[name] for name in NAMES]


def window_dimensions(rank: int) -> Any:
    dimension = st.builds(
        WindowDimension,
        size=st.integers(1, 5),
        stride=st.integers(1, 3),
        padding_low=st.integers(-2, 4),
        padding_high=st.integers(-2, 4),
        base_dilation=st.integers(1, 3),
        window_dilation=st.integers(1, 3),
    )
    return st.tuples(*(dimension for _ in range(rank))).map(Window)


@st.composite
def folds(draw: st.DrawFn) -> tuple[Callable[..., Any], str, Array, Array]:
    element_type = draw(st.sampled_from(TYPES))
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
    if element_type.is_float:
        table: dict[str, Any] = ON_FLOATS
        values, init = (draw(hard_arrays(element_type, dims)) for dims in (shape, ()))
    else:
        table = ON_PRED if element_type.kind == "pred" else ON_INTEGERS
        numbers = draw(st.integers(0, 2**32 - 1).map(np.random.default_rng))
        values, init = (
            np.asarray(numbers.integers(0, 256, dims)).astype(element_type.numpy)
            for dims in (shape, ())
        )
    monoid = draw(st.sampled_from(sorted(table)))
    return table[monoid], monoid, values, init


@given(data=st.data(), fold=folds())
def test_any_order_is_the_row_major_order(data: st.DataObject, fold: Any) -> None:
    function, monoid, values, init = fold
    known, hidden = Computation(function, monoid), Computation(function)
    axes = tuple(data.draw(st.permutations(range(values.ndim))))
    axes = axes[: data.draw(st.integers(0, values.ndim))]
    result = reduce(values, init, dimensions=axes, to_apply=known)
    assert same_bits(result, reduce(values, init, dimensions=axes, to_apply=hidden))
    window = data.draw(window_dimensions(values.ndim))
    result = reduce_window(values, init, window=window, to_apply=known)
    assert same_bits(result, reduce_window(values, init, window=window, to_apply=hidden))


@pytest.mark.parametrize("element_type", [F32, S32], ids=str)
def test_sums_of_integers_however_they_are_added(element_type: ElementType) -> None:
    random = np.random.default_rng(0)
    values = random.integers(-100, 100, (5, 6, 7)).astype(element_type.numpy)
    init = np.array(3, values.dtype)
    window = Window(
        (
            WindowDimension(2, 2, 1, 0),
            WindowDimension(3, 1, 2, -1, 2, 2),
            WindowDimension(7, 1, 6, 0),
        )
    )
    known, hidden = Computation(np.add, "add"), Computation(np.add)
    for axes in ((), (0,), (2, 0), (0, 1, 2)):
        result = reduce(values, init, dimensions=axes, to_apply=known)
        assert same_bits(result, reduce(values, init, dimensions=axes, to_apply=hidden))
    result = reduce_window(values, init, window=window, to_apply=known)
    assert same_bits(result, reduce_window(values, init, window=window, to_apply=hidden))


def test_row_major_order_starting_at_init() -> None:
    values = np.arange(12).reshape(2, 3, 2)
    apart = Computation(lambda acc, x: 13 * acc + x)
    result = reduce(values, np.array(5), dimensions=(2, 0), to_apply=apart)
    expected = []
    for column in range(3):
        acc = 5
        for x in values[:, column].ravel():
            acc = 13 * acc + x
        expected.append(acc)
    assert result.tolist() == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_rounded_in_row_major_order(dtype: type[np.generic]) -> None:
    values = (1 + np.random.default_rng(3).standard_normal((40, 3, 50)) / 9).astype(dtype)
    init = np.array(0.3, dtype)
    for axes in ((0,), (2, 0), (0, 1, 2)):
        known, hidden = Computation(np.multiply, "multiply"), Computation(np.multiply)
        result = reduce(values, init, dimensions=axes, to_apply=known)
        assert same_bits(result, reduce(values, init, dimensions=axes, to_apply=hidden))


def test_several_operands() -> None:
    """The first greatest element and its index."""
    values = np.array([[3, 7, 7, 1], [2, 2, 0, 2]], np.float32)
    index = np.broadcast_to(np.arange(4, dtype=np.int32), values.shape)

    def greatest(best: Array, at: Array, x: Array, i: Array) -> tuple[Array, Array]:
        return np.where(x > best, x, best), np.where(x > best, i, at)

    inits = np.array(-np.inf, np.float32), np.array(0, np.int32)
    found = Computation(greatest)
    best, at = reduce(values, index, *inits, dimensions=(1,), to_apply=found)
    assert (best.tolist(), at.tolist(), at.dtype) == ([7, 2], [1, 0], np.int32)
    window = Window((WindowDimension(1), WindowDimension(2, 2, 1, 1)))
    best, at = reduce_window(values, index, *inits, window=window, to_apply=found)
    assert (best.tolist(), at.tolist()) == ([[3, 7, 1], [2, 2, 2]], [[0, 1, 3], [0, 1, 3]])


@pytest.mark.parametrize("longest", [1, 4, 1 << 16])
def test_long_runs_that_change_nothing(monkeypatch: pytest.MonkeyPatch, longest: int) -> None:
    monkeypatch.setattr("interp.ops.reduction._LONGEST_RUN", longest)
    random = np.random.default_rng(1)
    values = random.standard_normal((700, 2)).astype(np.float32)
    values[random.integers(0, 700, 9)] = [np.nan, -0.0]
    index = np.broadcast_to(np.arange(700, dtype=np.int32)[:, None], values.shape)

    def latest(best: Array, at: Array, x: Array, i: Array) -> tuple[Array, Array]:
        takes = (x >= best) | (x != x)
        return np.where(takes, x, best), np.where(takes & (i % 3 != 0), i, at)

    inits = np.array(-1, np.float32), np.array(-1, np.int32)
    best, at = np.full(2, inits[0]), np.full(2, inits[1])
    for x, i in zip(values, index, strict=True):
        best, at = latest(best, at, x, i)
    result = reduce(values, index, *inits, dimensions=(0,), to_apply=Computation(latest))
    assert same_bits(result[0], best) and same_bits(result[1], at)
    products = reduce(values[:, 1], inits[0], dimensions=(0,), to_apply=Computation(np.multiply))
    assert same_bits(products, np.multiply.accumulate(values[:, 1])[-1] * inits[0])


def test_padding_is_not_combined_with_the_init() -> None:
    """hlo_reference 6.4: the init counts once in each window."""
    values = np.arange(1, 6, dtype=np.int32)
    window = Window((WindowDimension(2, padding_high=1),))
    for monoid in ("add", None):
        result = reduce_window(
            values, np.int32(100), window=window, to_apply=Computation(np.add, monoid)
        )
        assert result.tolist() == [103, 105, 107, 109, 105]


def selected(operand: Array, source: Array, init: float, window: Window) -> Array:
    """select-and-scatter with GE and add, one window at a time."""
    out = np.full(operand.shape, init, operand.dtype)
    for place in np.ndindex(source.shape):
        best = None
        for offset in np.ndindex(*(d.size for d in window.dimensions)):
            dims = zip(place, offset, window.dimensions, strict=True)
            at = tuple(p * d.stride + o - d.padding_low for p, o, d in dims)
            inside = all(0 <= i < n for i, n in zip(at, operand.shape, strict=True))
            if inside and (best is None or not operand[best] >= operand[at]):
                best = at
        if best is not None:
            out[best] += source[place]
    return out


@given(data=st.data())
def test_select_and_scatter(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=2)))
    dimension = st.builds(
        WindowDimension, st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.integers(0, 2)
    )
    window = Window(tuple(data.draw(dimension) for _ in shape))
    random = data.draw(st.integers(0, 2**32 - 1).map(np.random.default_rng))
    operand = random.integers(-2, 3, shape).astype(np.float32)
    source = random.integers(-9, 9, tuple(map(positions, window.dimensions, shape)))
    expected = selected(operand, source.astype(np.float32), 0.5, window)
    for monoid in ("add", None):
        result = select_and_scatter(
            operand,
            source.astype(np.float32),
            np.float32(0.5),
            select=Computation(np.greater_equal),
            scatter=Computation(np.add, monoid),
            window=window,
        )
        assert same_bits(result, expected)


def test_select_and_scatter_adds_exactly() -> None:
    """Three windows select the same element: 2**24 + 1 - 2**24, whatever the order."""
    operand = np.array([0, 9, 0, 0], np.float32)
    for source in ([2.0**24, 1, 0], [2.0**24, 1, -(2.0**24)], [1, -(2.0**24), 2.0**24]):
        result = select_and_scatter(
            operand,
            np.array(source, np.float32),
            np.float32(0),
            select=Computation(np.greater_equal),
            scatter=Computation(np.add, "add"),
            window=Window((WindowDimension(3, padding_low=1),)),
        )
        assert result[1] == np.float32(sum(source))


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_select_and_scatter_of_extremes_takes_no_rounds(dtype: type[np.generic]) -> None:
    """All windows select the same element, so there would be as many rounds as windows."""

    def refused(*operands: Array) -> Array:
        raise AssertionError("called for a round of updates")

    result = select_and_scatter(
        np.array([0, 9, 0, 0], dtype),
        np.array([3, 7, 5], dtype),
        np.array(-1, dtype),
        select=Computation(np.greater_equal),
        scatter=Computation(refused, "maximum"),
        window=Window((WindowDimension(3, padding_low=1),)),
    )
    assert result.tolist() == [-1, 7, -1, -1]


PROGRAM = """
HloModule sums
add { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT c = bf16[] add(a, b) }
wide_add {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  c = f32[] convert(a)
  d = f32[] convert(b)
  e = f32[] add(c, d)
  ROOT f = bf16[] convert(e)
}
ENTRY main {
  x = bf16[300] parameter(0)
  zero = bf16[] parameter(1)
  exact = bf16[] reduce(x, zero), dimensions={0}, to_apply=add
  steps = bf16[] reduce(x, zero), dimensions={0}, to_apply=wide_add
  ROOT both = (bf16[], bf16[]) tuple(exact, steps)
}
"""


def test_only_an_addition_alone_is_an_exact_sum() -> None:
    ones = np.ones(300, ELEMENT_TYPES["bf16"].numpy)
    exact, steps = evaluate(parse(PROGRAM), ones, ones[0] - ones[0])
    assert (float(exact), float(steps)) == (300.0, 256.0)  # 256 + 1 is 256 in bf16


EFFECTS = """
HloModule effects
chosen {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  s = u64[2] rng-get-and-update-state(), delta=1
  ROOT c = f32[] OP(a, b)
}
ENTRY main {
  x = f32[200] iota(), iota_dimension=0
  zero = f32[] constant(0)
  y = FOLD
  after = u64[2] rng-get-and-update-state(), delta=1
  ROOT both = (SHAPE, u64[2]) tuple(y, after)
}
"""
REDUCE = "reduce(x, zero), dimensions={0}, to_apply=chosen"
WINDOWS = "reduce-window(x, zero), window={size=2 pad=1_1 stride=3}, to_apply=chosen"


@pytest.mark.parametrize("opcode", ["add", "maximum", "subtract"])
@pytest.mark.parametrize(
    ("fold", "shape", "elements"), [(REDUCE, "f32[]", 200), (WINDOWS, "f32[67]", 133)]
)
def test_effects_happen_once_for_each_element(
    opcode: str, fold: str, shape: str, elements: int
) -> None:
    text = EFFECTS.replace("OP", opcode).replace("FOLD", f"{shape} {fold}").replace("SHAPE", shape)
    _, (draws, _) = evaluate(parse(text))
    assert draws == elements
    with pytest.raises(Unsupported, match="inside a computation that is called per element"):
        backend_c.compile(parse(text))


ENDLESS = """
HloModule endless
is_left {
  n = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(n), index=0
  zero = s32[] constant(0)
  ROOT more = pred[] compare(i, zero), direction=NE
}
less {
  n = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(n), index=0
  k = s32[] get-tuple-element(n), index=1
  j = s32[] subtract(i, k)
  ROOT next = (s32[], s32[]) tuple(j, k)
}
doubled {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  init = (s32[], s32[]) tuple(a, b)
  last = (s32[], s32[]) while(init), condition=is_left, body=less
  zero = s32[] get-tuple-element(last), index=0
  twice = s32[] add(b, b)
  ROOT next = s32[] subtract(twice, zero)
}
ENTRY main {
  x = s32[100] parameter(0)
  init = s32[] constant(2)
  ROOT y = s32[] reduce(x, init), dimensions={0}, to_apply=doubled
}
"""


def test_loops_run_for_states_that_there_are_alone() -> None:
    """The state before an element is a multiple of it; from any other the loop would pass 0 by."""
    elements = np.array([1] * 9 + [2] + [4] * 90, np.int32)
    assert evaluate(parse(ENDLESS), elements, fuel=10_000) == 8
