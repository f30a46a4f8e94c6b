"""Constants: values and braces, one rounding, NaNs, sizes."""

from __future__ import annotations

import struct
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cost import cost
from hypothesis import example, given
from hypothesis import strategies as st

from hlo.literal import Literal
from hlo.text.literals import LiteralError, read_literal, show_literal
from hlo.types import ELEMENT_TYPES, ArrayShape, TupleShape


def shape(name: str, *dims: int) -> ArrayShape:
    return ArrayShape(ELEMENT_TYPES[name], dims)


def read(name: str, dims: tuple[int, ...], text: str) -> np.ndarray[Any, Any]:
    value = read_literal(shape(name, *dims), text).value
    assert isinstance(value, np.ndarray)
    assert not value.flags.writeable
    assert (value.shape, value.dtype) == (dims, ELEMENT_TYPES[name].dtype)
    return value


@pytest.mark.parametrize(
    ("name", "dims", "text", "expected"),
    [
        ("s32", (), " -7 ", -7),
        ("u64", (), "18446744073709551615", 2**64 - 1),
        ("s64", (2,), "{-9223372036854775808, 9223372036854775807}", [-(2**63), 2**63 - 1]),
        ("s4", (3,), "{-8,7 0}", [-8, 7, 0]),
        ("pred", (4,), "{true, 0, 1, -3}", [True, False, True, True]),
        ("f32", (2, 2), "{ { 1, 2. }, { -3e1, 4.5E+0 } }", [[1, 2], [-30, 4.5]]),
        ("f32", (2, 2), "{ /*i0=0*/ {1,2} /*i0=1*/ {3,4} }", [[1, 2], [3, 4]]),
        ("f32", (2,), "{inf, -inf}", [np.inf, -np.inf]),
        ("c64", (2,), "{(1, -2), ( 3 , inf )}", [1 - 2j, complex(3, np.inf)]),
        ("c128", (), "(0.1, 0)", 0.1 + 0j),
        ("f32", (0, 3), "{}", np.zeros((0, 3))),
        ("f32", (3, 0), "{{}, {}, {}}", np.zeros((3, 0))),
        ("f32", (3, 0), "{}", np.zeros((3, 0))),
        ("f32", (2, 0, 3), "{{}, {}}", np.zeros((2, 0, 3))),
        ("f32", (10**12, 0), "{}", np.zeros((10**12, 0))),
    ],
)
def test_values(name: str, dims: tuple[int, ...], text: str, expected: object) -> None:
    np.testing.assert_array_equal(read(name, dims, text), np.array(expected))


@pytest.mark.parametrize(
    ("name", "dims", "text", "message", "position"),
    [
        ("f32", (2, 3), "{{1,2},{3,4,5,6}}", "expected 3 elements in each row", 1),
        ("f32", (2, 2), "{{1,2,3,4}}", "expected braces {{…}} around 2x2 elements", 0),
        ("f32", (2, 2), "{1,2,3,4}", "expected braces", 0),
        ("f32", (2,), "{{1,2}}", "expected braces", 0),
        ("f32", (2,), "{1,2", "expected braces", 0),
        ("f32", (2,), "1,2", "expected braces", 0),
        ("f32", (2,), "{1} 2", "expected braces", 0),
        ("f32", (), "{1}", "expected no braces", 0),
        ("f32", (), "", "expected 1 element for f32[], found 0", 0),
        ("f32", (2,), "{1, 2-3}", "expected a number", 4),
        ("f32", (3,), "{1, x, 3}", "expected a number", 4),
        ("f32", (10**12,), "{1}", "expected 1000000000000 elements", 0),
        ("f32", (10**12, 10**12), "{}", "more bytes than 64 bits count", 0),
        ("s8", (3,), "{1, 128, 3}", "value 128 is out of range for s8, namely [-128, 127]", 4),
        ("f16", (2,), "{1, 65520}", "value 65520 is out of range for f16", 4),
        ("c64", (2,), "{(1, 2), (3, 1e39)}", "value 1e39 is out of range", 13),
        ("c64", (1,), "{1}", "expected a complex number (re, im)", 1),
        ("f4e2m1fn", (), "nan", "f4e2m1fn has no NaN", 0),
        ("f8e8m0fnu", (2,), "{1, -1}", "f8e8m0fnu has no -1", 4),
        ("f8e4m3fn", (), "nan(0x3)", "payload", 0),
        ("s32", (), "9" * 5000, "expected an integer", 0),
        ("token", (), "1", "cannot be of type token", 0),
    ],
)  # fmt: skip
def test_what_is_wrong_and_where(
    name: str, dims: tuple[int, ...], text: str, message: str, position: int
) -> None:
    with pytest.raises(LiteralError) as caught:
        read_literal(shape(name, *dims), text)
    assert message in str(caught.value)
    assert caught.value.position == position


