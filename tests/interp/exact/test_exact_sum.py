"""Sums against rational arithmetic: every bit, for every kind of collection."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fraction_sums import FLOATS, exact_sum, hard_arrays, same_bits
from hypothesis import given
from hypothesis import strategies as st

from hlo.attributes import WindowDimension
from hlo.types import BF16, C64, C128, F16, F32, F64, ElementType
from interp.exact.sums import segment_sum, sum_along, window_sum
from interp.windows import elements_at, positions


@given(data=st.data(), element_type=st.sampled_from(FLOATS))
def test_sums_along_dimensions(data: st.DataObject, element_type: ElementType) -> None:
    shape = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple))
    values = data.draw(hard_arrays(element_type, shape))
    init = data.draw(hard_arrays(element_type, ()))
    axes = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1))))
    result = sum_along(values, axes, init, element_type)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    expected = np.empty([shape[axis] for axis in kept], element_type.numpy)
    arranged = values.transpose(*kept, *axes)
    for index in np.ndindex(expected.shape):
        expected[index] = exact_sum([init, *arranged[index].ravel()], element_type)
    assert same_bits(result, expected)


@given(data=st.data(), element_type=st.sampled_from(FLOATS))
def test_cancellation(data: st.DataObject, element_type: ElementType) -> None:
    """Rows that have each number with both signs, and a few more, are added exactly and rounded
    once: what is left is far below the largest."""
    values = data.draw(hard_arrays(element_type, (3, 7), finite=True))
    rest = data.draw(hard_arrays(element_type, (3, 1), finite=True))
    signed = -values.astype(np.float64)
    row = np.concatenate((values, signed.astype(element_type.numpy), rest), axis=1)
    order = data.draw(st.permutations(range(row.shape[1])))
    zero = np.zeros((), element_type.numpy)
    result = sum_along(row[:, order], (1,), zero, element_type)
    expected = [exact_sum([0.0, *numbers], element_type) for numbers in row]
    assert same_bits(result, np.array(expected))


@pytest.mark.parametrize("element_type", [F64, F32, F16, BF16], ids=str)
def test_middles_of_two_neighbours(element_type: ElementType) -> None:
    """1 + half a last bit, and so little more or less than half that float64 does not see it."""
    with np.errstate(all="ignore"):
        one = np.ones((), element_type.numpy)
        bits = one.view(f"u{one.itemsize}") + 1
        half = (bits.view(one.dtype).astype(np.float64) - 1) / 2
    tiny = np.float64(half) / 4 if element_type is F16 else 2.0**-120
    for rest in (tiny, -tiny, 0.0):
        addends = np.array([1.0, half, rest]).astype(element_type.numpy)
        result = sum_along(addends, (0,), np.zeros((), addends.dtype), element_type)
        assert same_bits(result, np.array(exact_sum(addends, element_type)))


MAX = np.finfo(np.float64).max


@pytest.mark.parametrize(
    ("addends", "expected"),
    [
        ([MAX, MAX, -MAX], MAX),
        ([MAX, 2.0**969, 2.0**968], MAX),
        ([MAX, 2.0**969, 2.0**969], math.inf),
        ([MAX, 2.0**970, -5e-324], MAX),
        ([-MAX, -MAX, -MAX, MAX], -math.inf),
        ([MAX, MAX, -math.inf], -math.inf),
        ([math.inf, 1.0, -math.inf], math.nan),
        ([5e-324, 2.0**-1022, -(2.0**-1022)], 5e-324),
        ([1.0, 2.0**-53, 5e-324], 1.0 + 2.0**-52),
        ([-0.0, -0.0], -0.0),
        ([-0.0, 0.0], 0.0),
        ([1.0, -1.0], 0.0),
    ],
)
def test_f64_at_its_ends(addends: list[float], expected: float) -> None:
    first, *rest = addends
    for values, init in ((rest, first), (rest[::-1], first)):
        result = sum_along(np.array(values), (0,), np.array(init), F64)
        assert same_bits(result, np.array(expected))
        ids = np.zeros(len(values), np.int64)
        result = segment_sum(np.array(values), ids, 1, np.array([init]), F64)
        assert same_bits(result, np.array([expected]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (0, 2), (1, 2)])
def test_more_elements_than_one_piece(dtype: type[np.generic], axes: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    values = (random.standard_normal((33, 70, 130)) * 2.0 ** random.integers(-40, 40, 130)).astype(
        dtype
    )
    element_type = F32 if dtype is np.float32 else F64
    result = sum_along(values, axes, np.zeros((), dtype), element_type)
    kept = [axis for axis in range(3) if axis not in axes]
    rows = values.transpose(*kept, *axes).reshape(*result.shape, -1).astype(np.float64)
    expected = np.apply_along_axis(math.fsum, -1, rows)
    assert same_bits(result, np.asarray(expected).astype(dtype))  # fsum is correctly rounded


def test_sums_that_the_bound_cannot_decide() -> None:
    ones = np.tile(np.array([1, -1], np.float32), (600, 4000))
    assert same_bits(sum_along(ones, (1,), np.float32(-0.0), F32), np.zeros(600, np.float32))
    long = np.tile(np.array([1, -1], np.float32), 3_000_000)
    assert sum_along(long, (0,), np.float32(2.0**-149), F32) == np.float32(2.0**-149)


def test_complex_sums_by_component() -> None:
    values = np.array([1 + 1e8j, 2.0**-60 - 1e8j, -1 + 1j], np.complex64)
    assert sum_along(values, (0,), np.complex64(0), C64) == np.complex64(2.0**-60 + 1j)
    wide = values.astype(np.complex128)
    assert sum_along(wide, (0,), np.complex128(0), C128) == 2.0**-60 + 1j


@given(data=st.data(), element_type=st.sampled_from(FLOATS))
def test_sums_of_segments(data: st.DataObject, element_type: ElementType) -> None:
    number, columns, count = (data.draw(st.integers(0, 6)) for _ in range(3))
    count += 1
    values = data.draw(hard_arrays(element_type, (number, columns)))
    init = data.draw(hard_arrays(element_type, (count, columns)))
    segment = st.integers(0, count - 1)
    ids = np.array(data.draw(st.lists(segment, min_size=number, max_size=number)), np.int64)
    result = segment_sum(values, ids, count, init, element_type)
    expected = init.copy()
    for s, c in np.ndindex(count, columns):
        if (ids == s).any():
            expected[s, c] = exact_sum([init[s, c], *values[ids == s, c]], element_type)
    assert same_bits(result, expected)


@st.composite
def windows(draw: st.DrawFn) -> WindowDimension:
    return WindowDimension(
        size=draw(st.integers(1, 5)),
        stride=draw(st.integers(1, 3)),
        padding_low=draw(st.integers(-3, 5)),
        padding_high=draw(st.integers(-3, 5)),
        base_dilation=draw(st.integers(1, 3)),
        window_dilation=draw(st.integers(1, 3)),
    )


@given(data=st.data(), element_type=st.sampled_from(FLOATS))
def test_sums_over_windows(data: st.DataObject, element_type: ElementType) -> None:
    shape = data.draw(st.lists(st.integers(0, 4), max_size=2).map(tuple))
    values = data.draw(hard_arrays(element_type, shape))
    init = data.draw(hard_arrays(element_type, ()))
    drawn = [data.draw(windows()) for _ in shape]
    result = window_sum(values, drawn, init, element_type)
    expected = np.empty(tuple(map(positions, drawn, shape)), element_type.numpy)
    for index in np.ndindex(expected.shape):
        addends = [init]
        for offsets in np.ndindex(*(w.size for w in drawn)):
            found = list(map(elements_at, drawn, shape, offsets))
            if all(inside[i] for i, (_, inside) in zip(index, found, strict=True)):
                addends.append(values[tuple(e[i] for i, (e, _) in zip(index, found, strict=True))])
        expected[index] = exact_sum(addends, element_type)
    assert same_bits(result, expected)


def test_a_window_as_long_as_the_array() -> None:
    """Prefix sums: the time must not depend on the size of the window."""
    size = 100_000
    values = np.random.default_rng(2).standard_normal(size).astype(np.float32)
    window = WindowDimension(size, padding_low=size - 1)
    result = window_sum(values, [window], np.float32(0), F32)
    some = [0, 1, 17, 999, 50_000, size - 1]
    expected = [math.fsum(values[: i + 1].astype(np.float64)) for i in some]
    assert same_bits(result[some], np.array(expected, np.float32))
