"""Attributes: what each name's text means, and that it prints to be read again."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo.aliasing import Alias
from hlo.attributes import (
    ANNOTATIONS,
    COMPUTATION_ATTRIBUTES,
    ConvolutionDimensions,
    Domain,
    OperandSparsity,
    SparsityConfig,
    Window,
    WindowDimension,
)
from hlo.replica_groups import (
    AxisPart,
    Iota,
    IotaGroups,
    ListedGroups,
    MeshGroups,
    SourceTargetPairs,
)
from hlo.text.codecs import CODECS
from hlo.text.enumerations import WORDS
from hlo.text.scanning import without_comments
from hlo.types import F32, S32, ArrayShape, Layout, TupleShape

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
    ("type", "TOTALORDER", "TOTALORDER"),
    ("fft_type", "IRFFT", "IRFFT"),
    ("transpose_a", "ADJOINT", "ADJOINT"),
    ("kind", "kLoop", "kLoop"),
    ("convolution_kind", "dgrad", "dgrad"),
    ("mode", "flattened_id", "flattened_id"),
    ("replica_groups", "{{0,1},{2,3}}", ListedGroups(((0, 1), (2, 3)))),
    ("replica_groups", "[2,4]<=[4,2]T(1,0)", IotaGroups(2, 4, Iota((4, 2), (1, 0)))),
    (
        "replica_groups",
        "mesh['x'=2,'y'=4], device_ids=([8]) {'y':(2)2,'x'}",
        MeshGroups((("x", 2), ("y", 4)), (AxisPart("y", 2, 2), AxisPart("x")), Iota((8,))),
    ),
    ("source_target_pairs", "{{0,1},{1,0}}", SourceTargetPairs(((0, 1), (1, 0)))),
    ("output_to_operand_aliasing", "{}", ()),
    (
        "output_to_operand_aliasing",
        "{{0}: (1, {}), {1,0}: (0, {2,3})}",
        (Alias((0,), 1, ()), Alias((1, 0), 0, (2, 3))),
    ),
    ("operand_layout_constraints", "{}", ()),
    (
        "operand_layout_constraints",
        "{f32[2,3]{0,1}, (s32[], f32[2])}",
        (
            ArrayShape(F32, (2, 3), (), Layout((0, 1))),
            TupleShape((ArrayShape(S32), ArrayShape(F32, (2,)))),
        ),
    ),
    ("outfeed_shape", "(s32[], f32[2])", TupleShape((ArrayShape(S32), ArrayShape(F32, (2,))))),
    (
        "domain",
        '{kind="sharding", entry={maximal device=0}, exit={devices=[2]0,1}}',
        Domain("sharding", "{maximal device=0}", "{devices=[2]0,1}"),
    ),
    ("sparsity_config", "{}", SparsityConfig()),
    ("sparsity_config", "{lhs={}}", SparsityConfig(OperandSparsity())),
    (
        "sparsity_config",
        "{lhs={sparsity=2x4 dimension=1} rhs={sparsity=1x2 dimension=-1 stride=0}}",
        SparsityConfig(OperandSparsity((2, 4), 1), OperandSparsity((1, 2), -1, 0)),
    ),
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
        ("direction", "LTE", "expected a known name, not 'LTE'; did you mean 'LT'?"),
        ("direction", "lt", "one of EQ, GE, GT, LE, LT, NE"),
        ("type", '"FLOAT"', "expected a known name"),
        ("kind", "kloop", "did you mean 'kLoop'?"),
        ("mode", "flat", "expected a known name"),
        ("replica_groups", "{0,1}", "expected {{0,1},{2,3}}"),
        ("replica_groups", "[8]<=[8]", "expected [groups,size]<=[ids…]"),
        ("replica_groups", "mesh {}", "expected mesh['axis'=size,…] {'axis',…}"),
        ("replica_groups", "mesh['x'=2], device_ids=(x) {'x'}", "expected device_ids="),
        ("source_target_pairs", "{{0,1,2}}", "expected {{source,target},…}"),
        ("source_target_pairs", "[1,2]<=[2]", "expected {{source,target},…}"),
        ("output_to_operand_aliasing", "{0}", "expected {{output}: (number, {part}), …}"),
        ("output_to_operand_aliasing", "{{0}: (1)}", "expected {{output}: (number, {part}), …}"),
        ("output_to_operand_aliasing", "{{}: (0, {}),}", "expected {{output}: (number"),
        ("output_to_operand_aliasing", "{{}: (0, {}) {}: (1, {})}", "expected {{output}: (number"),
        ("output_to_operand_aliasing", "{{}: (0, {})", "expected {{output}: (number, {part})"),
        ("output_to_operand_aliasing", "0", "expected {{output}: (number, {part}), …}"),
        ("operand_layout_constraints", "f32[2]", "expected {…}"),
        ("operand_layout_constraints", "{f32[2], x}", "expected a shape"),
        ("outfeed_shape", "{f32[2]}", "expected a shape"),
        ("domain", "{}", "expected kind, entry and exit, each once"),
        ("domain", '{kind="a", kind="b", entry={}, exit={}}', "expected kind, entry and exit"),
        ("domain", "{kind=sharding, entry={}, exit={}}", "expected a quoted string"),
        ("domain", '{kind="sharding", entry={}, exit=x}', "expected {…} after exit="),
        ("sparsity_config", "lhs", "expected {lhs="),
        ("sparsity_config", "{out={}}", "expected {lhs="),
        ("sparsity_config", "{lhs={} lhs={}}", "each at most once"),
        ("sparsity_config", "{lhs={stride=1 stride=1}}", "each at most once"),
        ("sparsity_config", "{lhs={sparsity=2}}", "expected {lhs="),
        ("sparsity_config", "{lhs={dimension=x}}", "expected {lhs="),
        ("sparsity_config", "{lhs={size=1}}", "expected {lhs="),
    ],
)
def test_errors(name: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        CODECS[name].read(text)
    assert message in str(caught.value)


def test_every_name_has_one_home() -> None:
    assert not ANNOTATIONS & CODECS.keys()
    assert CODECS.keys() >= COMPUTATION_ATTRIBUTES


def test_no_codec_keeps_text() -> None:
    """Each refuses what no value of it is written like, and one in quotes gives what they quote."""
    for name, codec in CODECS.items():
        for text in ("{any: text}", "any text", "[any", "any, text", "{{any}}", "(any)", "{", "}"):
            with pytest.raises(ValueError, match="expected"):
                codec.read(text)
                pytest.fail(f"{name}={text}")


def test_values_are_texts_of_a_list_or_what_is_named_or_quoted() -> None:
    """All other values are not texts."""
    quoted = {"custom_call_target", "async_execution_thread", "infeed_config", "outfeed_config"}
    texts = {name for name, _, value in VALUES if isinstance(value, str)}
    assert texts <= {*WORDS, *COMPUTATION_ATTRIBUTES, *quoted}
    for name in quoted:
        assert CODECS[name].read('"a\\"b"') == 'a"b'


@pytest.mark.parametrize("name", WORDS)
def test_words_are_what_they_are_spelled_like(name: str) -> None:
    for word in WORDS[name].allowed:
        assert CODECS[name].read(word) == word == CODECS[name].show(word)


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("output_to_operand_aliasing", "{ {0 , 1} : ( 2 , { } ) }", "{{0,1}: (2, {})}"),
        ("output_to_operand_aliasing", "{{}: 1, {0}: (0,{},may-alias)}",
         "{{}: (1, {}), {0}: (0, {}, may-alias)}"),
        ("operand_layout_constraints", "{ f32[2, 3]{1, 0} ,s32[]}", "{f32[2,3]{1,0}, s32[]}"),
        ("outfeed_shape", "( f32[2],pred[] )", "(f32[2], pred[])"),
        ("domain", "{exit={b} ,\n kind='sharding',entry={a}}",
         '{kind="sharding", entry={a}, exit={b}}'),
        ("sparsity_config", "{ rhs={ stride=1 sparsity=02x4 }lhs={} }",
         "{lhs={} rhs={sparsity=2x4 stride=1}}"),
    ],
)  # fmt: skip
def test_other_spellings(name: str, text: str, shown: str) -> None:
    value = CODECS[name].read(text)
    assert CODECS[name].show(value) == shown
    assert CODECS[name].read(shown) == value


# Drawn values read back, and their texts print the same

INDICES = st.lists(st.integers(0, 9), max_size=3).map(tuple)
KINDS = st.sampled_from(["", "may-alias", "must-alias"])
ALIASES = st.lists(st.builds(Alias, INDICES, st.integers(0, 9), INDICES, KINDS), max_size=3).map(
    tuple
)
ARRAYS = st.builds(
    lambda t, dims, laid: ArrayShape(
        t, tuple(dims), (), Layout(tuple(reversed(range(len(dims))))) if laid and dims else None
    ),
    st.sampled_from([F32, S32]),
    st.lists(st.integers(0, 99), max_size=3),
    st.booleans(),
)
SHAPES = st.recursive(
    ARRAYS, lambda inner: st.lists(inner, max_size=6).map(lambda s: TupleShape(tuple(s)))
)
SHARDINGS = st.sampled_from(["{}", "{replicated}", '{devices=[2]<=[2] metadata={op_name="}"}}'])
SPARSITIES = st.none() | st.builds(
    OperandSparsity,
    st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.none() | st.integers(-9, 9),
    st.none() | st.integers(-9, 9),
)
DRAWN = {
    "output_to_operand_aliasing": ALIASES,
    "operand_layout_constraints": st.lists(SHAPES, max_size=3).map(tuple),
    "outfeed_shape": SHAPES,
    "domain": st.builds(Domain, st.text(max_size=5), SHARDINGS, SHARDINGS),
    "sparsity_config": st.builds(SparsityConfig, SPARSITIES, SPARSITIES),
    **{name: st.sampled_from(sorted(words.allowed)) for name, words in WORDS.items()},
}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", DRAWN)
@given(data=st.data())
def test_drawn_values_read_back(name: str, data: st.DataObject) -> None:
    """Drawn attribute values read back from their text; its comments are spaces before codecs see
    it."""
    value = data.draw(DRAWN[name])
    text = without_comments(CODECS[name].show(value))
    assert CODECS[name].read(text) == value
    assert CODECS[name].show(CODECS[name].read(text)) == CODECS[name].show(value)