def test_tuples() -> None:
    both = TupleShape((shape("s32"), TupleShape((shape("pred", 2), TupleShape()))))
    literal = read_literal(both, "(1, ({true, 0}, ()))")
    assert read_literal(both, show_literal(literal)) == literal
    assert show_literal(literal) == "(1, ({1, 0}, ()))"
    for text in ("1", "(1)", "(1, ({1, 0}, ()), 2)", "(1, ({1}, ()))", "(1, ({1, 0}, ())", "() 1"):
        with pytest.raises(LiteralError):
            read_literal(both, text)


NARROW = [name for name, t in ELEMENT_TYPES.items() if t.is_float and t.bits <= 16]


def finite_values(name: str) -> list[float]:
    """All finite values that are not negative, from the type itself."""
    element_type = ELEMENT_TYPES[name]
    width = max(8, element_type.bits)
    codes = np.arange(2**element_type.bits, dtype=f"u{width // 8}")
    with np.errstate(invalid="ignore"):  # signalling NaNs
        wide = codes.view(element_type.numpy).astype(np.float64)
    return sorted({value for value in wide.tolist() if 0 <= value < np.inf})


@pytest.mark.parametrize("name", NARROW)
def test_narrow_decimals_are_rounded_once(name: str) -> None:
    """Just below, at, and just above each middle of neighbours, closer than f64 could tell."""
    values = finite_values(name)
    middles = [(Fraction(a) + Fraction(b)) / 2 for a, b in zip(values, values[1:], strict=False)]
    pairs = dict(zip(middles, zip(values, values[1:], strict=False), strict=True))
    if len(middles) > 600:
        middles = middles[:150] + middles[150 : -150 : len(middles) // 300] + middles[-150:]
    texts = [decimal(middle) for middle in middles]
    below = [before(text) for text in texts]
    above = [text + ("" if "." in text else ".") + "0" * 30 + "1" for text in texts]
    count = len(texts)
    element_type = ELEMENT_TYPES[name]
    low = read(name, (count,), "{" + ",".join(below) + "}").astype(np.float64)
    high = read(name, (count,), "{" + ",".join(above) + "}").astype(np.float64)
    tie = read(name, (count,), "{" + ",".join(texts) + "}").astype(np.float64)
    assert low.tolist() == [pairs[middle][0] for middle in middles]
    assert high.tolist() == [pairs[middle][1] for middle in middles]
    # The type's own conversion of a middle, which f64 holds exactly, rounds to even.
    exact = np.array([float(middle) for middle in middles])
    if name != "bf16":  # whose conversion passes f32, which holds these middles too
        assert tie.tolist() == exact.astype(element_type.numpy).astype(np.float64).tolist()
    else:
        own = exact.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)
        assert tie.tolist() == own.tolist()


def decimal(number: Fraction) -> str:
    """All digits of a dyadic fraction that f64 holds."""
    return f"{Decimal(float(number)):f}"


def before(text: str) -> str:
    """A decimal less by one in the 30th place behind its last."""
    whole, _, part = text.partition(".")
    digits = int(whole + part) * 10**30 - 1
    places = len(part) + 30
    padded = str(digits).rjust(places + 1, "0")
    return f"{padded[:-places]}.{padded[-places:]}"


@given(st.integers(0, 2**31 - 2**24), st.sampled_from([-1, 0, 1]))
@example(0, 0)
@example(1, 1)
@example(0x7F7FFFFE, 1)
def test_f32_middles_are_rounded_once(code: int, side: int) -> None:
    code = min(code, 0x7F7FFFFE)
    low, high = (struct.unpack("<f", struct.pack("<I", code + n))[0] for n in (0, 1))
    text = f"{Decimal((low + high) / 2):f}"
    text = {-1: before(text), 0: text, 1: text + ("" if "." in text else ".") + "0" * 30 + "1"}[
        side
    ]
    even = low if code % 2 == 0 else high
    assert float(read("f32", (), text)) == {-1: low, 0: even, 1: high}[side]


