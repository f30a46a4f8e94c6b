"""Every integer operation against Python's integers; floats against their definitions."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from hlo.errors import Unsupported
from hlo.types import BF16, ELEMENT_TYPES, F16, F32, F64, S8, U8, ArrayShape, ElementType
from interp.exact.rounding import rounded_fraction
from interp.ops import elementwise

INTEGERS = [t for t in ELEMENT_TYPES.values() if t.is_integer]
FLOATS = [t for t in ELEMENT_TYPES.values() if t.is_float]
IEEE = [t for t in FLOATS if t.name in ("f64", "f32", "f16", "bf16", "f8e5m2", "f8e4m3", "f8e3m4")]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):  # the evaluator's place to say so
        yield


def interesting(t: ElementType) -> list[int]:
    """All values of narrow types; of wide ones the edges and some between."""
    low, high = limits(t)
    if t.bits <= 8:
        return list(range(low, high + 1, 1 if t.bits < 8 else 7)) + [high, 0]
    some = {0, 1, 2, 3, 5, 31, 32, 33, 63, 64, 65, 12345, high, high - 1, high // 3, low, low + 1}
    return sorted(some | ({-1, -2, -3, -7} if low else set()))


def limits(t: ElementType) -> tuple[int, int]:
    return (
        (-(2 ** (t.bits - 1)), 2 ** (t.bits - 1) - 1) if t.kind == "signed" else (0, 2**t.bits - 1)
    )


def wrap(value: int, t: ElementType) -> int:
    low, _ = limits(t)
    return (value - low) % 2**t.bits + low


def as_array(values: list[int], t: ElementType) -> np.ndarray:
    wide = np.array(values, np.int64 if t.kind == "signed" else np.uint64)
    return (
        wide.astype(np.int8 if t.kind == "signed" else np.uint8).astype(t.numpy)
        if (t.bits < 8)
        else wide.astype(t.numpy)
    )


def as_ints(array: np.ndarray, t: ElementType) -> list[int]:
    wide = array.astype(np.int8 if t.kind == "signed" else np.uint8) if t.bits < 8 else array
    return [int(x) for x in wide]


def divided(a: int, b: int, t: ElementType) -> int:
    return -1 if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


def remaining(a: int, b: int, t: ElementType) -> int:
    return a if b == 0 else int(math.copysign(1, a)) * (abs(a) % abs(b))


def powered(a: int, b: int, t: ElementType) -> int:
    if b >= 0:
        return pow(a, b, 2**t.bits)
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


def shifted_left(a: int, b: int, t: ElementType) -> int:
    amount = b % 2**t.bits
    return 0 if amount >= t.bits else a << amount


def shifted_right(a: int, b: int, t: ElementType) -> int:
    return (a % 2**t.bits) >> min(b % 2**t.bits, t.bits)


def shifted_right_arithmetic(a: int, b: int, t: ElementType) -> int:
    signed = a - 2**t.bits if a >= 2 ** (t.bits - 1) else a
    return signed >> min(b % 2**t.bits, t.bits)


BINARY: dict[str, Callable[[int, int, ElementType], int]] = {
    "add": lambda a, b, t: a + b,
    "subtract": lambda a, b, t: a - b,
    "multiply": lambda a, b, t: a * b,
    "maximum": lambda a, b, t: max(a, b),
    "minimum": lambda a, b, t: min(a, b),
    "and_": lambda a, b, t: a & b,
    "or_": lambda a, b, t: a | b,
    "xor": lambda a, b, t: a ^ b,
    "divide": divided,
    "remainder": remaining,
    "power": powered,
    "shift_left": shifted_left,
    "shift_right_logical": shifted_right,
    "shift_right_arithmetic": shifted_right_arithmetic,
    "mulhi": lambda a, b, t: (a * b) >> t.bits,
}
UNARY: dict[str, Callable[[int, ElementType], int]] = {
    "abs_": lambda a, t: abs(a),
    "negate": lambda a, t: -a,
    "not_": lambda a, t: ~a,
    "sign": lambda a, t: (a > 0) - (a < 0),
    "popcnt": lambda a, t: (a % 2**t.bits).bit_count(),
    "count_leading_zeros": lambda a, t: t.bits - (a % 2**t.bits).bit_length(),
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("t", INTEGERS, ids=str)
def test_integers_of_two(name: str, t: ElementType) -> None:
    pairs = list(itertools.product(interesting(t), repeat=2))
    lhs, rhs = (as_array([pair[i] for pair in pairs], t) for i in (0, 1))
    result = getattr(elementwise, name)(lhs, rhs)
    assert result.dtype == t.dtype
    expected = [wrap(BINARY[name](a, b, t), t) for a, b in pairs]
    wrong = [(p, r, e) for p, r, e in zip(pairs, as_ints(result, t), expected) if r != e]
    assert not wrong


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("t", INTEGERS, ids=str)
def test_integers_of_one(name: str, t: ElementType) -> None:
    values = interesting(t)
    result = getattr(elementwise, name)(as_array(values, t))
    assert result.dtype == t.dtype
    assert as_ints(result, t) == [wrap(UNARY[name](a, t), t) for a in values]


SPECIAL = [0.0, -0.0, 1.0, -1.0, 1.5, 2.5, -2.5, 0.5, -0.5, 0.125, np.inf, -np.inf, np.nan, 3.0]


def floats(t: ElementType) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array(list(itertools.product(SPECIAL, repeat=2))).astype(t.numpy)
    return pairs[:, 0], pairs[:, 1]


def bits_of(array: np.ndarray) -> list[str]:
    return [repr(float(x)) for x in array.astype(np.float64)]


@pytest.mark.parametrize("t", IEEE, ids=str)
def test_maximum_and_minimum_of_floats(t: ElementType) -> None:
    lhs, rhs = floats(t)
    key = [(math.isnan(float(x)), float(x), math.copysign(1, float(x))) for x in lhs]
    other = [(math.isnan(float(x)), float(x), math.copysign(1, float(x))) for x in rhs]

    def chosen(pick: Callable[..., tuple[bool, float, float]]) -> list[str]:
        nan = (True, math.nan, 1.0)
        return [repr((nan if a[0] or b[0] else pick(a, b))[1]) for a, b in zip(key, other)]

    assert bits_of(elementwise.maximum(lhs, rhs)) == chosen(max)
    assert bits_of(elementwise.minimum(lhs, rhs)) == chosen(min)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
@pytest.mark.parametrize("t", [t for t in IEEE if t.bits == 8], ids=str)
def test_all_pairs_of_narrow_floats_round_once(name: str, t: ElementType) -> None:
    """float64 is exact enough for + - *; divide is checked against the neighbours."""
    codes = np.arange(256, dtype=np.uint8).view(t.numpy)
    lhs, rhs = np.repeat(codes, 256), np.tile(codes, 256)
    result = getattr(elementwise, name)(lhs, rhs).astype(np.float64)
    function = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}
    wide = lhs.astype(np.float64), rhs.astype(np.float64)
    exact = function.get(name, np.divide)(*wide)
    table = np.unique(codes.astype(np.float64)[np.isfinite(codes.astype(np.float64))])
    inside = np.abs(exact) <= table[-1]
    nearest = np.abs(table[:, None] - exact[inside][None, :]).min(0)
    assert np.array_equal(np.abs(result[inside] - exact[inside]), nearest)


@pytest.mark.parametrize("t", [F16, BF16, F32, F64], ids=str)
def test_rounding_functions(t: ElementType) -> None:
    x = np.array([0.49999997, 0.5, -0.5, 1.5, 2.5, -2.5, -0.0, -0.2, np.inf, 7.0], t.numpy)
    assert bits_of(elementwise.round_nearest_even(x))[1:6] == ["0.0", "-0.0", "2.0", "2.0", "-2.0"]
    away = bits_of(elementwise.round_nearest_afz(x))
    assert away[1:] == ["1.0", "-1.0", "2.0", "3.0", "-3.0", "-0.0", "-0.0", "inf", "7.0"]
    assert away[0] == ("0.0" if t in (F32, F64) else "1.0")  # narrower types store 0.5
    assert bits_of(elementwise.floor(x))[2:4] == ["-1.0", "1.0"]
    assert bits_of(elementwise.ceil(x))[6:8] == ["-0.0", "-0.0"]
    assert bits_of(elementwise.sign(x))[6:9] == ["-0.0", "-1.0", "1.0"]


def test_compare() -> None:
    x = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], np.float32)
    x[0] = np.uint32(0xFFC00000).view(np.float32)
    for i, j in itertools.product(range(8), repeat=2):
        lhs, rhs = x[i : i + 1], x[j : j + 1]
        assert elementwise.compare(lhs, rhs, direction="LT", type="TOTALORDER")[0] == (i < j)
        assert elementwise.compare(lhs, rhs, direction="EQ", type="TOTALORDER")[0] == (i == j)
        assert elementwise.compare(lhs, rhs, direction="GE")[0] == (lhs[0] >= rhs[0])
    assert elementwise.compare(x[3:4], x[4:5], direction="EQ")[0]
    assert elementwise.compare(x[:1], x[:1], direction="NE")[0]


@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_floats_to_integers_saturate(source: ElementType) -> None:
    values = np.array([0.0, 1.5, 2.0, 1e30, -1e30, np.inf, -np.inf, np.nan, -1.75]).astype(
        source.numpy
    )
    for t in INTEGERS:
        low, high = limits(t)
        result = as_ints(elementwise.convert(values, shape=ArrayShape(t, (9,))), t)
        for value, integer in zip(values.astype(np.float64), result):
            expected = 0 if math.isnan(value) else min(max(value, low), high)
            assert integer == (int(expected)), (value, t)


def test_other_conversions() -> None:
    to = lambda x, t: elementwise.convert(np.array(x), shape=ArrayShape(ELEMENT_TYPES[t], ()))  # noqa: E731
    assert to(np.nan, "pred") and not to(-0.0, "pred") and to(np.int32(256), "pred")
    assert to(np.int32(300), "u8") == 44
    assert to(np.int32(-9), "s4") == 7
    assert to(np.bool_(True), "bf16") == 1
    assert to(np.complex64(2 + 3j), "c128") == 2 + 3j
    assert to(np.float32(2), "c64") == 2
    assert to(np.int64(2**53 + 1), "f64") == 2.0**53
    assert np.isnan(to(465.0, "f8e4m3fn").astype(np.float32))
    assert to(464.0, "f8e4m3fn") == 448
    # float32 would make this the middle of two bf16, and that 1.0
    assert to(1 + 2.0**-8 + 2.0**-40, "bf16").astype(np.float64) == 1 + 2.0**-7


def test_reduce_precision_to_another_type_is_that_type() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32)
    x[:6] = [0, -0.0, np.inf, -np.inf, np.nan, 65520]
    for t, exponent, mantissa in ((F16, 5, 10), (BF16, 8, 7)):
        stored = x.astype(t.numpy).astype(np.float32)
        normal = float(ml_dtypes.finfo(t.numpy).smallest_normal)
        tiny = (np.abs(stored) < normal) & (exponent < 8)  # else it keeps subnormals
        near = np.abs(np.abs(x) / normal - 1) < 0.01
        expected = np.where(tiny, np.copysign(np.float32(0), x), stored)
        result = elementwise.reduce_precision(x, exponent_bits=exponent, mantissa_bits=mantissa)
        agree = (result.view(np.uint32) == expected.view(np.uint32)) | (result != result) | near
        assert np.all(agree)
    assert elementwise.reduce_precision(x[4:5], exponent_bits=8, mantissa_bits=0)[0] == np.inf


def test_stochastic_convert_rounds_up_below_the_fraction() -> None:
    x = np.array([1.25, 1.25, -1.25, -1.25, np.nan, 1e9, -np.inf, 127.5], np.float32)
    quarter = 2**30
    random = np.array([quarter - 1, quarter, quarter - 1, quarter, 0, 0, 0, 0], np.uint32)
    shape = ArrayShape(S8, (8,))
    result = elementwise.stochastic_convert(x, random, shape=shape)
    assert list(result) == [2, 1, -2, -1, 0, 127, -128, 127]


def test_complex_products_round_each_component_once() -> None:
    tiny = np.float32(2**-12)
    lhs = np.array([complex(1 + tiny, 1)], np.complex64)
    rhs = np.array([complex(1 + tiny, 1)], np.complex64)
    # (1 + t)**2 - 1 = 2t + t**2: float32 rounds (1 + t)**2 to 1 + 2t
    assert elementwise.multiply(lhs, rhs)[0].real == np.float32(2 * float(tiny) + float(tiny) ** 2)
    z = elementwise.complex_(np.float32([1]), np.float32([-0.0]))
    assert z.dtype == np.complex64 and np.signbit(z.imag[0])
    assert elementwise.imag(np.float32([3]))[0] == 0


def test_complex_magnitudes_and_quotients_round_once() -> None:
    rng = np.random.default_rng(3)
    parts = (rng.standard_normal((4, 500)) * 10.0 ** rng.integers(-20, 18, (4, 500))).astype(
        F32.numpy
    )
    parts[:, :200] = rng.integers(-9, 9, (4, 200))
    a, b, c, d = (list(map(Fraction, map(float, part))) for part in parts)
    lhs, rhs = (elementwise.complex_(parts[i], parts[i + 1]) for i in (0, 2))
    quotient, size = elementwise.divide(lhs, rhs), elementwise.abs_(lhs)
    unit = elementwise.sign(lhs)
    assert np.all((np.abs(np.hypot(unit.real, unit.imag) - 1) < 1e-6) | (lhs == 0))
    assert np.all(
        (np.sign(unit.real) == np.sign(lhs.real)) | (abs(lhs.imag) > 1e30 * abs(lhs.real))
    )
    for i in range(500):
        divisor = c[i] ** 2 + d[i] ** 2
        if divisor:
            real = (a[i] * c[i] + b[i] * d[i]) / divisor
            imag = (b[i] * c[i] - a[i] * d[i]) / divisor
            assert quotient[i].real == rounded_fraction(real, F32)
            assert quotient[i].imag == rounded_fraction(imag, F32)
        below, above = (float(np.nextafter(size[i], F32.numpy.type(to))) for to in (0, np.inf))
        square, r = a[i] ** 2 + b[i] ** 2, Fraction(float(size[i]))
        assert ((Fraction(below) + r) / 2) ** 2 <= square <= ((Fraction(above) + r) / 2) ** 2
    assert elementwise.abs_(np.array([complex(np.nan, -np.inf)], np.complex64))[0] == np.inf


def test_complex_products_of_f64() -> None:
    rng = np.random.default_rng(4)
    values = rng.standard_normal((4, 200)) * 10.0 ** rng.integers(-150, 150, (4, 200))
    a, b, c, d = (list(map(Fraction, map(float, part))) for part in values)
    lhs, rhs = (elementwise.complex_(values[i], values[i + 1]) for i in (0, 2))
    product = elementwise.multiply(lhs, rhs)
    for i in range(200):
        assert product[i].real == rounded_fraction(a[i] * c[i] - b[i] * d[i], F64)
        assert product[i].imag == rounded_fraction(a[i] * d[i] + b[i] * c[i], F64)
    minus = elementwise.multiply(np.array([complex(-1, 0)]), np.array([complex(0, 0)]))[0]
    assert np.signbit(minus.real) and not np.signbit(minus.imag)


def test_clamp_and_select() -> None:
    x = np.array([-5, 0, 5, np.nan], np.float32)
    low, high = np.float32(-1), np.float32(1)
    clamped = elementwise.clamp(np.asarray(low), x, np.asarray(high))
    assert bits_of(clamped) == ["-1.0", "0.0", "1.0", "nan"]
    crossed = elementwise.clamp(np.asarray(high), x, np.asarray(low))
    assert bits_of(crossed)[:3] == ["-1.0"] * 3
    assert list(elementwise.select(np.asarray(True), x, -x)[:3]) == [-5, 0, 5]


def test_kinds_without_a_meaning_are_refused() -> None:
    with pytest.raises(Unsupported, match="no meaning on u8"):
        elementwise.floor(np.zeros(1, U8.numpy))
