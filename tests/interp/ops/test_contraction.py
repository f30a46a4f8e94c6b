"""dot and convolution against rational arithmetic, bit for bit, and integers modulo 2**bits."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from fraction_sums import FLOATS, exact_sum, hard_arrays, rounded_quietly, same_bits
from hypothesis import given
from hypothesis import strategies as st
from judged_results import judged_by

import hlo
import interp
from hlo.attributes import ConvolutionDimensions, Window, WindowDimension
from hlo.types import (
    BF16,
    C64,
    C128,
    ELEMENT_TYPES,
    F16,
    F32,
    F64,
    PRED,
    S8,
    S32,
    S64,
    U64,
    ArrayShape,
    ElementType,
)
from hlo.values import Array
from interp.envelope.verdict import OUTSIDE
from interp.ops.contraction import convolution, dot
from interp.windows import elements_at, positions


def exact_product(one: Array, other: Array, element_type: ElementType) -> Any:
    """The sum of products, started at +0."""
    pairs = [(float(x), float(y)) for x, y in zip(one, other, strict=True)]
    if not all(math.isfinite(x) and math.isfinite(y) for x, y in pairs):
        signs = [math.copysign(x != 0, x) * math.copysign(y != 0, y) for x, y in pairs]
        special = [not math.isfinite(x) or not math.isfinite(y) for x, y in pairs]
        sums = [x * y if s else z for (x, y), z, s in zip(pairs, signs, special, strict=True)]
        return exact_sum(sums, element_type)
    total = sum((Fraction(x) * Fraction(y) for x, y in pairs), Fraction(0))
    return rounded_quietly(total, element_type)


def multiplied(lhs: Array, rhs: Array, element_type: ElementType) -> Array:
    """lhs[b, m, k] times rhs[b, k, n]."""
    return dot(
        lhs,
        rhs,
        shape=ArrayShape(element_type, (lhs.shape[0], lhs.shape[1], rhs.shape[2])),
        lhs_batch_dims=(0,),
        rhs_batch_dims=(0,),
        lhs_contracting_dims=(2,),
        rhs_contracting_dims=(1,),
    )


def expected_product(lhs: Array, rhs: Array, element_type: ElementType) -> Array:
    result = np.empty((*lhs.shape[:2], rhs.shape[2]), element_type.numpy)
    for b, i, j in np.ndindex(result.shape):
        result[b, i, j] = exact_product(lhs[b, i], rhs[b, :, j], element_type)
    return result


@given(data=st.data(), operands=st.sampled_from(FLOATS), element_type=st.sampled_from(FLOATS))
def test_products_of_floats(
    data: st.DataObject, operands: ElementType, element_type: ElementType
) -> None:
    if operands.bits > element_type.bits:
        element_type = operands
    b, m, k, n = (data.draw(st.integers(0, 4)) for _ in range(4))
    lhs = data.draw(hard_arrays(operands, (b, m, k)))
    rhs = data.draw(hard_arrays(operands, (b, k, n)))
    result = multiplied(lhs, rhs, element_type)
    assert same_bits(result, expected_product(lhs, rhs, element_type))


@given(data=st.data(), element_type=st.sampled_from(FLOATS))
def test_products_that_cancel(data: st.DataObject, element_type: ElementType) -> None:
    lhs = data.draw(hard_arrays(element_type, (1, 2, 5), finite=True))
    rhs = data.draw(hard_arrays(element_type, (1, 5, 2), finite=True))
    rest = data.draw(hard_arrays(element_type, (1, 2, 1), finite=True))
    minus = -rhs.astype(np.float64)
    left = np.concatenate((lhs, lhs, rest), axis=2)
    right = np.concatenate((rhs, minus.astype(rhs.dtype), rest.swapaxes(1, 2)), axis=1)
    result = multiplied(left, right, element_type)
    assert same_bits(result, expected_product(left, right, element_type))


@pytest.mark.parametrize("element_type", [F32, F64, BF16], ids=str)
def test_large_products(element_type: ElementType) -> None:
    """Large products are rounded once: of so many outputs some are close to a middle of two
    neighbours."""
    random = np.random.default_rng(3)
    lhs = random.standard_normal((1, 128, 300)).astype(element_type.numpy)
    rhs = random.standard_normal((1, 300, 96)).astype(element_type.numpy)
    result = multiplied(lhs, rhs, element_type)
    for i, j in random.integers(0, 96, (200, 2)):
        expected = exact_product(lhs[0, i], rhs[0, :, j], element_type)
        assert same_bits(result[0, i, j], expected)


@pytest.mark.parametrize("element_type", [F32, F64], ids=str)
def test_structured_data(element_type: ElementType) -> None:
    """Small multiples of a power of two: many exact zeros, which no error bound decides."""
    random = np.random.default_rng(4)
    lhs = (random.integers(-2, 3, (2, 300, 64)) / 2).astype(element_type.numpy)
    rhs = (random.integers(-2, 3, (2, 64, 300)) * 3).astype(element_type.numpy)
    exact = lhs.astype(np.float64) @ rhs.astype(np.float64) + 0.0
    assert same_bits(multiplied(lhs, rhs, element_type), exact.astype(element_type.numpy))


@pytest.mark.parametrize("element_type", [F32, F64, BF16], ids=str)
def test_middles_of_two_neighbours(element_type: ElementType) -> None:
    """1 + half a last bit, and so little more or less that no float64 sum sees it."""
    bits = {"f32": 24, "f64": 53, "bf16": 8}[element_type.name]
    for tiny, last in ((0.0, 0), (2.0**-126, 1), (-(2.0**-126), 0)):
        row = np.array([1.0, 2.0**-bits, tiny]).astype(element_type.numpy)
        result = multiplied(row[None, None], np.ones((1, 3, 1), row.dtype), element_type)
        assert float(result[0, 0, 0]) == 1 + last * 2.0 ** (1 - bits)


def test_a_subnormal_result_is_rounded_once() -> None:
    """2**-1075 and a little more: rounded to 53 bits first, it would be a tie."""
    lhs, rhs = np.array([2.0**-537, 2.0**-600]), np.array([2.0**-538, 2.0**-600])
    assert multiplied(lhs[None, None], rhs[None, :, None], F64)[0, 0, 0] == 2.0**-1074


@pytest.mark.parametrize("name", ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2fnuz", "f8e5m2"])
def test_a_bound_beyond_both_ends_of_the_type(name: str) -> None:
    """Where there is no infinity both ends are NaN, perhaps the same NaN."""
    row = np.array([[[1e30, -1e30, 1]]], np.float32)
    result = multiplied(row, np.ones((1, 3, 1), np.float32), ELEMENT_TYPES[name])
    assert float(result[0, 0, 0]) == 1


def test_what_slices_leave_out() -> None:
    row = np.array([1, -1, 2.0**-110, 2.0**-130])
    result = multiplied(row[None, None], np.ones((1, 4, 1)), F64)
    assert result[0, 0, 0] == 2.0**-110 + 2.0**-130


def test_padding_times_infinity_does_not_take_part() -> None:
    window = Window((WindowDimension(2, padding_low=1, padding_high=1, base_dilation=2),))
    result = convolution(
        np.array([[[2.0, 0.0]]], np.float32),
        np.array([[[np.inf, 1.0]]], np.float32),
        shape=ArrayShape(F32, (1, 1, 4)),
        dim_labels=ConvolutionDimensions(0, 1, (2,), 0, 1, (2,), 0, 1, (2,)),
        window=window,
    )
    assert same_bits(result, np.array([[[2, np.inf, 0, np.nan]]], np.float32))


def test_infinities_and_nan() -> None:
    lhs = np.array([[np.inf, 1, 0], [np.inf, 0, -np.inf], [np.nan, 0, 0], [1, 2, 3]], np.float32)
    rhs = np.array([[1, 0, 2], [1, 5, -np.inf], [1, 5, 1]], np.float32)
    result = multiplied(lhs[None], rhs[None], F32)[0]
    nan, inf = np.nan, np.inf
    expected = [[inf, nan, nan], [nan, nan, nan], [nan, nan, nan], [6, 25, -inf]]
    assert same_bits(result, np.array(expected, np.float32))


def test_the_empty_sum_and_a_zero_are_plus_zero() -> None:
    empty = multiplied(np.zeros((1, 2, 0), np.float32), np.zeros((1, 0, 3), np.float32), F32)
    assert same_bits(empty, np.zeros((1, 2, 3), np.float32))
    minus = np.full((1, 1, 1), -0.0, np.float32)
    for element_type in (F32, F64):
        values = minus.astype(element_type.numpy)
        assert same_bits(multiplied(values, values + 1, element_type), abs(values))


def test_dimensions_in_any_order() -> None:
    random = np.random.default_rng(5)
    lhs, rhs = random.integers(-9, 9, (2, 3, 4, 5, 6)), random.integers(-9, 9, (5, 7, 3, 2, 6))
    result = dot(
        lhs.astype(np.float32),
        rhs.astype(np.float32),
        shape=ArrayShape(F32, (5, 2, 4, 7)),
        lhs_batch_dims=(3, 0),
        rhs_batch_dims=(0, 3),
        lhs_contracting_dims=(4, 1),
        rhs_contracting_dims=(4, 2),
    )
    assert np.array_equal(result, np.einsum("abcde,dgbae->dacg", lhs, rhs))


@pytest.mark.parametrize("element_type", [C64, C128], ids=str)
def test_complex_products(element_type: ElementType) -> None:
    part = F32 if element_type is C64 else F64
    random = np.random.default_rng(6)
    values = random.standard_normal((2, 1, 3, 5, 2)) * 2.0 ** random.integers(-20, 20, 5)[:, None]
    parts = values.astype(part.numpy)
    lhs, rhs = (x[..., 0] + 1j * x[..., 1] for x in parts)
    rhs = rhs.swapaxes(1, 2)
    result = multiplied(lhs, rhs, element_type)
    for i, j in np.ndindex(3, 3):
        (a, b), (c, d) = ((x.real, x.imag) for x in (lhs[0, i], rhs[0, :, j]))
        real = exact_product(np.r_[a, b], np.r_[c, -d], part)
        imag = exact_product(np.r_[a, b], np.r_[d, c], part)
        assert (result[0, i, j].real, result[0, i, j].imag) == (real, imag)


@given(data=st.data(), name=st.sampled_from(["s4", "s8", "u8", "s32", "u32", "s64", "u64"]))
def test_integers_wrap(data: st.DataObject, name: str) -> None:
    operands = ELEMENT_TYPES[name]
    element_type = data.draw(st.sampled_from([operands, S32, S64, U64]))
    low = 0 if operands.kind == "unsigned" else -(2 ** (operands.bits - 1))
    number = st.integers(low, low + 2**operands.bits - 1)
    values = data.draw(st.lists(number, min_size=24, max_size=24))
    numbers = np.array(values, object).reshape(2, 1, 3, 4)
    lhs, rhs = (np.array(x.tolist(), operands.numpy) for x in numbers)
    exact = (numbers[0] @ numbers[1].swapaxes(1, 2)) % 2**element_type.bits
    if element_type.kind == "signed":
        exact = (exact + 2 ** (element_type.bits - 1)) % 2**element_type.bits
        exact = exact - 2 ** (element_type.bits - 1)
    result = multiplied(lhs, rhs.swapaxes(1, 2), element_type)
    assert result.dtype == element_type.numpy
    assert result.astype(object).tolist() == exact.tolist()


def test_pred_and_mixed_types() -> None:
    lhs = np.array([[[True, False], [False, False]]])
    assert multiplied(lhs, lhs, PRED).tolist() == [[[True, False], [False, False]]]
    assert multiplied(lhs, lhs, S32).tolist() == [[[1, 0], [0, 0]]]
    bytes_ = np.full((1, 1, 2), 127, np.int8)
    halves = np.full((1, 2, 1), 0.5, np.float16)
    assert multiplied(bytes_, halves, F32).tolist() == [[[127.0]]]
    assert multiplied(bytes_, halves.astype(BF16.numpy), F16).dtype == np.float16
    long = np.full((1, 1, 2), 2**62 + 1, np.int64)
    assert multiplied(long, halves, F64).tolist() == [[[2.0**62]]]


@st.composite
def spatial(draw: st.DrawFn) -> WindowDimension:
    return WindowDimension(
        size=draw(st.integers(1, 3)),
        stride=draw(st.integers(1, 2)),
        padding_low=draw(st.integers(-2, 3)),
        padding_high=draw(st.integers(-2, 3)),
        base_dilation=draw(st.integers(1, 3)),
        window_dilation=draw(st.integers(1, 2)),
        reversal=draw(st.booleans()),
    )


@st.composite
def convolutions(draw: st.DrawFn) -> Convolution:
    """Operands as [batch, feature, spatial...] and [input feature, output feature, spatial...]."""
    window = Window(tuple(draw(st.lists(spatial(), max_size=2))))
    extents = tuple(draw(st.integers(1, 4)) for _ in window.dimensions)
    groups, of_batches = draw(st.integers(1, 2)), draw(st.booleans())
    batch, feature = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    outputs = groups * draw(st.integers(1, 2))
    counts = (groups, 1) if of_batches else (1, groups)
    input_dims = (batch * counts[0], feature * counts[1], *extents)
    kernel_dims = (feature, outputs, *(d.size for d in window.dimensions))
    element_type = draw(st.sampled_from([F32, F64, BF16]))
    lhs = draw(hard_arrays(element_type, input_dims))
    rhs = draw(hard_arrays(element_type, kernel_dims))
    return Convolution(lhs, rhs, window, *counts, element_type)


class Convolution(NamedTuple):
    lhs: Array
    rhs: Array
    window: Window
    batch_groups: int
    feature_groups: int
    element_type: ElementType

    @property
    def result_dims(self) -> tuple[int, ...]:
        batch, outputs = len(self.lhs) // self.batch_groups, self.rhs.shape[1]
        return (batch, outputs, *map(positions, self.window.dimensions, self.lhs.shape[2:]))

    def products(self, n: int, o: int, place: tuple[int, ...]) -> list[tuple[Any, Any]]:
        """The pairs whose products make up one output."""
        group = o * max(self.batch_groups, self.feature_groups) // self.rhs.shape[1]
        image = n + (group * self.result_dims[0] if self.batch_groups > 1 else 0)
        first = group * len(self.rhs) if self.feature_groups > 1 else 0
        pairs = []
        for offsets in np.ndindex(*self.rhs.shape[2:]):
            dims = self.window.dimensions
            found = list(map(elements_at, dims, self.lhs.shape[2:], offsets))
            if all(inside[p] for p, (_, inside) in zip(place, found, strict=True)):
                source = tuple(index[p] for p, (index, _) in zip(place, found, strict=True))
                there = zip(dims, offsets, strict=True)
                offset = tuple(d.size - 1 - i if d.reversal else i for d, i in there)
                for c in range(len(self.rhs)):
                    pairs.append((self.lhs[image, first + c, *source], self.rhs[c, o, *offset]))
        return pairs


@given(data=st.data(), drawn=convolutions())
def test_convolution_by_its_definition(data: st.DataObject, drawn: Convolution) -> None:
    orders = [data.draw(st.permutations(range(drawn.lhs.ndim))) for _ in range(3)]
    dims, element_type = drawn.result_dims, drawn.element_type
    result = convolution(
        np.transpose(drawn.lhs, np.argsort(orders[0])),
        np.transpose(drawn.rhs, np.argsort(orders[1])),
        shape=ArrayShape(element_type, tuple(dims[i] for i in np.argsort(orders[2]))),
        dim_labels=ConvolutionDimensions(
            *(part for order in orders for part in (order[0], order[1], tuple(order[2:])))
        ),
        window=drawn.window,
        feature_group_count=drawn.feature_groups,
        batch_group_count=drawn.batch_groups,
    ).transpose(orders[2])
    assert result.shape == dims
    for n, o, *place in np.ndindex(dims):
        pairs = drawn.products(n, o, tuple(place))
        one, other = zip(*pairs, strict=True) if pairs else ((), ())
        assert same_bits(result[n, o, *place], exact_product(one, other, element_type))


def test_integer_convolution_wraps() -> None:
    lhs = np.arange(-8, 8, dtype=np.int8).reshape(1, 4, 4, 1) * np.int8(9)
    rhs = np.full((2, 2, 1, 1), 11, np.int8)
    labels = ConvolutionDimensions(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2))
    window = Window((WindowDimension(2),) * 2)
    result = convolution(
        lhs, rhs, shape=ArrayShape(S8, (1, 3, 3, 1)), dim_labels=labels, window=window
    )
    wide = lhs[0, :, :, 0].astype(np.int64) * 11
    sums = wide[:-1, :-1] + wide[:-1, 1:] + wide[1:, :-1] + wide[1:, 1:]
    assert np.array_equal(result[0, :, :, 0], sums.astype(np.int8))


@pytest.mark.parametrize("limit", [1, 50, 4000])
def test_products_in_several_pieces(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    random = np.random.default_rng(8)
    for dtype, element_type in ((np.float32, F32), (np.float64, F64), (np.int64, S64)):
        lhs = random.integers(-(2**20), 2**20, (3, 17, 9)).astype(dtype)
        rhs = random.integers(-(2**20), 2**20, (3, 9, 15)).astype(dtype)
        whole = multiplied(lhs, rhs, element_type)
        with monkeypatch.context() as patch:
            for name in ("_OUTPUTS", "_SLICED_OUTPUTS", "_CHECKED", "_GATHERED", "_GATHERED_DEPTH"):
                patch.setattr(f"interp.exact.dots.{name}", limit)
            patch.setattr("interp.exact.dots._DEPTH", max(1, limit // 16))
            patch.setattr("interp.exact.sliced_dots._ELEMENTS", limit)
            patch.setattr("interp.exact.integer_dots._RESULTS", limit)
            patch.setattr("interp.exact.integer_dots._DEPTH", 4)
            assert same_bits(multiplied(lhs, rhs, element_type), whole)


def test_a_convolution_in_several_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(7)
    lhs = random.standard_normal((3, 9, 8, 4)).astype(np.float32)
    rhs = random.standard_normal((3, 3, 4, 5)).astype(np.float32)

    def convolved() -> Array:
        return convolution(
            lhs,
            rhs,
            shape=ArrayShape(F32, (3, 9, 8, 5)),
            dim_labels=ConvolutionDimensions(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2)),
            window=Window((WindowDimension(3, padding_low=1, padding_high=1),) * 2),
        )

    whole = convolved()
    for limit in (10_000, 700, 1):
        monkeypatch.setattr("interp.ops.contraction._PATCHES", limit)
        assert same_bits(convolved(), whole)


@pytest.mark.parametrize("types", [("f32", "c64"), ("c64", "f32")])
def test_a_real_factor_has_an_imaginary_part_of_zero(types: tuple[str, str]) -> None:
    """It meets an infinity, as XLA:CPU computes it, too."""
    text = f"""ENTRY e {{
      x = {types[0]}[1] parameter(0)
      y = {types[1]}[1] parameter(1)
      ROOT r = c64[] dot(x, y), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
    }}"""
    factors = {
        "f32": np.array([2], np.float32),
        "c64": np.array([complex(1, np.inf)], np.complex64),
    }
    module, arguments = hlo.parse(text), [factors[name] for name in types]
    result = interp.evaluate(module, *arguments)
    assert np.isnan(result.real) and result.imag == np.inf
    legal = judged_by("xla-cpu", module, arguments, [np.array(complex(2, np.inf), np.complex64)])
    assert not legal.counts.get(OUTSIDE)