def test_the_largest_and_the_least() -> None:
    edge = (2**25 - 1) * 2**103  # the middle of the largest f32 and what would be next
    assert float(read("f32", (), f"{edge - 1}")) == float(np.finfo(np.float32).max)
    for text in (f"{edge}", f"{edge + 1}", "1e400", "-1e39"):
        with pytest.raises(LiteralError, match="out of range for f32"):
            read("f32", (), text)
    assert float(read("f8e4m3fn", (), "464")) == 448
    assert float(read("f4e2m1fn", (), "1000")) == 6  # has no infinity: larger ones become 6
    assert float(read("f64", (), "4.9406564584124654e-324")) == 5e-324
    for name, text in (("f32", "-1e-60"), ("f64", "-1e-500"), ("f16", "-0"), ("bf16", "-0.0")):
        value = float(read(name, (), text))
        assert value == 0
        assert np.signbit(value)


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("f32", "nan", 0x7FC00000),
        ("f32", "-nan", 0xFFC00000),
        ("f32", "nan(0x1)", 0x7F800001),
        ("f32", "-nan(0x7fffff)", 0xFFFFFFFF),
        ("f64", "nan(0x1)", 0x7FF0000000000001),
        ("f16", "nan(0x201)", 0x7E01),
        ("bf16", "-nan", 0xFFC0),
        ("f8e5m2", "nan(0x1)", 0x7D),
        ("f8e4m3fn", "-nan", 0xFF),
        ("f8e4m3fnuz", "nan", 0x80),
        ("f8e8m0fnu", "nan", 0xFF),
    ],
)
def test_nans_keep_sign_and_payload(name: str, text: str, code: int) -> None:
    value = read(name, (1,), "{" + text + "}")
    assert int(value.view(f"u{value.itemsize}")[0]) == code
    assert show_literal(Literal(shape(name), value.reshape(()))) == text


@pytest.mark.parametrize("name", NARROW)
def test_every_code_of_narrow_types_reads_back(name: str) -> None:
    element_type = ELEMENT_TYPES[name]
    codes = np.arange(2**element_type.bits, dtype=f"u{max(8, element_type.bits) // 8}")
    value = codes.view(element_type.numpy)
    again = read(name, value.shape, show_literal(Literal(shape(name, len(value)), value)))
    same = again.view(codes.dtype) == codes
    if not same.all():  # formats with NaNs that text does not tell apart
        assert np.isnan(value[~same].astype(np.float32)).all()


@pytest.mark.parametrize(
    ("name", "number", "text"),
    [
        ("f32", 0.1, "0.1"), ("f32", 1 / 3, "0.333333343"), ("f32", 1e20, "1e+20"),
        ("f64", 0.1, "0.1"), ("f64", 1 / 3, "0.33333333333333331"), ("bf16", 0.1, "0.1001"),
        ("f16", 0.1, "0.099976"), ("pred", 1, "true"), ("c64", 1 - 2j, "(1, -2)"),
        ("s4", -8, "-8"), ("f32", -0.0, "-0.0"), ("f32", float("-inf"), "-inf"),
    ],
)  # fmt: skip
def test_digits_are_those_of_xla(name: str, number: complex, text: str) -> None:
    value = np.array(number).astype(ELEMENT_TYPES[name].numpy)
    assert show_literal(Literal(shape(name), value)) == text


@pytest.mark.parametrize("name", ["f32", "f64", "s32", "pred", "c64", "bf16"])
def test_large_constants_are_fast(name: str) -> None:
    """A hundred thousand elements, both ways, for what scanning 4 MB of text takes."""
    numbers = np.random.default_rng(0).standard_normal((100, 1000)) * 100
    value = numbers.astype(ELEMENT_TYPES[name].numpy)
    literal = Literal(shape(name, 100, 1000), value)
    text = show_literal(literal)
    assert read_literal(literal.shape, text) == literal
    assert cost(lambda: show_literal(literal), 300) < 300
    assert cost(lambda: read_literal(literal.shape, text), 300) < 300


@pytest.mark.parametrize("rank", range(1, 6))
def test_without_elements(rank: int) -> None:
    for dims in product((0, 1, 2, 7), repeat=rank):
        if 0 in dims:
            literal = Literal(shape("u8", *dims), np.zeros(dims, np.uint8))
            assert read_literal(literal.shape, show_literal(literal)) == literal, dims
