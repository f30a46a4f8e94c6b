"""Objects describe themselves in a line, whatever they hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import ROOT

import hlo
from hlo.literal import Literal
from hlo.types import F32, S32, ArrayShape, Layout, TupleShape

MATRIX = ArrayShape(F32, (64, 3), (), Layout((1, 0)))


@pytest.mark.parametrize("name", ["examples/attention.hlo", "examples/training_step.hlo"])
def test_a_module_is_one_line_and_a_small_table(name: str) -> None:
    module = hlo.parse((ROOT / name).read_text())
    line = repr(module)
    assert line.startswith(f"Module({module.name}: ") and "\n" not in line and len(line) < 200
    assert str(module.instruction_count) in line and " -> " in line
    table = module._repr_html_()
    assert "<table" in table and len(table) < 4000
    for computation in module.computations:
        assert len(repr(computation)) < 120
        for instruction in computation.instructions:
            assert repr(instruction).startswith(f"%{instruction.name} = {instruction.shape}")


def test_names_are_escaped_in_html() -> None:
    module = hlo.parse("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }")
    assert "<script>" not in replace(module, name="<script>")._repr_html_()


def test_shapes_are_as_in_the_text() -> None:
    assert repr(MATRIX) == "f32[64,3]{1,0}"
    assert repr(TupleShape((MATRIX, ArrayShape(S32)))) == "(f32[64,3]{1,0}, s32[])"


def test_a_literal_shows_few_numbers() -> None:
    assert repr(Literal(ArrayShape(S32), np.array(3, np.int32))) == "Literal(s32[], 3)"
    large = Literal(MATRIX, np.zeros((64, 3), np.float32))
    assert repr(large) == "Literal(f32[64,3]{1,0}, …)"
    assert repr(Literal(MATRIX, None)) == "Literal(f32[64,3]{1,0}, {...})"
