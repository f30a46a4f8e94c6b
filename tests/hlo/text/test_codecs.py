"""Attributes: what each name's text means, and that it prints to be read again."""

from __future__ import annotations

import math

import pytest

from hlo.attributes import (
    ANNOTATIONS,
    COMPUTATION_ATTRIBUTES,
    ConvolutionDimensions,
    Window,
    WindowDimension,
)
from hlo.text.codecs import CODECS

VALUES = [
    ("dimensions", "{}", ()),
    ("dimensions", "{ 0, 2 }", (0, 2)),
    ("index", "3", 3),
    ("get", "", None),
    ("dimensions", "{-1}", (-1,)),
    ("slice", "{[0:4:2], [1:3]}", ((0, 4, 2), (1, 3, 1))),
    ("slice", "{}", ()),
    ("padding", "0_1x-2_3_4", ((0, 1, 0), (-2, 3, 4))),
    ("padding", "", ()),
    ("window", "{}", Window()),
    (
        "window",
        "{size=3x2 stride=2x1 pad=0_1x-1_1 lhs_dilate=1x2 rhs_dilate=3x1 rhs_reversal=0x1}",
        Window((WindowDimension(3, 2, 0, 1, 1, 3), WindowDimension(2, 1, -1, 1, 2, 1, True))),
    ),
    ("dim_labels", "bf_io->bf", ConvolutionDimensions(0, 1, (), 0, 1, (), 0, 1, ())),
    (
        "dim_labels",
        "b01f_01io->f10b",
        ConvolutionDimensions(0, 3, (1, 2), 2, 3, (0, 1), 3, 0, (2, 1)),
    ),
    ("dim_labels", "?0bf_0io->0bf", ConvolutionDimensions(2, 3, (1,), 1, 2, (0,), 1, 2, (0,))),
    ("is_stable", "true", True),
    ("lower", "0", False),
    ("to_apply", "%region_0.1", "region_0.1"),
    ("to_apply", '"a b"', "a b"),
    ("branch_computations", '{%a, b, "c, d"}', ("a", "b", "c, d")),
    ("calls", "{%a}", ("a",)),
    ("calls", "a", "a"),
    ("custom_call_target", '"Sharding"', "Sharding"),
    ("operand_precision", "{highest,default}", ("highest", "default")),
    ("epsilon", "1e-05", 1e-05),
    ("epsilon", "3.4028234663852886e+38", 2.0**128 - 2.0**104),
    ("direction", "LT", "LT"),
    ("delta", "-5", -5),
    ("delta", "9223372036854775807", 2**63 - 1),
    ("delta", "18446744073709551615", -1),
    ("replica_groups", "{{0,1},{2,3}}", "{{0,1},{2,3}}"),
]
VALUES = [row for row in VALUES if row[0] in CODECS]


def test_epsilon_may_be_nan() -> None:
    assert math.isnan(CODECS["epsilon"].read("nan")) and CODECS["epsilon"].show(math.nan) == "nan"


@pytest.mark.parametrize(("name", "text", "value"), VALUES)
def test_values(name: str, text: str, value: object) -> None:
    codec = CODECS[name]
    assert codec.read(text) == value
    assert codec.read(codec.show(value)) == value


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("dimensions", "0", "expected {…}"),
        ("dimensions", "{0,}", "expected an integer"),
        ("dimensions", "{²}", "expected an integer"),
        ("index", "18446744073709551616", "at most 64 bits"),
        ("index", "1" * 5000, "expected an integer"),
        ("slice", "{[0:4}", "expected {[start:limit]"),
        ("padding", "0x1", "expected low_high"),
        ("window", "{stride=2}", "expected size="),
        ("window", "{size=2x2 stride=2}", "expected as many numbers"),
        ("window", "{size=2 shape=2}", "expected one of size, stride"),
        ("window", "{size=2 pad=1}", "expected low_high in pad"),
        ("dim_labels", "b01f_01io", "expected labels"),
        ("dim_labels", "b02f_01io->b01f", "spatial dimensions 0, 1"),
        ("dim_labels", "b01b_01io->b01f", "each of b and f"),
        ("dim_labels", "b0f_01io->b01f", "as many spatial"),
        ("is_stable", "yes", "expected true or false"),
        ("to_apply", "{a}", "expected the name of a computation"),
        ("custom_call_target", "Sharding", "expected a quoted string"),
        ("epsilon", "infinity", "expected a number"),
        ("epsilon", "1_0", "expected a number"),
        ("epsilon", "3.4028235e38", "in the range of f32"),
        ("epsilon", "-1e400", "in the range of f32"),
    ],
)
def test_errors(name: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        CODECS[name].read(text)
    assert message in str(caught.value)


def test_every_name_has_one_home() -> None:
    assert not ANNOTATIONS & CODECS.keys()
    assert CODECS.keys() >= COMPUTATION_ATTRIBUTES
