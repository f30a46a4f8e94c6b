"""Attributes of headers that are values: they read back, and print as XLA does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import CORPUS
from hypothesis import given
from hypothesis import strategies as st

import hlo
from hlo.aliasing import Alias, Donor
from hlo.attributes import EntryLayout, HeaderAttribute
from hlo.text.module_header import read_header, show_header
from hlo.text.scanning import without_comments
from hlo.text.shapes import ShapeReader
from hlo.types import F32, ArrayShape, Layout, TupleShape

ROW = ArrayShape(F32, (2,), (), Layout((0,)))
VALUES: list[tuple[str, str, HeaderAttribute]] = [
    ("input_output_alias", "{}", ()),
    (
        "input_output_alias",
        "{ {}: (0, {}), {1,0}: (2, {3}, must-alias) }",
        (Alias((), 0, ()), Alias((1, 0), 2, (3,), "must-alias")),
    ),
    ("buffer_donor", "{}", ()),
    ("buffer_donor", "{ (0, {}), (2, {1,0}) }", (Donor(0, ()), Donor(2, (1, 0)))),
    ("entry_computation_layout", "{()->()}", EntryLayout((), TupleShape())),
    (
        "entry_computation_layout",
        f"{{({', '.join(['f32[2]{0}'] * 5)}, /*index=5*/f32[2]{{0}})->(f32[2]{{0}})}}",
        EntryLayout((ROW,) * 6, TupleShape((ROW,))),
    ),
]


def read(name: str, text: str) -> HeaderAttribute:
    return read_header(name, without_comments(text), text, ShapeReader())


@pytest.mark.parametrize(("name", "text", "value"), VALUES)
def test_values(name: str, text: str, value: HeaderAttribute) -> None:
    assert read(name, text) == value
    assert show_header(name, value) == text


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("input_output_alias", "{{0 , 1}: ( 2,{ },may-alias )}", "{ {0,1}: (2, {}, may-alias) }"),
        ("buffer_donor", "{(1,{0}) }", "{ (1, {0}) }"),
        ("entry_computation_layout", "{ ( f32[2]{0} ,f32[ ]) -> (f32[]) }",
         "{(f32[2]{0}, f32[])->(f32[])}"),
    ],
)  # fmt: skip
def test_other_spellings(name: str, text: str, shown: str) -> None:
    assert show_header(name, read(name, text)) == shown
    assert read(name, shown) == read(name, text)


INDICES = st.lists(st.integers(0, 99), max_size=3).map(tuple)
KINDS = st.sampled_from(["", "may-alias", "must-alias"])
NUMBERS = st.integers(0, 99)


@given(st.lists(st.builds(Alias, INDICES, NUMBERS, INDICES, KINDS), max_size=3).map(tuple))
def test_aliases_read_back(value: tuple[Alias, ...]) -> None:
    assert read("input_output_alias", show_header("input_output_alias", value)) == value


@given(st.lists(st.builds(Donor, NUMBERS, INDICES), max_size=3).map(tuple))
def test_donors_read_back(value: tuple[Donor, ...]) -> None:
    assert read("buffer_donor", show_header("buffer_donor", value)) == value


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*.txt")), ids=lambda path: path.stem)
def test_headers_of_the_corpus_print_as_they_are(path: Path) -> None:
    header = path.read_text().partition("\n")[0]
    assert hlo.format(hlo.parse(path.read_text())).partition("\n")[0] == header


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("input_output_alias", "{ {}: 0 }", "expected { {output}: (parameter, {index}, may-alias)"),
        ("input_output_alias", "{ {}: (0, {}, no) }", "expected { {output}: (parameter, {index}"),
        ("input_output_alias", "", "expected { {output}: (parameter, {index}, may-alias)"),
        ("input_output_alias", "{", "expected { {output}: (parameter, {index}, may-alias)"),
        ("buffer_donor", "", "expected { (parameter, {index}), … }"),
        ("entry_computation_layout", "", "expected {(shape, …)->shape}"),
        ("entry_computation_layout", "}", "expected {(shape, …)->shape}"),
        ("is_scheduled", "", "expected true or false"),
        ("buffer_donor", "{0}", "expected { (parameter, {index}), … }"),
        ("entry_computation_layout", "{}", "expected {(shape, …)->shape}"),
        ("entry_computation_layout", "{(f32[2])}", "expected {(shape, …)->shape}"),
        ("entry_computation_layout", "{(f32[2]->f32[2]}", "nothing closes this '('"),
        ("entry_computation_layout", "{(f32[2])->}", "expected a shape"),
        ("entry_computation_layout", "{(f32[2]{1})->f32[2]}", "does not permute"),
    ],
)
def test_errors(name: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: .*{re.escape(message)}"):
        read(name, text)
